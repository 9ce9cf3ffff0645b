package horizon

// When a claim asks for urgent tasks alone, and where claims go on that leave some tasks.

import (
	"slices"
	"sort"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/search"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
)

// urgentAfter is how long a pull waits for a slot that any task may have before it asks for urgent tasks alone: where
// handlers are quick, that is never.
const urgentAfter = 20 * time.Millisecond

// UrgentAt is when it is worth asking for urgent tasks alone, while there are no other slots; full says that the last
// slots were some that are kept for these.
func (o *Outlook) UrgentAt(q *Series, due []*Target, full bool) time.Time {
	at := due[0].urgentFrom(q)
	for _, t := range due {
		if from := t.urgentFrom(q); from.Before(at) {
			at = from
		}
	}
	storeNow := o.of.Base.StoreNow()
	if next := o.fallsDue(storeNow); next != 0 { // in a partition in which nothing is due now
		if falls := o.of.Base.Config.Clock.Now().Add(next.Sub(storeNow)); falls.Before(at) {
			at = falls
		}
	}
	if soon := o.of.Base.Config.Clock.Now().Add(urgentAfter); !full && at.Before(soon) {
		return soon
	}
	return at
}

// UrgentDue are the targets that are worth asking for urgent tasks now, those asked longest ago first.
func UrgentDue(q *Series, due []*Target, now time.Time) []*Target {
	due = slices.DeleteFunc(due, func(t *Target) bool { return now.Before(t.urgentFrom(q)) })
	sort.SliceStable(due, func(i, k int) bool { return due[i].urgent.Asked().Before(due[k].urgent.Asked()) })
	return due
}

// After is where the next claim of a target begins to search: g is what it has slots for, and passing names the kinds that it leaves. Each kind of claim
// continues where the last of its kind stopped: a task that one passes over another may want. The mutex is held.
func (t *Target) After(q *Series, g *slots.Grant, passing string, now time.Time) search.Place {
	switch {
	case g.Urgent:
		return t.urgent.On(passing, now, q.urgentNews(t.Partition))
	// guard: hidden
	case t.suspects(now): // they may be many, with other tasks behind them
		return t.rest.On(passing+"?", now)
	case passing != "":
		return t.rest.On(passing, now)
	default:
		return search.Place{}
	}
}
