package metrics_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/seed-6f6f2c11/duly/adapters/http/metrics"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// What an expression is about: matchers of labels, labels that it groups by, and names.
var (
	matcher  = regexp.MustCompile(`(\w+)\s*=~?\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
	metric   = regexp.MustCompile(`\b(?:duly|go|process)_\w+`)
)

// docs/reference/metrics.md lists every metric that a scrape has, as it is, and the alerts are about nothing else.
func TestThePageListsTheMetrics(t *testing.T) {
	t.Parallel()
	raw, _ := redis(t)
	w := newWorld(t, raw, metrics.Config{Version: "v1"}, core.Config{}, handlers(raw))
	require.NoError(t, w.s.SetLimits(t.Context(), core.Limit{About: core.LimitTarget{Kind: "good", Key: "*", Each: core.EachKey}, Concurrency: 3}))
	require.NoError(t, w.s.SetBudgets(t.Context(), core.Budget{
		About: core.BudgetTarget{LimitTarget: core.LimitTarget{Each: bound.EachTask}, Unit: "tokens", Per: core.PerDay}, Amount: core.AmountOf(1),
	}))
	p := w.scrape()
	data, err := os.ReadFile("../../../docs/reference/metrics.md")
	require.NoError(t, err)
	text := string(data)
	guide, err := os.ReadFile("../../../docs/alerts.md")
	require.NoError(t, err)
	rules, err := os.ReadFile("../../../deploy/prometheus/duly.rules.yml")
	require.NoError(t, err)

	listed := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(duly_\\w+)` \\| (\\w+) \\| ([^|]*)\\|").FindAllStringSubmatch(text, -1) {
		listed[m[1]] = m[2] + " " + strings.Join(strings.FieldsFunc(m[3], func(r rune) bool { return strings.ContainsRune("`, ", r) }), " ")
	}
	there := map[string]string{}
	for _, name := range p.ours() {
		there[name] = strings.ToLower(p.families[name].GetType().String()) + " " + strings.Join(p.labels(name), " ")
	}
	assert.Equal(t, there, listed)
	for _, name := range p.ours() {
		for _, m := range p.families[name].GetMetric() {
			for _, l := range m.GetLabel() {
				assert.True(t, slices.Contains([]string{"kind", "limit_key", "version", "unit"}, l.GetName()) || strings.Contains(text, "`"+l.GetValue()+"`"), "%s of %s", l, name)
			}
		}
	}
	all := alerts(t, rules)
	for alert, expr := range all {
		p.fits(alert, expr)
	}
	var described []string
	for _, m := range regexp.MustCompile(`(?m)^### (Duly\w+)$`).FindAllStringSubmatch(string(guide), -1) {
		described = append(described, m[1])
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(all)), described, "the page has a section for each alert")
}

// alerts are the expressions of the rules, by the names of their alerts.
func alerts(t *testing.T, text []byte) map[string]string {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	out := map[string]string{}
	for _, rule := range file.Groups[0].Rules {
		out[rule.Alert] = rule.Expr
	}
	assert.Len(t, out, 28)
	return out
}

// fits checks that an expression is about series that there are: their names, labels and values.
func (p page) fits(alert, expr string) {
	p.Helper()
	names := metric.FindAllString(expr, -1)
	if strings.Contains(expr, `up{job="duly"}`) { // what Prometheus says of its target, in place of the target
		return
	}
	assert.NotEmpty(p, names, alert)
	var labels []string
	for _, name := range names {
		family := p.family(name)
		if assert.Contains(p, p.families, family, "%s is about %s", alert, name) {
			labels = append(labels, p.labels(family)...)
		}
		histogram := p.families[family].GetType().String() == "HISTOGRAM"
		assert.Equal(p, histogram, name != family, "%s is about %s", alert, name)
		if histogram {
			labels = append(labels, "le")
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ", ") {
			assert.Contains(p, labels, label, alert)
		}
	}
	for _, m := range matcher.FindAllStringSubmatch(expr, -1) {
		for value := range strings.SplitSeq(m[2], "|") {
			found := slices.ContainsFunc(names, func(name string) bool { return len(p.series(p.family(name), m[1], value)) > 0 })
			assert.True(p, found, "%s: nothing has %s=%q", alert, m[1], value)
		}
	}
}

// family is the metric that a series belongs to.
func (p page) family(series string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(series, suffix); ok && p.families[name] != nil {
			return name
		}
	}
	return series
}

// labels of a metric, in order.
func (p page) labels(name string) []string {
	var names []string
	for _, l := range p.families[name].GetMetric()[0].GetLabel() {
		names = append(names, l.GetName())
	}
	return names
}

// A page that does not fit is noticed: the check itself is checked.
func TestAnExpressionAboutNothingIsNoticed(t *testing.T) {
	t.Parallel()
	raw, _ := redis(t)
	w := newWorld(t, raw, metrics.Config{}, core.Config{}, handlers(raw))
	p := w.scrape()
	for _, expr := range []string{
		"duly_task > 1", "1 > 0", `duly_tasks{status="dead"} > 1`, `duly_tasks{state="failed"} > 1`, "sum by (agent) (duly_tasks)",
		"rate(duly_lag_seconds[5m])", "duly_tasks_bucket", `duly_runs_total{outcome=~"failed|broken"}`,
	} {
		silent := page{T: new(testing.T), text: p.text, families: p.families}
		silent.fits("test", expr)
		assert.True(t, silent.Failed(), expr)
	}
}
