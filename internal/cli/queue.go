package cli

// The command queue.

import (
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// queueCommand shows depth, durations and lag of each kind: the first
// place to look when tasks are late.
func queueCommand(o *command.Options) *cobra.Command {
	cmd := command.New("queue [KIND]", "Show counters for each kind of task; with a kind, also its last failures",
		"  duly queue\n  duly queue digest --json",
		func(cmd *cobra.Command, args []string) error {
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				stats, err := s.Stats(cmd.Context())
				if err != nil {
					return err
				}
				// A single kind needs no call of its own: the statistics of all kinds come together.
				if len(args) == 1 {
					return printKind(o, stats.Kinds, args[0])
				}
				if stats.Kinds == nil {
					stats.Kinds = []inspect.KindStats{}
				}
				answer := struct {
					Kinds []inspect.KindStats `json:"kinds"`
				}{stats.Kinds}
				return o.Print(answer, func(w *table.Page) { printKinds(w, stats.Kinds) })
			})
		})
	cmd.Args = cobra.MaximumNArgs(1)
	return o.WithWatch(o.WithJSON(cmd))
}

// printKind shows one kind with its last failures, which the list of all kinds leaves out.
func printKind(o *command.Options, kinds []inspect.KindStats, kind string) error {
	i := slices.IndexFunc(kinds, func(k inspect.KindStats) bool { return k.Kind == kind })
	if i < 0 {
		var names []string
		for i := range kinds {
			names = append(names, kinds[i].Kind)
		}
		f := exit.Misuse(help.DidYouMean(kind, names)+"see duly queue", "no task of kind %q exists", kind)
		f.Code = exit.NotFound
		return f
	}
	return o.Print(kinds[i], func(w *table.Page) {
		printKinds(w, kinds[i:i+1])
		if len(kinds[i].Failed) == 0 {
			return
		}
		w.Line("")
		t := table.New(w, "FAILED", "AGENT", "ID", "ERROR")
		for _, f := range kinds[i].Failed {
			t.Row(table.Clock(f.At), f.Agent, f.ID, table.First(f.Error))
		}
		t.End()
	})
}

// printKinds writes one line for each kind. A kind that has never run has a dash for
// each duration, as zero would look fast.
func printKinds(w *table.Page, kinds []inspect.KindStats) {
	if len(kinds) == 0 {
		w.Line("no tasks")
		return
	}
	t := table.New(w, "KIND", "DEPTH", "RESTING", "RUNNING", "RUNS", "FAILURES", "MIN", "AVG", "MAX", "LAG", "MAX LAG")
	for i := range kinds {
		k := &kinds[i]
		n := func(n int64) string { return strconv.FormatInt(n, 10) }
		took := func(d time.Duration) string {
			if k.Runs == 0 {
				return "-"
			}
			return d.Truncate(time.Millisecond).String() // as the JSON has it
		}
		t.Row(k.Kind, n(k.Depth()), n(k.Resting), n(k.Running), n(k.Runs), n(k.Failures),
			took(k.Shortest), took(k.Average()), took(k.Longest), took(k.AverageLag()), took(k.LongestLag))
	}
	t.End()
}
