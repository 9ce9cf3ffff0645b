package cli

// The commands limit set, limit list and limit unset.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// limitKind are limits.
var limitKind = &boundKind[core.LimitTarget, bound.LimitUse]{
	noun: "limit", of: "limit on", list: command.Scheduler.Limits, print: printLimits, lift: command.Scheduler.LiftLimit,
	lifted: func(t core.LimitTarget) any { return operation.LiftedLimit{LimitTarget: t, Deleted: true} },
}

// limitCommand is the parent of three commands.
func limitCommand(o *command.Options) *cobra.Command {
	var on limitFlags
	unset := limitKind.unsetCommand(o, "Lift a limit, named by the flags that set it",
		"  duly limit unset --kind digest\n  duly limit unset --key 'openai:*' --each key", on.target)
	on.add(unset)
	return limitKind.parent("limit", "Bound how many tasks run at once and start within a time, over all processes",
		"  duly limit set --kind digest --concurrency 5\n  duly limit list\n  duly limit unset --kind digest",
		limitSetCommand(o), limitKind.listCommand(o, "List limits: what they are about, what they allow, and how much is used"), unset)
}

// limitFlags name what a limit is about.
type limitFlags struct{ aboutFlags }

func (f *limitFlags) add(cmd *cobra.Command) {
	f.aboutFlags.add(cmd, "tasks", "tasks", "bound each agent, or each key, by itself: agent or key", string(core.EachAgent), string(core.EachKey))
}

func (f *limitFlags) target() (core.LimitTarget, error) { return f.aboutFlags.target("limit") }

// limitArgs are the arguments that name what a limit is about.
func limitArgs(t core.LimitTarget) string {
	var args []string
	for _, f := range []struct{ flag, value string }{{"--kind", t.Kind}, {"--key", t.Key}, {"--each", string(t.Each)}} {
		if f.value != "" {
			args = append(args, f.flag+" "+table.ShellWord(f.value))
		}
	}
	if len(args) == 0 {
		return "--all"
	}
	return strings.Join(args, " ")
}

// limitSetCommand replaces one whole limit: a bound that is omitted is unbounded.
func limitSetCommand(o *command.Options) *cobra.Command {
	var on limitFlags
	var l core.Limit
	var rate string
	cmd := command.New("set", "Set a limit; it counts from the next claim of every process",
		`  duly limit set --kind digest --concurrency 5
  duly limit set --key 'openai:*' --each key --concurrency 8 --rate 60/1m --burst 10
  duly limit set --each agent --rate 100/1h
  duly limit set --all --concurrency 200`,
		func(cmd *cobra.Command, _ []string) error {
			var err error
			if l.About, err = on.target(); err == nil {
				err = allowed(&l, rate, cmd.Flags().Changed("burst"))
			}
			if err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				if err := s.SetLimits(cmd.Context(), l); err != nil {
					return err
				}
				set, err := s.LimitOn(cmd.Context(), l.About)
				if err != nil {
					return err
				}
				return o.Print(set, func(w *table.Page) { w.Line("limit on %s: %s", set.About, allows(&set)) })
			})
		})
	on.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&l.Concurrency, "concurrency", 0, "most runs at once")
	flags.BoolVar(&l.Adaptive, "adaptive", false, "adjust the limit to what RetryAfter answers of handlers show, up to --concurrency")
	flags.StringVar(&rate, "rate", "", "most starts within a time, such as 60/1m")
	flags.IntVar(&l.Burst, "burst", 0, "how many more may start at once after a pause; 0 for none (default what a tenth of a second allows, at least 1)")
	command.ZeroMeans(cmd, "burst")
	return o.WithJSON(cmd)
}

// allowed puts what the flags allow into a limit.
func allowed(l *core.Limit, rate string, bursts bool) (err error) {
	if rate != "" {
		if l.Rate, l.Per, err = core.ParseRate(rate); err != nil {
			return err
		}
	}
	switch {
	case bursts && l.Burst < 0:
		return exit.Misuse("use 0 for none", "--burst must not be negative, not %d", l.Burst)
	case bursts && l.Burst == 0:
		l.Burst = -1 // core takes zero for omitted
	}
	return nil
}

// printLimits ends each line with the command that lifts the limit.
func printLimits(w *table.Page, limits []bound.LimitUse) {
	t := table.New(w, "LIMIT ON", "ALLOWS", "RUNNING", "WAITING", "TO UNSET")
	for i := range limits {
		l := &limits[i]
		t.Row(l.About.String(), allows(l), strconv.FormatInt(l.Running, 10), strconv.FormatInt(l.Waiting, 10), "duly limit unset "+limitArgs(l.About))
	}
	t.End()
}

// allows is what a limit allows, as its flags say it.
func allows(l *bound.LimitUse) string {
	var bounds []string
	if l.Concurrency > 0 {
		bounds = append(bounds, strconv.Itoa(l.Concurrency)+" at once")
	}
	if l.Rate > 0 {
		bounds = append(bounds, l.RateText()+", burst "+strconv.Itoa(l.Burst))
	}
	if l.Adaptive {
		bounds = append(bounds, "what is served")
	}
	for i := range l.Learned {
		bounds = append(bounds, learned(&l.Learned[i]))
	}
	return strings.Join(bounds, ", ")
}

// learned is what an adaptive limit has found out.
func learned(l *bound.Learned) string {
	text := strconv.Itoa(l.Runs) + " at once"
	if l.Of != "" {
		text = table.First(l.Of) + ": " + text
	}
	if l.PerMinute > 0 {
		text += fmt.Sprintf(" and %.1f/1m", l.PerMinute)
	}
	if l.Probing {
		text += ", asks again"
		if l.HeldUntil > 0 {
			text += " at " + table.Clock(l.HeldUntil.Time())
		}
	}
	return text
}
