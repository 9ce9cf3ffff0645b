package cli_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/reference"
)

// dashboardExprs are what the panels of the dashboard ask, by their titles.
func dashboardExprs(t *testing.T) map[string][]string {
	t.Helper()
	var d struct {
		Panels []struct {
			Type, Title, Description string
			GridPos                  struct{ X, Y, W, H int }
			Targets                  []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "../../deploy/grafana/duly.json")), &d))
	out := map[string][]string{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				assert.Empty(t, taken[[2]int{x, y}], "%s lies on %s", p.Title, taken[[2]int{x, y}])
				taken[[2]int{x, y}] = p.Title
			}
		}
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		if p.Type == "row" {
			continue
		}
		assert.NotContains(t, out, p.Title, "two panels have one title")
		assert.NotEmpty(t, p.Description, p.Title)
		for _, target := range p.Targets {
			out[p.Title] = append(out[p.Title], target.Expr)
		}
		assert.NotEmpty(t, out[p.Title], p.Title)
	}
	return out
}

// measured is a daemon that has every metric, and these with their types.
func measured(t *testing.T) (url string, has map[string]string) {
	t.Helper()
	w := newWorld(t)
	d := w.start(t, "daemon", "-c", file(t, handlersFile+`
limits: [{ kind: note, concurrency: 3 }]
budgets: [{ amount: 100, unit: tokens, per: day }]
tasks:
  - { agent: ada, id: first, kind: note }
`), "--http", "127.0.0.1:0")
	url = d.url(t)
	settled(t, w.scheduler(t), "ada", "first", core.StatusCompleted)
	has = map[string]string{}
	require.Eventually(t, func() bool { // limits and budgets are set by the first pull
		_, text := scrape(t, url, "")
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (duly_\w+) (\w+)$`).FindAllStringSubmatch(text, -1) {
			has[m[1]] = m[2]
		}
		return has["duly_limit_running"] != "" && has["duly_budget_used"] != ""
	}, 20*time.Second, 20*time.Millisecond)
	return url, has
}

// Each metric that a panel names is in a scrape of a daemon, and each that a scrape has is on a panel, or left out for a reason.
func TestTheDashboardShowsWhatAScrapeHas(t *testing.T) {
	t.Parallel()
	_, has := measured(t)
	shown := map[string]bool{}
	exprs := dashboardExprs(t)
	for title, all := range exprs {
		for _, expr := range all {
			for _, name := range regexp.MustCompile(`\bduly_\w+`).FindAllString(expr, -1) {
				if base, ok := strings.CutSuffix(name, "_bucket"); ok && has[base] == "histogram" {
					name = base
				}
				assert.Contains(t, has, name, title)
				shown[name] = true
			}
		}
	}
	for name := range has {
		assert.NotEqual(t, shown[name], reference.OffDashboard[name] != "", "%s is on a panel, or left out for a reason", name)
	}
	for name := range reference.OffDashboard {
		assert.Contains(t, has, name)
	}
	assert.Greater(t, len(shown), 25)
}

// A Prometheus answers what the panels ask.
func TestAPrometheusAnswersTheDashboard(t *testing.T) {
	t.Parallel()
	prometheusTools(t)
	exprs := dashboardExprs(t)
	url, _ := measured(t)
	p := startPrometheus(t, strings.TrimPrefix(url, "http://"))
	for _, title := range slices.Sorted(maps.Keys(exprs)) {
		for _, expr := range exprs[title] {
			expr = strings.NewReplacer("$job", ".+", "$__rate_interval", "5s").Replace(expr)
			if strings.Contains(expr, "histogram_quantile") { // there is no rate of what happened once; the question is a good one all the same
				expr = "count(" + expr + ") or vector(0)"
			}
			require.Eventually(t, func() bool { _, ok := p.value(t.Context(), expr); return ok }, 20*time.Second, 50*time.Millisecond, "%s: %s", title, expr)
		}
	}
}
