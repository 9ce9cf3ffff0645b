package cli

// The commands activity and presets.

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// activityCommand needs the file: only there does a kind say that it has an activity schedule, and
// which. A daemon with the same file runs what this command books.
func activityCommand(o *command.Options) *cobra.Command {
	var subject core.Subject
	cmd := command.New("activity KIND", "Record user activity; schedules a run of a kind that has activity: { quiet: ... }",
		"  duly activity summary -c duly.yaml --user ann\n  duly activity summary -c duly.yaml --user ann --device phone --agent ada --json",
		func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Misuse("name it as KIND", "expected a kind")
			}
			if err := knowsActivity(cmd.Context(), o, args[0]); err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				noticed, err := s.Notice(cmd.Context(), args[0], subject)
				if err != nil {
					return err
				}
				return o.Print(noticed, func(w *table.Page) { printNoticed(w, &noticed) })
			})
		})
	// command refuses arguments by default; the check above names what is missing.
	cmd.Args = cobra.ArbitraryArgs
	flags := cmd.Flags()
	flags.StringVar(&subject.User, "user", "", "who was active (required)")
	flags.StringVar(&subject.Device, "device", "", "on which device")
	flags.StringVar(&subject.Agent, "agent", "", "with which agent, which then owns the task")
	return o.WithJSON(cmd)
}

// knowsActivity refuses a kind that has no activity schedule. It is asked before the store, so that a wrong kind is a mistake in usage and no
// entry in Redis; a server knows its own kinds.
func knowsActivity(ctx context.Context, o *command.Options, kind string) error {
	at, err := o.Place(ctx)
	if err != nil || at.Server.URL != "" {
		return err
	}
	c, err := command.LoadFile(ctx, o)
	if err != nil {
		return err
	}
	if !hasActivity(c, kind) {
		return exit.Misuse("with -c, name a file that gives its handler one, as activity: { quiet: 30m } (30 minutes after the last activity; delay: after the first)", "kind %q has no activity schedule", kind)
	}
	return nil
}

// hasActivity reports whether the file has an activity schedule for a kind.
// A kind can have one handler only, so the first one that matches is the one.
func hasActivity(c *dulyfile.File, kind string) bool {
	for _, h := range c.Handlers {
		if h.Kind == kind && h.Settings.Activity != nil {
			return true
		}
	}
	return false
}

// printNoticed writes what became of the activity, and where to look for its
// run: agent and id together name a task.
func printNoticed(w *table.Page, n *model.Noticed) {
	t := table.New(w)
	scheduled := "no, a run was already scheduled"
	if n.Scheduled {
		scheduled = "yes"
	}
	t.Row("scheduled a run", scheduled)
	t.Row("reason", string(n.Reason))
	t.Row("due", table.Clock(n.Due))
	t.Row("agent", n.Agent)
	t.Row("id", n.ID)
	t.End()
}

// presetsCommand needs no store: presets are part of the program.
func presetsCommand(o *command.Options) *cobra.Command {
	return o.WithJSON(command.New("presets", "List the presets for duly submit --preset", "  duly presets\n  duly submit --agent ada --id rollup --preset memory.rollup_day",
		func(*cobra.Command, []string) error {
			presets := model.Presets()
			return o.Print(map[string][]model.Preset{"presets": presets}, func(w *table.Page) { printPresets(w, presets) })
		}))
}

func printPresets(w *table.Page, presets []model.Preset) {
	t := table.New(w, "NAME", "KIND", "CRON", "JITTER", "LEVEL", "MIN AGE")
	// A dash keeps the column visible where a preset has nothing to say.
	orDash := func(s string) string {
		if s == "" || s == "0" {
			return "-"
		}
		return s
	}
	span := func(d time.Duration) string {
		if d == 0 {
			return "-"
		}
		return d.String()
	}
	for _, p := range presets {
		t.Row(p.Name, p.Kind, orDash(p.Cron), span(p.Jitter), orDash(strconv.Itoa(int(p.Level))), span(p.MinAge))
	}
	t.End()
}
