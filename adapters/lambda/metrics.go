package lambda

import (
	"log/slog"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// Figures of ticks, in the log: CloudWatch makes metrics of them, which alarms watch. A function that is not scraped has no other way.

// The one metric that a tick has, as each of them is paid for.
const (
	// MetricNamespace is where CloudWatch shows it.
	MetricNamespace = "duly"
	// MetricOldestDue is how long, in seconds, the oldest task has been due that a tick left behind: 0 if there is none. A function
	// that keeps up leaves none for longer than its schedule's interval.
	MetricOldestDue = "oldest_due"
)

// embedded is what marks a line for CloudWatch.
type embedded struct {
	Timestamp int64       // Unix ms
	Metrics   []directive `json:"CloudWatchMetrics"`
}

// directive says which members of the line are metrics, and which dimensions.
type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []metric
}

type metric struct{ Name, Unit string }

// figures are added to the line of a tick. What is no metric can be searched for with Logs Insights.
func (f *Function) figures(report *core.Report) []slog.Attr {
	late := time.Duration(0)
	if !report.NextDueAt.IsZero() {
		late = max(0, -f.scheduler.Until(report.NextDueAt))
	}
	return []slog.Attr{
		slog.Any("_aws", embedded{ //nolint:sloglint // the name is CloudWatch's
			Timestamp: time.Now().UnixMilli(), //nolint:forbidigo // of a line in the log; no task depends on it
			Metrics: []directive{{
				Namespace: MetricNamespace, Dimensions: [][]string{{"function_name"}},
				Metrics: []metric{{MetricOldestDue, "Seconds"}},
			}},
		}),
		slog.String("function_name", f.config.Metrics),
		slog.Float64(MetricOldestDue, late.Seconds()),
		slog.Int("due", report.Ran+report.Left),
		slog.Int("cut_off", report.Released),
	}
}
