package cli

// The command next.

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// mostTimes is how many times `duly next` prints at most.
// A bound on the time and the memory of a typing mistake.
const mostTimes = 1000

// nextCommand needs no store and no file: it shows what the parser of schedules makes of an
// expression, by the same code that plans tasks.
func (p *process) nextCommand(o *options) *cobra.Command {
	var zone, from, gap, match string
	var n int
	cmd := o.withJSON(command("next CRON", "Show when a cron expression fires next",
		"  duly next \"0 9 * * MON-FRI\" --zone Europe/Berlin\n  duly next \"30 2 * * *\" --zone America/New_York --from 2026-03-07T00:00:00Z -n 3",
		func(_ *cobra.Command, args []string) error {
			if n < 1 || n > mostTimes {
				return &core.InvalidError{Field: "-n", Reason: fmt.Sprintf("must be from 1 to %d, not %d", mostTimes, n)}
			}
			// This machine's clock: it only chooses where to begin.
			at := time.Now()
			if from != "" {
				var err error
				if at, err = time.Parse(time.RFC3339, from); err != nil {
					return &core.InvalidError{Field: "--from", Reason: "must be a time such as 2026-01-02T15:04:05Z"}
				}
			}
			c, err := parseCron(args[0], zone, match, gap)
			if err != nil {
				return err
			}
			times, err := nextTimes(c, at, n)
			if err != nil {
				return &failure{why: fmt.Errorf("cron %q does not fire after %s: %w", args[0], at.Format(time.RFC3339), err), code: exitUsage}
			}
			return o.print(p.stdout, map[string][]string{"times": times}, func(w *table.Page) {
				for _, t := range times {
					fmt.Fprintln(&w.Buffer, t)
				}
			})
		}))
	cmd.Args = cobra.ExactArgs(1)
	flags := cmd.Flags()
	flags.StringVar(&zone, "zone", "", "IANA zone, such as America/New_York (default UTC)")
	flags.StringVar(&from, "from", "", "show times after this one, such as 2026-01-02T15:04:05Z (default now)")
	flags.IntVarP(&n, "count", "n", 5, "how many times")
	flags.StringVar(&gap, "gap", "", "a local time that a clock change skips: run at the end of the gap (default) or skip")
	flags.StringVar(&match, "day-match", "", "if both day fields are restricted: any (default) or all must match")
	zeroMeans(cmd, "count") // has bounds of its own
	return cmd
}

// parseCron parses an expression. What is wrong with a parameter is named by its flag, as with the field of a task.
// The parser speaks of fields of a task, whose names asFlag turns into flags.
func parseCron(expr, zone, match, gap string) (*schedule.Cron, error) {
	c, err := schedule.ParseCron(expr, zone, schedule.DayMatch(match), schedule.Gap(gap))
	if wrong, ok := errors.AsType[*schedule.ParseError](err); ok {
		return nil, &core.InvalidError{Field: wrong.Field, Reason: wrong.Reason}
	}
	return c, err
}

// nextTimes are the next times after a time, as RFC 3339 with the offset of the zone.
// There may be fewer, but not none.
// An expression whose times come to an end gives those that it has.
func nextTimes(c *schedule.Cron, after time.Time, n int) ([]string, error) {
	times := []string{}
	for range n {
		next, err := c.Next(after)
		if errors.Is(err, schedule.ErrNever) && len(times) > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		after = next
		times = append(times, next.Format(time.RFC3339))
	}
	return times, nil
}
