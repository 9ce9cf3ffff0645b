package cli_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// scrape asks a running duly for its metrics, and returns the value of each series, by its name and labels.
func scrape(t *testing.T, url, token string) (values map[string]float64, text string) {
	t.Helper()
	status, text := call(t, http.MethodGet, url+"/metrics", token, "")
	require.Equal(t, http.StatusOK, status, text)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	values = map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			values[name+labels(m)] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values, text
}

func labels(m *dto.Metric) string {
	var text string
	for _, l := range m.GetLabel() {
		text += " " + l.GetValue()
	}
	return text
}

// A daemon with an API is measured; who has no token learns nothing.
func TestTheMetricsOfTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "DULY_TOKEN=old-secret,new-secret")
	d := w.start(t, "daemon", "-c", file(t, handlersFile+"tasks:\n  - { agent: hidden, id: first, kind: note }\n"), "--http", "127.0.0.1:0")
	url := d.url(t)
	s := w.scheduler(t)
	settled(t, s, "hidden", "first", core.StatusCompleted)
	status, body := call(t, http.MethodPost, url+"/v1/tasks", "new-secret",
		`{"tasks":[{"agent_id":"hidden","id":"work-two","kind":"note"},{"agent_id":"hidden","id":"third","kind":"nobodys"}]}`)
	require.Equal(t, http.StatusCreated, status, body)
	settled(t, s, "hidden", "work-two", core.StatusCompleted)
	d.line(t, "run kind=note", "task=work-two")

	status, body = call(t, http.MethodGet, url+"/metrics", "", "")
	assert.Equal(t, http.StatusUnauthorized, status)
	assert.NotContains(t, body, "duly_")
	require.Eventually(t, func() bool { // the run is counted once it is stored
		values, _ := scrape(t, url, "old-secret")
		return values["duly_runs_total note success"] == 2 && values["duly_ticks_total"] == 2
	}, 10*time.Second, 20*time.Millisecond)
	values, text := scrape(t, url, "new-secret")
	assert.Equal(t, 3.0, values["duly_submitted_total"])
	assert.Equal(t, 2.0, values["duly_lag_seconds note"])
	assert.Equal(t, 1.0, values["duly_store_up"])
	assert.Positive(t, values["duly_store_calls_total settle"])
	assert.Positive(t, values["go_goroutines"])
	assert.Contains(t, text, "duly_build_info{version=")
	for _, hidden := range []string{"hidden", "work-two", "nobodys", "secret"} {
		assert.NotContains(t, text, hidden)
	}
	require.Eventually(t, func() bool {
		values, _ := scrape(t, url, "new-secret")
		return values["duly_tasks completed"] == 2 && values["duly_parked_tasks no_handler"] == 1
	}, 10*time.Second, 100*time.Millisecond)

	w.redis.Kill()
	require.Eventually(t, func() bool {
		values, _ := scrape(t, url, "new-secret")
		return values["duly_store_up"] == 0 && values["duly_runs_total note success"] == 2
	}, 20*time.Second, 100*time.Millisecond)
	code, _ := d.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code)
}

// duly serve is measured too; on this machine only, it asks for no token.
func TestTheMetricsOfServe(t *testing.T) {
	t.Parallel()
	d := inMemory().start(t, "serve", "-c", file(t, handlersFile), "--http", "127.0.0.1:0")
	url := d.url(t)
	status, body := call(t, http.MethodPost, url+"/v1/tasks", "", `{"agent_id":"a","id":"1","kind":"note"}`)
	require.Equal(t, http.StatusCreated, status, body)
	status, body = call(t, http.MethodPost, url+"/v1/run-due", "", `{"all":true}`)
	require.Equal(t, http.StatusOK, status, body)
	values, _ := scrape(t, url, "")
	assert.Equal(t, 1.0, values["duly_runs_total note success"])
	assert.Equal(t, 1.0, values["duly_ticks_total"])
	assert.Equal(t, 1.0, values["duly_tasks completed"])
	assert.Zero(t, values["duly_runs_total note failed"])
}
