package console

// The page of charts, of all kinds or of one, and the small ones on other pages: what ran within an hour, a day or a week.

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// period is how far back charts go.
type period struct {
	Name, Label  string // in addresses, and in words
	of           time.Duration
	steps, ticks int
}

// periods are those that can be chosen; the first one is shown if none is.
var periods = []period{{"1h", "1 hour", time.Hour, 12, 4}, {"24h", "24 hours", 24 * time.Hour, 24, 4}, {"7d", "7 days", 7 * 24 * time.Hour, 28, 7}}

// periodOf is the period of an address.
func periodOf(v *visit) (period, error) {
	name := v.q.Get("over")
	for _, p := range periods {
		if name == p.Name || name == "" {
			return p, nil
		}
	}
	return period{}, &core.InvalidError{Field: "over", Reason: "must be 1h, 24h or 7d"}
}

// periodLink leads to another period.
type periodLink struct {
	Label, To string
	Current   bool
}

// links lead to the same page over each period.
func (p period) links(path string, more url.Values) []periodLink {
	var out []periodLink
	for _, other := range periods {
		q := url.Values{"over": {other.Name}}
		for name, values := range more {
			if values[0] != "" {
				q[name] = values
			}
		}
		out = append(out, periodLink{other.Label, path + "?" + q.Encode(), other.Name == p.Name})
	}
	return out
}

// chartsPage is the page of charts.
type chartsPage struct {
	Kind    *kindRow // whose page it is; nil for all
	Name    string   // of the kind
	Over    period
	Periods []periodLink
	Charts  []chart
	Kinds   []kindCurve
	Others  int // kinds that are not shown
	Without bool
	Steers  bool
	Budgets int // that are not drawn
	All     string
}

// kindCurve is what ran of a kind within the period.
type kindCurve struct {
	Name, To       string
	Runs, Failures int64
	LagP95         time.Duration // of the worst step
	Depth          string
	Spark          spark
}

// Bounds of what is drawn.
const (
	kindsDrawn   = 30
	budgetsDrawn = 6
)

// Lags that an axis may end at, in milliseconds.
var lagTops = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000}

// charts is the page of charts.
func (c *console) charts(v *visit) (*page, error) {
	if err := v.may(model.ActionRead, ""); err != nil {
		return nil, err
	}
	over, err := periodOf(v)
	if err != nil {
		return nil, err
	}
	kind := v.q.Get("kind")
	p := chartsPage{Name: kind, Over: over, Periods: over.links(Path+"/charts", url.Values{"kind": {kind}}), Steers: v.steers(""), All: Path + "/charts?over=" + over.Name}
	title := "Charts"
	if kind != "" {
		title = "Kind " + kind
		if p.Kind, err = kindOf(v, kind); unlessAbsent(err) != nil {
			return nil, err
		}
	}
	trend, err := c.scheduler.Trend(v.r.Context(), over.of, over.steps)
	switch {
	case core.CodeOf(err) == core.CodeInvalid: // a program without counters of the last hours
		p.Without = true
		return &page{name: "charts", title: title, body: p}, nil
	case err != nil:
		return nil, err
	}
	v.now = trend.Until
	steps := trend.Of(kind)
	p.Charts = over.small(&trend, steps)
	budgets, left := over.budgets(&trend, kind)
	p.Budgets = left
	if budgets != nil {
		p.Charts = append(p.Charts, *budgets)
	}
	if kind == "" {
		p.Kinds, p.Others = over.kinds(&trend)
	}
	return &page{name: "charts", title: title, body: p}, nil
}

// kindOf is what is known of a kind now.
func kindOf(v *visit, kind string) (*kindRow, error) {
	all, err := v.scheduler.DescribeKinds(v.r.Context())
	if err != nil {
		return nil, err
	}
	for i := range all.Kinds {
		if k := all.Kinds[i]; k.Kind == kind {
			return &kindRow{KindInfo: k, Target: core.Target{Kind: kind}, State: kindState(&k)}, nil
		}
	}
	return nil, core.ErrNotFound
}

// small are the charts that other pages have too: runs, lag and depth.
func (p period) small(t *inspect.Trend, steps []inspect.TrendStep) []chart {
	runs, failed, depth := make([]float64, len(steps)), make([]float64, len(steps)), make([]float64, len(steps))
	p50, p95 := make([]float64, len(steps)), make([]float64, len(steps))
	var allRuns, allFailed int64
	var latest time.Duration
	last := "not measured yet"
	for i := range steps {
		s := &steps[i]
		runs[i], failed[i], depth[i], p50[i], p95[i] = float64(s.Runs), float64(s.Failures), notMeasured, notMeasured, notMeasured
		if s.Measured {
			depth[i], last = float64(s.Depth), counted(s.Depth, "task")+" when last measured"
		}
		if s.Runs > 0 {
			p50[i], p95[i] = float64(s.LagP50.Milliseconds()), float64(s.LagP95.Milliseconds())
		}
		allRuns, allFailed, latest = allRuns+s.Runs, allFailed+s.Failures, max(latest, s.LagP95)
	}
	lag := "no runs"
	if allRuns > 0 {
		lag = "p95 at most " + took(latest)
	}
	return []chart{
		p.draw(t, &series{title: "Runs", summary: counted(allRuns, "run") + ", " + counted(allFailed, "failure"), text: whole, tops: []float64{4}, rows: []curve{{"ended", runs}, {"failed", failed}}}),
		p.draw(t, &series{title: "Lag", summary: lag, text: milliseconds, tops: lagTops, rows: []curve{{"p95", p95}, {"p50", p50}}}),
		p.draw(t, &series{title: "Waiting", summary: last, text: whole, tops: []float64{4}, rows: []curve{{"tasks", depth}}}),
	}
}

// draw draws a series over the period.
func (p period) draw(t *inspect.Trend, s *series) chart {
	s.step, s.ticks = t.Step, p.ticks
	if len(t.Steps) > 0 {
		s.begin = t.Steps[len(t.Steps)-1].Since.Add(-time.Duration(len(t.Steps)-1) * t.Step)
	}
	return draw(s)
}

// budgets draws how much of the budgets was used, of those that are used most, and says how many others there are; of a kind those about it alone.
func (p period) budgets(t *inspect.Trend, kind string) (*chart, int) {
	most := map[string]float64{}
	for i := range t.Steps {
		for name, used := range t.Steps[i].Used {
			if kind == "" || strings.Contains(name, "kind \""+kind+"\"") {
				most[name] = max(most[name], used)
			}
		}
	}
	if len(most) == 0 {
		return nil, 0
	}
	var names []string
	for name := range most {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(most[b], most[a]), strings.Compare(a, b)) })
	drawn := names[:min(len(names), budgetsDrawn)]
	s := &series{title: "Budgets", summary: "share used; of each by itself, the highest", text: sharePercent, tops: []float64{0.01, 0.1, 0.25, 0.5, 1, 1.5, 2}, lines: true}
	for _, name := range drawn {
		values := make([]float64, len(t.Steps))
		for i := range t.Steps {
			values[i] = notMeasured
			if used, known := t.Steps[i].Used[name]; known {
				values[i] = used
			}
		}
		s.rows = append(s.rows, curve{short(name), values})
	}
	c := p.draw(t, s)
	return &c, len(names) - len(drawn)
}

// kinds are the kinds of which most has run, and how many others there are.
func (p period) kinds(t *inspect.Trend) ([]kindCurve, int) {
	var out []kindCurve
	for _, kind := range t.Kinds {
		out = append(out, p.curve(kind, t.Of(kind)))
	}
	slices.SortStableFunc(out, func(a, b kindCurve) int { return cmp.Compare(b.Runs, a.Runs) })
	others := max(len(out)-kindsDrawn, 0)
	return out[:len(out)-others], others
}

// curve is what ran of a kind.
func (p period) curve(kind string, steps []inspect.TrendStep) kindCurve {
	k := kindCurve{Name: kind, To: kindURL(kind, p.Name), Depth: "–"}
	values := make([]float64, len(steps))
	for i := range steps {
		s := &steps[i]
		k.Runs, k.Failures, k.LagP95, values[i] = k.Runs+s.Runs, k.Failures+s.Failures, max(k.LagP95, s.LagP95), float64(s.Runs)
		if s.Measured {
			k.Depth = count(s.Depth)
		}
	}
	k.Spark = sparkOf(values, counted(k.Runs, "run")+" within "+p.Label)
	return k
}

// kindURL is the address of the page of a kind.
func kindURL(kind, over string) string {
	q := url.Values{"kind": {kind}}
	if over != "" {
		q.Set("over", over)
	}
	return Path + "/charts?" + q.Encode()
}
