package cli

// The command next.

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/schedule/phrase"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// nextCommand needs no store and no file: it shows what the parser of schedules makes of an
// expression, by the same code that plans tasks.
func nextCommand(o *command.Options) *cobra.Command {
	var from, gap, match, every, at string
	var s inspect.Preview
	cmd := o.WithJSON(command.New("next [CRON | PHRASE]", "Show when a schedule is due next",
		"  duly next \"0 9 * * MON-FRI\" --zone Europe/Berlin\n  duly next \"30 2 * * *\" --zone America/New_York --from 2026-03-07T00:00:00Z -n 3\n  duly next --every 36h\n  duly next \"every monday and thursday at 18:30\" --zone Europe/Berlin",
		func(_ *cobra.Command, args []string) error {
			var err error
			if s.At, err = timeOf("--at", at); err != nil {
				return err
			}
			if s.After, err = timeOf("--from", from); err != nil {
				return err
			}
			if every != "" {
				if s.Every, err = inspect.ParseDuration(every); err != nil {
					return &core.InvalidError{Field: "--every", Reason: "must be a duration such as 90m or 1d"}
				}
			}
			// This machine's clock: it only chooses where to begin.
			if s.After.IsZero() {
				s.After = time.Now()
			}
			s.Gap, s.DayMatch = schedule.Gap(gap), schedule.DayMatch(match)
			if err := readSchedule(&s, strings.Join(args, "")); err != nil {
				return err
			}
			return next(o, &s)
		}))
	cmd.Args = cobra.MaximumNArgs(1)
	flags := cmd.Flags()
	flags.StringVar(&s.Zone, "zone", "", "IANA zone, such as America/New_York (default UTC)")
	flags.StringVar(&every, "every", "", "an interval in place of an expression, such as 36h")
	flags.StringVar(&at, "at", "", "a time in place of an expression")
	flags.StringVar(&from, "from", "", "show times after this one, such as 2026-01-02T15:04:05Z (default now)")
	flags.IntVarP(&s.Count, "count", "n", 5, "how many times")
	flags.StringVar(&gap, "gap", "", "a local time that a clock change skips: run at the end of the gap (default) or skip")
	flags.StringVar(&match, "day-match", "", "if both day fields are restricted: any (default) or all must match")
	choices(cmd, "gap", string(schedule.GapRun), string(schedule.GapSkip))
	choices(cmd, "day-match", string(schedule.DayMatchAny), string(schedule.DayMatchAll))
	command.ZeroMeans(cmd, "count") // has bounds of its own
	return cmd
}

// readSchedule reads the argument: an expression, or a schedule in words, which has none of the signs of expressions. None is empty.
func readSchedule(s *inspect.Preview, text string) error {
	if text == "" || strings.ContainsAny(text, "*?=#@") {
		s.Cron = text
		return nil
	}
	var in *time.Location
	if s.Zone != "" {
		var err error
		if in, err = schedule.LoadZone(s.Zone); err != nil {
			return &core.InvalidError{Field: "--zone", Reason: fmt.Sprintf("%q is not known: use an IANA name such as Europe/Berlin", s.Zone)}
		}
	}
	said, err := phrase.Parse(text, s.After, in)
	if err != nil {
		return exit.Misuse("see duly next --help", "%q: %w", text, err)
	}
	switch {
	case said.Manual:
		return exit.Misuse("say a time", "%q has no time", text)
	case said.Cron != "":
		s.Cron, s.Zone = said.Cron, cmp.Or(said.Zone, s.Zone)
		s.Gap, s.DayMatch = cmp.Or(said.Gap, s.Gap), cmp.Or(said.DayMatch, s.DayMatch)
		return nil
	case said.Every != 0:
		s.Every = said.Every
	case said.At.IsZero():
		s.At = s.After.Add(max(said.Delay, time.Millisecond))
	default:
		s.At, s.Zone = said.At, ""
	}
	return nil
}

// timeOf reads a time of a flag; the zero time if it is not given.
func timeOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, &core.InvalidError{Field: flag, Reason: "must be a time such as 2026-01-02T15:04:05Z"}
	}
	return at, nil
}

// next prints the times of a schedule, and beside them which of them follow a change of the clocks.
func next(o *command.Options, s *inspect.Preview) error {
	f, err := s.Forecast()
	if err != nil {
		return err
	}
	if len(f.Times) == 0 {
		what := "it"
		if s.Cron != "" {
			what = fmt.Sprintf("cron %q", s.Cron)
		}
		return &exit.Failure{Why: fmt.Errorf("%s does not fire after %s: never", what, s.After.Format(time.RFC3339)), Code: exit.Usage}
	}
	return o.Print(f, func(w *table.Page) {
		changes := f.Changes
		for _, t := range f.Times {
			line := t.Format(time.RFC3339)
			if len(changes) > 0 && changes[0].Before.Equal(t) {
				line += fmt.Sprintf("  clocks changed by %s", shift(changes[0].Shift))
				changes = changes[1:]
			}
			fmt.Fprintln(&w.Buffer, line)
		}
	})
}

// shift is by how much clocks are changed, with its sign.
func shift(d time.Duration) string {
	if d > 0 {
		return "+" + d.String()
	}
	return d.String()
}
