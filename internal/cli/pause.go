package cli

// The commands pause, resume and pauses.

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// pauseCommand stops new runs and lets those under way end. The pause is stored, so it
// holds for all processes and survives them.
func pauseCommand(o *command.Options) *cobra.Command {
	var on targetFlags
	var pause core.Pause
	var until string
	cmd := command.New("pause [AGENT [ID]]", "Pause a task, an agent, a kind, a limit key or everything: no new runs start",
		`  duly pause ada nightly --reason "quota used up" --for 1h
  duly pause ada
  duly pause --kind digest --until 2030-01-02T15:04:05Z
  duly pause --all --reason "maintenance" --by ops`,
		func(cmd *cobra.Command, args []string) error {
			t, err := on.target(cmd, args)
			if err != nil {
				return err
			}
			// RFC 3339 with a zone: a time without one would mean something else on another machine.
			if until != "" {
				if pause.Until, err = time.Parse(time.RFC3339, until); err != nil {
					return exit.Misuse("use one such as 2026-01-02T15:04:05Z", "--until %q is not a time", until)
				}
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				if err := s.Pause(cmd.Context(), t, pause); err != nil {
					return notLive(cmd.Context(), s, err, t)
				}
				return printPaused(cmd.Context(), o, s, t, true)
			})
		})
	on.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&pause.Reason, "reason", "", "why, for people")
	flags.StringVar(&pause.By, "by", userName(), "who you are; at a server a note beside its credential")
	flags.StringVar(&until, "until", "", "resume automatically at this time, such as 2026-01-02T15:04:05Z")
	command.DurationVar(flags, &pause.For, "for", 0, "resume automatically after this long")
	flags.BoolVar(&pause.Ahead, "ahead", false, "pause an agent or a kind before it exists")
	command.ZeroMeans(cmd, "reason", "by")
	return o.WithJSON(cmd)
}

// resumeCommand ends a pause of exactly this target; a wider one that also
// holds the task is named in the answer.
func resumeCommand(o *command.Options) *cobra.Command {
	var on targetFlags
	var ahead bool
	cmd := command.New("resume [AGENT [ID]]", "Resume what is paused; tasks that became due meanwhile are due now",
		"  duly resume ada nightly\n  duly resume ada\n  duly resume --kind digest\n  duly resume --all",
		func(cmd *cobra.Command, args []string) error {
			t, err := on.target(cmd, args)
			if err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				err := s.Resume(cmd.Context(), t)
				// --ahead makes resuming something unknown harmless, as it does for pausing it.
				if _, unknown := errors.AsType[*operate.UnknownTargetError](err); unknown && ahead {
					err = nil // it was not paused ahead either
				}
				if t.ID != "" {
					err = missing(err, t.Agent, t.ID)
				}
				if err != nil {
					return notKnown(cmd.Context(), s, err)
				}
				return printPaused(cmd.Context(), o, s, t, false)
			})
		})
	on.add(cmd)
	cmd.Flags().BoolVar(&ahead, "ahead", false, "accept an agent or a kind that does not exist yet")
	return o.WithJSON(cmd)
}

// notKnown says what to do about an agent or a kind that does not exist.
// It is most often a kind that was given as an agent, so the hint begins there.
func notKnown(ctx context.Context, s command.Scheduler, err error) error {
	no, unknown := errors.AsType[*operate.UnknownTargetError](err)
	if !unknown {
		return err
	}
	hint := ""
	if kind := no.Target.Kind; kind != "" {
		if kinds, failed := command.KindsOf(ctx, s); failed == nil { // else the hint is left out
			hint = help.DidYouMean(kind, kinds)
		}
	}
	return &exit.Failure{Why: err, Code: exit.NotFound, Todo: hint + "check the name (--kind names a kind), or pass --ahead if it will exist later"}
}

// notLive says which task cannot be paused, as it does not exist or has finished.
func notLive(ctx context.Context, s command.Scheduler, err error, t core.Target) error {
	if core.CodeOf(err) != core.CodeNotFound || t.ID == "" {
		return notKnown(ctx, s, err)
	}
	f := exit.Misuse("see duly status "+targetArgs(t), "agent %q has no live task %q", t.Agent, t.ID)
	f.Code = exit.NotFound
	return f
}

// printHeld writes the current state of a target: a task in full, a wider target by its name.
// A task is read back: other pauses may still hold it, which a plain "resumed" would hide.
func printPaused(ctx context.Context, o *command.Options, s command.Scheduler, t core.Target, paused bool) error {
	what := "resumed"
	if paused {
		what = "paused"
	}
	if t.ID == "" {
		answer := operation.Paused{Target: t, Paused: paused}
		return o.Print(answer, func(w *table.Page) { w.Line("%s: %s", what, targetName(t)) })
	}
	task, err := s.Task(ctx, t.Agent, t.ID)
	if err != nil {
		return missing(err, t.Agent, t.ID)
	}
	// Pausing never interrupts, which surprises some: the line says so.
	return o.Print(task, func(w *table.Page) {
		w.Line("%s: %s", what, targetName(t))
		if paused && task.Status == core.StatusInProgress {
			w.Line("the run in progress continues")
		}
		for i := range task.Pauses {
			if !paused {
				w.Line("still paused: %s; duly resume %s", pauseText(&task.Pauses[i]), targetArgs(task.Pauses[i].Target))
			}
		}
	})
}

// pausesCommand lists all pauses, so that an operator who did not make a
// forgotten one can find it.
func pausesCommand(o *command.Options) *cobra.Command {
	var limit int
	var cursor string
	cmd := command.New("pauses", "List pauses: of tasks, agents, kinds, keys or everything; by whom and why", "  duly pauses",
		func(cmd *cobra.Command, _ []string) error {
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				pauses, next, err := s.Pauses(cmd.Context(), limit, cursor)
				if err != nil {
					return err
				}
				answer := operation.Pauses{Pauses: pauses, Next: next}
				return o.Print(answer, func(w *table.Page) { printPauses(w, pauses, next) })
			})
		})
	pageFlags(cmd, &limit, &cursor)
	return o.WithJSON(cmd)
}

// pageFlags choose a page of what is listed in no order.
// The number is not exact: a store adds what each of its steps finds.
func pageFlags(cmd *cobra.Command, limit *int, cursor *string) {
	flags := cmd.Flags()
	flags.IntVar(limit, "limit", 0, "about how many, up to 1000 (default 100)")
	flags.StringVar(cursor, "cursor", "", "continue after the previous page (its cursor)")
}

// printPauses ends each line with the command that ends the pause.
func printPauses(w *table.Page, pauses []model.PauseInfo, next string) {
	if len(pauses) == 0 {
		w.Line("nothing is paused")
		return
	}
	t := table.New(w, "PAUSED", "SINCE", "UNTIL", "BY", "REASON", "TO RESUME")
	for i := range pauses {
		p := &pauses[i]
		t.Row(targetName(p.Target), table.Clock(p.Since), table.Clock(p.Until), table.First(p.Who()), table.First(p.Reason), "duly resume "+targetArgs(p.Target))
	}
	t.End()
	if next != "" {
		w.Line("")
		w.Line("more: duly pauses --cursor %s", next)
	}
}
