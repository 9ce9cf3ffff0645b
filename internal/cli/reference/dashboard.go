package reference

// The dashboard for Grafana, out of the list of metrics: a panel for each, but for those that are named with a reason.

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// rows are the rows of the dashboard from the top, with the metrics of each in order, and what their panels are called.
var rows = []struct {
	title  string
	panels [][2]string
}{
	{"Health", [][2]string{
		{"duly_store_up", "Store reachable"},
		{"duly_partitions_away", "Partitions away"},
		{"duly_overdue_seconds", "Longest overdue"},
		{"duly_processes", "Processes and workers"},
		{"duly_tasks", "Tasks"},
		{"duly_parked_tasks", "Parked tasks"},
		{"duly_abandoned_handlers", "Abandoned handlers"},
		{"duly_suspects", "Runs of tasks that crashed"},
	}},
	{"Work", [][2]string{
		{"duly_runs_total", "Runs that ended"},
		{"duly_submitted_total", "Tasks created"},
		{"duly_lag_seconds", "Lag: due to start"},
		{"duly_run_seconds", "Duration of runs"},
		{"duly_ticks_total", "Ticks"},
		{"duly_tick_seconds", "Duration of ticks"},
		{"duly_slots", "Slots"},
		{"duly_slots_of_one_agent", "Slots of the busiest agent"},
	}},
	{"Trouble", [][2]string{
		{"duly_leases_lost_total", "Leases lost"},
		{"duly_recovered_total", "Tasks recovered"},
		{"duly_audit_faults_total", "Faults found by audits"},
		{"duly_audit_pages_total", "Pages audited"},
		{"duly_breaker_total", "Submits refused"},
		{"duly_store_reset_total", "Stores lost"},
		{"duly_late_tasks", "Late tasks"},
		{"duly_late_unknown_seconds", "Lateness unknown for"},
		{"duly_key_holds_total", "Keys held"},
		{"duly_dropped_records", "Records dropped"},
	}},
	{"Limits and budgets", [][2]string{
		{"duly_limit_running", "Limits: running"},
		{"duly_limit_concurrency", "Limits: allowed at once"},
		{"duly_limit_waiting", "Limits: waiting"},
		{"duly_budget_used", "Budgets: used"},
		{"duly_budget_amount", "Budgets: allowed"},
		{"duly_budget_used_up", "Budgets: used up by"},
		{"duly_budget_waiting", "Budgets: waiting"},
	}},
	{"Store", [][2]string{{"duly_store_calls_total", "Store calls"}, {"duly_store_seconds", "Duration of store calls"}}},
}

// OffDashboard are the metrics that no panel shows, with why.
var OffDashboard = map[string]string{
	"duly_build_info": "it is always 1: its version is for joins with others",
}

// Sizes of panels, on a grid that is 24 wide.
const (
	panelWidth, panelHeight = 8, 8
	gridWidth               = 24
)

// What a dashboard of Grafana consists of, as far as this one needs it.
type (
	dashboard struct {
		UID           string         `json:"uid"`
		Title         string         `json:"title"`
		Description   string         `json:"description"`
		Tags          []string       `json:"tags"`
		SchemaVersion int            `json:"schemaVersion"`
		Refresh       string         `json:"refresh"`
		Time          map[string]any `json:"time"`
		Templating    map[string]any `json:"templating"`
		Panels        []panel        `json:"panels"`
	}
	panel struct {
		ID          int            `json:"id"`
		Type        string         `json:"type"`
		Title       string         `json:"title"`
		Description string         `json:"description,omitempty"`
		GridPos     map[string]int `json:"gridPos"`
		Datasource  map[string]any `json:"datasource,omitempty"`
		FieldConfig map[string]any `json:"fieldConfig,omitempty"`
		Targets     []target       `json:"targets,omitempty"`
	}
	target struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	}
)

// Dashboard is the dashboard, of the two scrapes that [Metrics] gets. It fails for a metric that it has no place for, and for a panel whose metric
// does not exist.
func Dashboard(with, without string) (string, error) {
	all, own := scraped(with).metrics, scraped(without).metrics
	source := map[string]any{"type": "prometheus", "uid": "${source}"}
	d := dashboard{
		UID: "duly", Title: "duly", Description: "Written by make generate.", Tags: []string{"duly"}, SchemaVersion: 39, Refresh: "30s",
		Time: map[string]any{"from": "now-6h", "to": "now"},
		Templating: map[string]any{"list": []any{
			map[string]any{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
			map[string]any{"name": "job", "label": "Job", "type": "query", "datasource": source, "query": "label_values(duly_store_up, job)", "refresh": 1, "includeAll": true, "allValue": ".+", "current": map[string]any{"text": "All", "value": "$__all"}},
		}},
	}
	shown := map[string]bool{}
	y := 0
	for _, row := range rows {
		d.Panels = append(d.Panels, panel{ID: len(d.Panels) + 1, Type: "row", Title: row.title, GridPos: map[string]int{"x": 0, "y": y, "w": gridWidth, "h": 1}})
		y++
		for i, p := range row.panels {
			m := all[p[0]]
			if m == nil {
				return "", fmt.Errorf("the dashboard has a panel for %s, which no scrape has", p[0])
			}
			shown[p[0]] = true
			at := map[string]int{"x": i * panelWidth % gridWidth, "y": y + i*panelWidth/gridWidth*panelHeight, "w": panelWidth, "h": panelHeight}
			d.Panels = append(d.Panels, panel{
				ID: len(d.Panels) + 1, Type: "timeseries", Title: p[1], Description: m.help, GridPos: at, Datasource: source,
				FieldConfig: map[string]any{"defaults": map[string]any{"unit": grafanaUnit(m), "min": 0}, "overrides": []any{}}, Targets: m.targets(own[p[0]] != nil),
			})
		}
		y += (len(row.panels)*panelWidth + gridWidth - 1) / gridWidth * panelHeight
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if shown[name] == (OffDashboard[name] != "") {
			return "", fmt.Errorf("the dashboard has to show %s or to say why it does not: see rows and OffDashboard", name)
		}
	}
	text, err := json.MarshalIndent(d, "", "  ")
	return string(text) + "\n", err
}

// targets are the questions of a panel: of counters the rate, of histograms quantiles, of gauges the value. Figures of a process are added up over
// processes, and those of the store are the same in each.
func (m *metric) targets(ofProcess bool) []target {
	labels := slices.Sorted(maps.Keys(m.labels))
	over := "max"
	if ofProcess {
		over = "sum"
	}
	if m.name == "duly_store_up" { // down for one is down
		over = "min"
	}
	var legend strings.Builder
	for _, label := range labels {
		legend.WriteString("{{" + label + "}} ")
	}
	is := strings.TrimSpace(legend.String())
	switch m.kind {
	case "counter":
		return []target{{"A", fmt.Sprintf("sum%s (rate(%s{job=~\"$job\"}[$__rate_interval]))", by(labels), m.name), is}}
	case "histogram":
		var out []target
		for i, quantile := range []string{"0.5", "0.95", "0.99"} {
			out = append(out, target{
				string(rune('A' + i)), fmt.Sprintf("histogram_quantile(%s, sum%s (rate(%s_bucket{job=~\"$job\"}[$__rate_interval])))", quantile, by(append([]string{"le"}, labels...)), m.name),
				strings.TrimSpace("p" + strings.TrimPrefix(quantile+"0", "0.")[:2] + " " + is),
			})
		}
		return out
	default:
		return []target{{"A", fmt.Sprintf("%s%s (%s{job=~\"$job\"})", over, by(labels), m.name), is}}
	}
}

// by is what an expression groups by; nothing if it adds up all.
func by(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return " by (" + strings.Join(labels, ", ") + ")"
}

// grafanaUnit is the unit of a panel, as Grafana calls it.
func grafanaUnit(m *metric) string {
	switch {
	case strings.HasSuffix(m.name, "_seconds"):
		return "s"
	case m.kind == "counter":
		return "ops"
	default:
		return "short"
	}
}
