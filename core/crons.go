package core

// Parsed cron schedules, kept between runs, as parsing costs far more than asking for the next time.

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// cronSpec names a cron schedule.
type cronSpec struct {
	expr, zone string
	match      schedule.DayMatch
	gap        schedule.Gap
}

// crons keeps parsed cron expressions, and for each the stretch of time that its last answer holds for: a hundred
// thousand tasks with one expression cost one computation each time it fires.
type crons struct {
	mu   sync.Mutex
	kept map[cronSpec]*keptCron
}

// keptCron is a parsed schedule with its last answer, which serves all tasks that ask for times in
// between.
type keptCron struct {
	cron        *schedule.Cron
	after, next store.Millis // for every t in [after, next), cron.Next(t) == next
}

// mostCrons bounds what is kept; when it is reached all of it is forgotten, and comes back as it is used.
const mostCrons = 4096

// next is the first time after a time at which a schedule fires; zero if there is none. The error is an *InvalidError
// that names the field.
func (c *crons) next(spec cronSpec, after store.Millis) (store.Millis, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kept[spec]
	if k == nil {
		cron, err := schedule.ParseCron(spec.expr, spec.zone, spec.match, spec.gap)
		if err != nil {
			if wrong, ok := errors.AsType[*schedule.ParseError](err); ok {
				err = &InvalidError{Field: wrong.Field, Reason: wrong.Reason}
			}
			return 0, err
		}
		if len(c.kept) >= mostCrons || c.kept == nil {
			c.kept = map[cronSpec]*keptCron{}
		}
		k = &keptCron{cron: cron}
		c.kept[spec] = k
	}
	if k.next == 0 || after < k.after || after >= k.next {
		next, err := k.cron.Next(after.Time())
		if err != nil && !errors.Is(err, schedule.ErrNever) {
			return 0, err
		}
		k.after, k.next = after, store.MillisOf(next)
	}
	return k.next, nil
}

// cron is the task's schedule, if it is one.
func (t *NewTask) cron() cronSpec {
	return cronSpec{expr: t.Cron, zone: t.Zone, match: t.DayMatch, gap: t.Gap}
}

// plan works out when tasks are due first whose times are fixed from then on, by the store's clock. If that is not known yet the
// store is asked, but only once all tasks have been checked.
func (s *Scheduler) plan(ctx context.Context, tasks []NewTask, subs []store.Submission) error {
	for i := range tasks {
		t := &tasks[i]
		if !t.planned() || t.restored.planned() {
			continue
		}
		if _, err := s.askedNow(ctx); err != nil {
			return err
		}
		due, err := s.firstDue(t)
		if err != nil {
			return err
		}
		// What it is due for is kept beside when it is due: jitter puts that off, and a run by hand moves it.
		subs[i].State = (&state{Nominal: due}).First()
		subs[i].Due = store.When{At: due.Add(jitter(t.Jitter, subs[i].Agent, subs[i].ID, due))}
	}
	return nil
}

// planned reports whether the times of a task are fixed from its first one on, and that is not now.
func (t *NewTask) planned() bool { return t.Cron != "" || t.From == FromStart && t.Delay > 0 }

// firstDue is when a new task with fixed times is due first, by the clock of the store.
func (s *Scheduler) firstDue(t *NewTask) (store.Millis, error) {
	if t.Cron == "" {
		return s.storeNow().Add(t.Delay), nil
	}
	return s.crons.next(s.habits.lastOf(t.Agent).zoned(t.cron(), s.config.Zone), s.storeNow())
}
