package cli

// The commands stats and version.

import (
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// statsCommand shows the counters of all partitions together. Some grow for as long as
// the prefix exists, the others are of now.
func statsCommand(o *command.Options) *cobra.Command {
	var window time.Duration
	c := o.WithWatch(o.WithJSON(command.New("stats", "Show the counters of the whole store, those of now and those of all time, or what ran lately", "  duly stats --window 1h",
		func(cmd *cobra.Command, _ []string) error {
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				if window != 0 {
					recent, err := s.Window(cmd.Context(), window)
					if err != nil {
						return err
					}
					return o.Print(recent, func(w *table.Page) { printWindow(w, &recent) })
				}
				stats, err := s.Stats(cmd.Context())
				if err != nil {
					return err
				}
				return o.Print(stats, func(w *table.Page) { printStats(w, &stats) })
			})
		})))
	command.DurationVar(c.Flags(), &window, "window", 0, "show what ran within the last time, by kind: from 5m to 24h")
	return c
}

// printWindow writes what ran of each kind.
func printWindow(w *table.Page, window *inspect.Window) {
	t := table.New(w, "KIND", "RUNS", "FAILURES", "FAILURE RATE", "LAG P50", "LAG P95")
	for i := range window.Kinds {
		k := &window.Kinds[i]
		t.Row(k.Kind, strconv.FormatInt(k.Runs, 10), strconv.FormatInt(k.Failures, 10), fmt.Sprintf("%.1f %%", 100*k.FailureRate()),
			k.LagP50.String(), k.LagP95.String())
	}
	t.End()
}

// counter is a figure with its name.
type counter struct {
	name string
	n    int64
}

// printStats writes all counters, those of now apart from those that only grow. Zeros are written as well: a counter that stays at zero is an answer too.
func printStats(w *table.Page, st *inspect.Stats) {
	write := func(title string, all []counter, more ...string) {
		w.Line("%s", title)
		t := table.New(w)
		for _, c := range all {
			t.Row("  "+c.name, strconv.FormatInt(c.n, 10))
		}
		if len(more) == 2 {
			t.Row("  "+more[0], more[1])
		}
		t.End()
	}
	write("now:", []counter{
		{"agents", st.Agents},
		{"waiting", st.Waiting},
		{"waiting, parked", st.Parked},
		{"parked, paused", st.Held},
		{"resting", st.Resting},
		{"in progress", st.InProgress},
		{"partitions", int64(st.Partitions)},
	}, "next due", table.Clock(st.NextDue))
	w.Line("")
	write("of all time, also of tasks that are gone:", []counter{
		{"submitted", st.Submitted},
		{"completed", st.Completed},
		{"failed", st.Failed},
		{"cancelled", st.Cancelled},
		{"runs rescheduled", st.Again},
		{"released, uncharged", st.Released},
		{"recovered", st.Recovered},
		{"replayed", st.Replayed},
		{"deleted", st.Deleted},
		{"records dropped", st.Trimmed},
		{"records damaged", st.Malformed},
	})
}

func versionCommand(o *command.Options) *cobra.Command {
	return o.WithJSON(command.New("version", "Show the version", "", func(*cobra.Command, []string) error {
		v := struct {
			Version  string `json:"version"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
		}{command.VersionOr(o.Version), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		return o.Print(v, func(w *table.Page) { w.Line("%s", versionLine(v.Version)) })
	}))
}

// versionLine is the version for people.
func versionLine(version string) string {
	return fmt.Sprintf("duly %s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
