package metrics_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/metrics"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// token is what a scraper needs here.
const token = "scrape-token-5d41"

// world is a scheduler that is measured, and served over HTTP.
type world struct {
	*testing.T

	s     *core.Scheduler
	store *faulty
	url   string
	logs  *bytes.Buffer

	requests atomic.Int64 // that have arrived
}

// newWorld measures a scheduler on a store. The kinds are registered before the metrics are served.
func newWorld(t *testing.T, on core.Store, c metrics.Config, settings core.Config, register func(w *world)) *world {
	t.Helper()
	w := &world{T: t, store: &faulty{Store: on}, logs: new(bytes.Buffer)}
	c.Logger = slog.New(slog.NewTextHandler(w.logs, nil))
	m := metrics.New(c)
	settings.OnEvent, settings.OnTick = m.Event, m.Tick
	var err error
	w.s, err = core.New(m.Store(w.store), settings)
	require.NoError(t, err)
	if register != nil {
		register(w)
	}
	w.serve(m)
	return w
}

// newWorldOf serves the metrics of a store that is measured already.
func newWorldOf(t *testing.T, m *metrics.Metrics, measured core.Store) *world {
	t.Helper()
	s, err := core.New(measured, core.Config{})
	require.NoError(t, err)
	w := &world{T: t, s: s}
	w.serve(m)
	return w
}

func (w *world) serve(m *metrics.Metrics) {
	api := httpadapter.New(w.s, httpadapter.Config{Tokens: []string{token}, Metrics: m.Handler(w.s)})
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.requests.Add(1)
		api.ServeHTTP(out, r)
	}))
	w.Cleanup(server.Close)
	w.url = server.URL + "/metrics"
}

// redis is a store on a server of the test's own.
func redis(t *testing.T) (core.Store, *redistest.Server) {
	t.Helper()
	server := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: server.URL})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	return st, server
}

func (w *world) submit(tasks ...core.NewTask) {
	w.Helper()
	_, err := w.s.Submit(w.Context(), tasks...)
	require.NoError(w, err)
}

// get sends a scrape.
func (w *world) get(ctx context.Context) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
}

// page is a scrape as text and as it is parsed.
type page struct {
	*testing.T

	text     string
	families map[string]*dto.MetricFamily
}

// scrape asks for the metrics as Prometheus does.
func (w *world) scrape() page {
	w.Helper()
	res, err := w.get(w.Context())
	require.NoError(w, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(w, err)
	require.Equal(w, http.StatusOK, res.StatusCode, string(data))
	assert.Contains(w, res.Header.Get("Content-Type"), "text/plain")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	require.NoError(w, err, string(data))
	return page{T: w.T, text: string(data), families: families}
}

// series are those of a metric whose labels have some values, given as name, value, name, value.
func (p page) series(name string, labels ...string) []*dto.Metric {
	var found []*dto.Metric
	for _, m := range p.families[name].GetMetric() {
		fits := true
		for i := 0; i < len(labels); i += 2 {
			has := false
			for _, l := range m.GetLabel() {
				has = has || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
			}
			fits = fits && has
		}
		if fits {
			found = append(found, m)
		}
	}
	return found
}

// value is that of one counter or gauge, or the count of one histogram.
func (p page) value(name string, labels ...string) float64 {
	p.Helper()
	found := p.series(name, labels...)
	require.Len(p, found, 1, "%s %v in:\n%s", name, labels, p.text)
	m := found[0]
	switch {
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	default:
		return float64(m.GetHistogram().GetSampleCount())
	}
}

// runs are the counts of a kind that are not zero, by outcome.
func (p page) runs(kind string) map[string]float64 {
	out := map[string]float64{}
	for _, m := range p.series("duly_runs_total", "kind", kind) {
		for _, l := range m.GetLabel() {
			if l.GetName() == "outcome" && m.GetCounter().GetValue() != 0 {
				out[l.GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// ours are the names of the metrics that are duly's own.
func (p page) ours() []string {
	var names []string
	for name := range p.families {
		if strings.HasPrefix(name, "duly_") {
			names = append(names, name)
		}
	}
	return names
}

// faulty is a store whose statistics are counted, and can be held up.
type faulty struct {
	core.Store

	calls atomic.Int64
	stats func(ctx context.Context) (count.Stats, error) // in place of the store's, if set
}

func (f *faulty) Stats(ctx context.Context) (count.Stats, error) {
	f.calls.Add(1)
	if f.stats != nil {
		return f.stats(ctx)
	}
	return f.Store.Stats(ctx)
}
