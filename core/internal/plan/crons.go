package plan

// Parsed cron schedules, kept between runs, as parsing costs far more than asking for the next time.

import (
	"errors"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Crons keeps parsed cron expressions, and for each the period for which its last answer holds: a hundred
// thousand tasks with one expression cost one computation each time it fires.
type Crons struct {
	mu   sync.Mutex
	Kept map[codec.CronSpec]*keptCron
}

// keptCron is a parsed schedule with its last answer, which serves all tasks that ask for times in
// between.
type keptCron struct {
	cron        *schedule.Cron
	after, next store.Millis // for every t in [after, next), cron.Next(t) == next
}

// MostCrons bounds the cache; when it is reached the cache is cleared, and fills again with use.
const MostCrons = 4096

// Next is the first time after a time at which a schedule fires; zero if there is none. The error is an *InvalidError
// that names the field.
func (c *Crons) Next(spec codec.CronSpec, after store.Millis) (store.Millis, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.Kept[spec]
	if k == nil {
		cron, err := schedule.ParseCron(spec.Expr, spec.Zone, spec.Match, spec.Gap)
		if err != nil {
			if wrong, ok := errors.AsType[*schedule.ParseError](err); ok {
				err = &store.InvalidError{Field: wrong.Field, Reason: wrong.Reason}
			}
			return 0, err
		}
		if len(c.Kept) >= MostCrons || c.Kept == nil {
			c.Kept = map[codec.CronSpec]*keptCron{}
		}
		k = &keptCron{cron: cron}
		c.Kept[spec] = k
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
