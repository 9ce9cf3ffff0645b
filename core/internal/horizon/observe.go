package horizon

// What answers say about partitions, and when claims that found nothing are worth trying again.

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/absence"
	"github.com/seed-6f6f2c11/duly/core/internal/ahead"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/search"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Partitions is what all pulls of a process know of them.
type Partitions struct {
	Base     *base.Base
	Absences absence.Absences
	Fences   Fences
}

// Fences are the largest fences that this process was given, by partition. Claims report them to the store: a master that was promoted
// may lack the last writes of the one before, and with them its last fences, and its clock may be behind.
type Fences []atomic.Int64

// Seen notes the fence of a claim.
func (f Fences) Seen(partition int, fence store.Fence) {
	for {
		last := f[partition].Load()
		if int64(fence) <= last || f[partition].CompareAndSwap(last, int64(fence)) {
			return
		}
	}
}

// Last is the largest fence of a partition, 0 if none was given.
func (f Fences) Last(partition int) store.Fence { return store.Fence(f[partition].Load()) }

// leftFor is how long a task that was left for lack of time stays so: nothing but the end of the pull changes that.
const leftFor = time.Second

// Answer is the answer to a claim.
type Answer struct {
	Request  *store.ClaimRequest
	Claim    *store.Claim
	Sent     time.Time
	Grant    slots.Grant
	Slots    *slots.Slots
	Patience time.Duration // how long suspects of one sort wait for those of another
}

// Observe notes what a claim reports about its target.
func (o *Outlook) Observe(ctx context.Context, t *Target, a *Answer) {
	r, c, sent, g := a.Request, a.Claim, a.Sent, a.Grant
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.Err != nil {
		o.markAway(ctx, t, c.Err)
		return
	}
	// Any answer shows that the partition is available, even one without a task.
	o.markBack(ctx, t)
	o.of.Fences.Seen(t.Partition, c.Fence)
	before, now := t.due(), t.atNow
	t.answered(sent, r.Agents, &c.Look)
	if c.Unstamped { // due tasks are claimed once the store has what this process relies on
		return
	}
	if len(c.Tasks) > 0 {
		t.served, t.turns = c.Now, c.Turns
	}
	// The most that was seen: a later claim looks at a part only, and the tasks that it does not see are still
	// left.
	t.left = max(t.left, c.Left)
	if c.Suspects > 0 {
		t.suspected = sent
	}
	t.nextSort = a.Slots.LeftSuspects(c.Suspects, a.Patience)
	t.emptyUntil = time.Time{}
	t.looked = t.looked && t.overdue
	nothing := len(c.Tasks)+c.Parked+c.Recovered == 0
	// A claim ends some of the leases and pauses whose time is over: where it leaves others, the next one goes on, though this one has brought nothing.
	// guard: ends-go-on
	if c.NextLease != 0 && c.NextLease <= c.Now {
		nothing = false
	}
	t.lost = o.series != nil && !g.Urgent && nothing
	// The claim may not have seen tasks that a settlement made due, or made room for, while it was under way: that is no reason to
	// stay away.
	if due := t.next; due != 0 && due <= c.Now && nothing {
		// The place of an agent whose due task was cancelled or replaced stays in the past until a claim has looked there and put it
		// right, which may be all that a small claim has a turn for. Then something else comes first: the next claim sees others.
		// A place that is always now moves with the clock alone, which is no reason to come back at once.
		// guard: nothing-found
		t.foundNothing(r, c, sent, g, due > before && (!now || !t.atNow))
	}
}

// foundNothing notes how far a claim has searched that brought nothing, and when it is worth trying again. A task that waits for
// a slot of its kind is worth it as soon as slots come free; one that is left for lack of time stays so for the whole pull.
func (t *Target) foundNothing(r *store.ClaimRequest, c *store.Claim, sent time.Time, g slots.Grant, moved bool) {
	full, shared := t.suspects(sent), false // kinds without a slot; kinds whose slots another partition was offered
	for kind, most := range r.Most {
		full = full || most == 0
		shared = shared || most == 0 && g.Room[kind] > 0
	}
	switch {
	case shared:
	case g.Urgent:
		t.urgent.Found(search.Place{Since: r.After, Name: r.AfterName}, c)
	default:
		t.rest.Found(search.Place{Since: c.Passed, Name: c.PassedName}, c.Now)
	}
	switch {
	case c.Passed != 0 && !shared: // there is more to look at, at once
	case g.Urgent:
		t.urgent.Ends(sent, t.clockUnless(full || shared))
	case moved && !full && len(r.Leave) == 0:
	case t.room && t.left == 0: // the claim may not have seen it
	case full:
		t.emptyUntil, t.because = sent.Add(cmp.Or(t.nextSort, search.Every)), g.News
	default:
		t.emptyUntil, t.because = sent.Add(leftFor), 0
	}
}

// clockUnless is the clock of its server, but for where something waits for a slot of its kind: that is worth a claim as soon as one comes free.
func (t *Target) clockUnless(waits bool) *ahead.Clock {
	if waits {
		return nil
	}
	return &t.clock
}

// Looked notes the answers to a look at some targets.
func (o *Outlook) Looked(ctx context.Context, targets []*Target, requests []store.LookRequest, looks []store.Look, asked time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, t := range targets {
		if looks[i].Err != nil {
			o.markAway(ctx, t, looks[i].Err)
			continue
		}
		o.markBack(ctx, t)
		t.answered(asked, requests[i].Agents, &looks[i])
		t.looked = t.overdue
		t.standBack(asked, looks[i].Now)
	}
}

// ObserveClock learns the clock of the target's server from an answer.
func (t *Target) ObserveClock(c *store.Claim, sent, received time.Time) {
	if c.Err == nil {
		t.clock.Observe(c.Now, sent, received)
	}
}

// Reaches is when a time of the target's server is reached, by our clock.
func (t *Target) Reaches(at moment.Millis) time.Time { return t.clock.Reaches(at) }
