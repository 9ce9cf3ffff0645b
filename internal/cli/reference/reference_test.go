package reference_test

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/http/metrics"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/cli"
	"github.com/seed-6f6f2c11/duly/internal/cli/reference"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

var update = flag.Bool("update", false, "write the pages instead of comparing them")

const pages = "../../../docs/reference"

// Each page is what the code says now.
func TestThePagesFollowFromTheCode(t *testing.T) {
	t.Parallel()
	api, err := os.ReadFile("../../../adapters/http/openapi.json")
	require.NoError(t, err)
	calls, err := reference.Calls(api)
	require.NoError(t, err)
	codes, err := reference.Codes("../../../core/model/errors.go", "../../../adapters/internal/problem/problem.go")
	require.NoError(t, err)
	events, err := reference.Events("../../../core/model/event.go")
	require.NoError(t, err)
	file, err := reference.File(dulyfile.Schema())
	require.NoError(t, err)
	with, without := scrapes(t)
	figures, err := reference.Metrics(with, without)
	require.NoError(t, err)
	dashboard, err := reference.Dashboard(with, without)
	require.NoError(t, err)
	written(t, "../../deploy/grafana/duly.json", dashboard)
	for name, text := range map[string]string{"metrics.md": figures, "file.md": file, "cli.md": reference.Commands(cli.Commands()), "http.md": calls, "errors.md": codes, "events.md": events} {
		written(t, name, text)
	}
	for line := range strings.Lines(codes) {
		assert.NotRegexp(t, `\| +\|`, line, "each code says what it means and what to do")
	}
	for line := range strings.Lines(events) {
		assert.NotRegexp(t, `\| +\|`, line, "each event says what has happened")
	}
}

// written compares a page with what is written now, or writes it.
func written(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(pages, name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(kept), text, "%s: make generate writes it", file)
}

// scrapes are two of one process: while its store answers, and while it does not.
func scrapes(t *testing.T) (with, without string) {
	t.Helper()
	away := false
	st := &storetest.Spy{Store: memstore.New(memstore.Config{Partitions: 1}), Before: func(_ context.Context, called string) error {
		if away && called == "Stats" {
			return errors.New("away")
		}
		return nil
	}}
	m := metrics.New(metrics.Config{Version: "1.2.3", Fresh: time.Nanosecond})
	s, err := core.New(m.Store(st), core.Config{OnEvent: m.Event, OnTick: m.Tick})
	require.NoError(t, err)
	core.Handle(s, "digest", func(context.Context, *core.Task[any]) error { return nil })
	require.NoError(t, s.SetLimits(t.Context(), core.Limit{About: core.LimitTarget{Kind: "digest"}, Concurrency: 3}))
	require.NoError(t, s.SetBudgets(t.Context(), core.Budget{About: core.BudgetTarget{Unit: "tokens", Per: core.PerDay}, Amount: core.AmountOf(1)}))
	scrape := func() string {
		w := httptest.NewRecorder()
		m.Handler(s).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
	with = scrape()
	away = true
	return with, scrape()
}

// A metric, or a label, that is only in one scrape is told apart, and a label that nobody has described is an error.
func TestMetricsOfAnUnknownLabel(t *testing.T) {
	t.Parallel()
	_, err := reference.Metrics("# HELP duly_x X.\n# TYPE duly_x gauge\nduly_x{colour=\"red\"} 1\n", "")
	require.ErrorContains(t, err, "the label colour")
}

// A metric that the dashboard has no place for is an error, as is a panel whose metric is gone.
func TestTheDashboardMissesNothing(t *testing.T) {
	t.Parallel()
	with, without := scrapes(t)
	_, err := reference.Dashboard(with+"# HELP duly_new New.\n# TYPE duly_new gauge\nduly_new 1\n", without)
	require.ErrorContains(t, err, "duly_new")
	_, err = reference.Dashboard(strings.ReplaceAll(with, "duly_ticks_total", "duly_tocks_total"), without)
	require.ErrorContains(t, err, "duly_ticks_total, which no scrape has")
}

// Each variable that a program of duly reads, or gives to programs, is on the page of the environment, and each of the page is one.
func TestTheEnvironmentIsDescribed(t *testing.T) {
	t.Parallel()
	variable := regexp.MustCompile(`"(DULY_[A-Z][A-Z0-9_]*)[="]`)
	read := map[string]bool{}
	for _, dir := range []string{"core", "adapters", "handlers", "host", "internal/cli", "internal/dulyfile", "sam", "examples/cloud-run", "examples/cloud-function", "cmd"} {
		err := filepath.WalkDir("../../../"+dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range variable.FindAllStringSubmatch(string(text), -1) {
				read[m[1]] = true
			}
			return err
		})
		require.NoError(t, err)
	}
	page, err := os.ReadFile(filepath.Join(pages, "environment.md"))
	require.NoError(t, err)
	described := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(DULY_[A-Z0-9_]+)").FindAllStringSubmatch(string(page), -1) {
		described[m[1]] = true
	}
	for name := range read {
		if !strings.HasPrefix(name, "DULY_TEST_") {
			assert.True(t, described[name], "docs/reference/environment.md does not have %s", name)
		}
	}
	for name := range described {
		assert.True(t, read[name], "nothing reads or sets %s", name)
	}
	assert.Greater(t, len(described), 40)
}
