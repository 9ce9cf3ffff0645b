package plan

// Parsed cron schedules, kept between runs, as parsing costs far more than asking for the next time.

import (
	"errors"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Crons keeps parsed cron expressions, and for each the period for which its last answer holds: a hundred
// thousand tasks with one expression cost one computation each time it fires.
type Crons struct {
	mu   sync.Mutex
	Kept map[codec.CronSpec]*keptCron
}

// mostGaps is how many times of a schedule are looked at for how far apart they are.
const mostGaps = 1000

// Gaps are the shortest and the longest time between two of the next times of a schedule; zero for one that fires once, or never. The error is that of Next.
func (c *Crons) Gaps(spec codec.CronSpec, after moment.Millis) (least, most time.Duration, err error) {
	if _, err := c.Next(spec, after); err != nil {
		return 0, 0, err
	}
	c.mu.Lock()
	k := c.Kept[spec]
	if k != nil && k.asked != 0 && after >= k.asked && after.Sub(k.asked) < gapsFor {
		least, most = k.least, k.most
		c.mu.Unlock()
		return least, most, nil
	}
	c.mu.Unlock()
	if k == nil { // the cache was just cleared
		return c.Gaps(spec, after)
	}
	least, most = k.gaps(after)
	c.mu.Lock()
	k.asked, k.least, k.most = after, least, most
	c.mu.Unlock()
	return least, most, nil
}

// gapsFor is how long the gaps of a schedule are kept: they take a thousand computations.
const gapsFor = time.Hour

// gaps are those of Gaps.
func (k *keptCron) gaps(after moment.Millis) (least, most time.Duration) {
	at, never := k.cron.Next(after.Time())
	for range mostGaps {
		var next time.Time
		if never == nil {
			next, never = k.cron.Next(at)
		}
		if never != nil { // there is no further time
			break
		}
		gap := next.Sub(at)
		if least == 0 || gap < least {
			least = gap
		}
		most, at = max(most, gap), next
	}
	return least, most
}

// keptCron is a parsed schedule with its last answer, which serves all tasks that ask for times in
// between.
type keptCron struct {
	cron        *schedule.Cron
	after, next moment.Millis // for every t in [after, next), cron.Next(t) == next

	asked       moment.Millis // when its gaps were last computed
	least, most time.Duration
}

// MostCrons bounds the cache; when it is reached the cache is cleared, and fills again with use.
const MostCrons = 4096

// Next is the first time after a time at which a schedule fires; zero if there is none. The error is an *InvalidError
// that names the field.
func (c *Crons) Next(spec codec.CronSpec, after moment.Millis) (moment.Millis, error) {
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
		k.after, k.next = after, moment.Of(next)
	}
	return k.next, nil
}
