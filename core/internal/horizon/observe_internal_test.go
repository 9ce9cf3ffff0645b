package horizon

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

func newPartitions() *Partitions {
	st := memstore.New(memstore.Config{Partitions: 1})
	return &Partitions{
		Base:   &base.Base{Store: st, Config: base.Config{Clock: model.SystemClock{}, Logger: slog.New(slog.DiscardHandler)}},
		Fences: make(Fences, 1),
	}
}

// answer is the answer to a claim that was sent at a time.
func answer(sent time.Time, r *store.ClaimRequest, c *store.Claim) *Answer {
	return &Answer{Request: r, Claim: c, Sent: sent, Slots: slots.New(model.SystemClock{}, 1, 0, 1), Patience: slots.SuspectsLinger}
}

// A claim that has found nothing says nothing of the room that a run makes under a limit, or of the task that it makes due, by ending
// while the claim is under way: the partition is asked again, and not left for the rest of the pull.
func TestRoomThatAClaimHasNotSeen(t *testing.T) {
	t.Parallel()
	of := newPartitions()
	for name, during := range map[string]bool{"while it was under way": true, "before it was sent": false} {
		var o Outlook
		o.Aim(of, nil, nil, nil)
		one, now, sent := o.targets[0], of.Base.StoreNow(), time.Now()
		if !during {
			o.Settle(0, now)
		}
		o.Asking(o.targets)
		if during {
			o.Settle(0, now)
		}
		o.Observe(t.Context(), one, answer(sent, &store.ClaimRequest{}, &store.Claim{Look: store.Look{Now: now}}))
		due, _ := o.readyAt(sent, now, 0)
		assert.Equal(t, during, len(due) == 1, name)
	}
}

// Nor does a claim that has found nothing although something was due, as a limit had no room: a run that makes room while it is under way, or
// after its answer, is worth another one. What was left for lack of time is not.
func TestRoomAfterAClaimThatFoundNothing(t *testing.T) {
	t.Parallel()
	of := newPartitions()
	for name, c := range map[string]struct {
		due           moment.Millis // as the claim has said
		during, after bool
		leave         []string
		again         bool
	}{
		"no room":                     {due: 1},
		"while it was under way":      {due: 1, during: true, again: true},
		"and nothing else is due":     {during: true, again: true},
		"after its answer":            {due: 1, after: true, again: true},
		"of what no time was left of": {due: 1, after: true, leave: []string{"k"}},
	} {
		var o Outlook
		o.Aim(of, nil, nil, nil)
		one, now, sent := o.targets[0], of.Base.StoreNow(), time.Now()
		o.Settle(0, now-1) // it was due before, so that nothing new has come
		o.Asking(o.targets)
		one.next = c.due
		if c.during {
			o.Freed(0)
		}
		o.Observe(t.Context(), one, answer(sent, &store.ClaimRequest{Leave: c.leave}, &store.Claim{Look: store.Look{Now: now, NextDue: c.due}, Left: len(c.leave)}))
		if c.after {
			o.Freed(0)
		}
		// The clock that the store is believed to have may have been put back meanwhile, by an answer that was long under way.
		due, _ := o.readyAt(sent, now-1, 0)
		assert.Equal(t, c.again, len(due) == 1, name)
	}
}

// What is due whenever that is asked, as a place that has no time of its own is, is left to other processes once, not for ever.
func TestAProcessStandsBackOnce(t *testing.T) {
	t.Parallel()
	of := newPartitions()
	q := NewSeries(of, slots.New(model.SystemClock{}, 1, 0, 1), func() int { return 1 }, 0)
	var o Outlook
	o.Aim(of, q, nil, nil)
	one, sent := o.targets[0], time.Now()
	o.Observe(t.Context(), one, answer(sent, &store.ClaimRequest{}, &store.Claim{Look: store.Look{Now: 1000}})) // in vain
	look := func(now moment.Millis) int {
		looks := make([]store.Look, len(o.targets))
		for i := range looks {
			looks[i] = store.Look{Now: now, NextDue: now}
		}
		o.Looked(t.Context(), o.targets, make([]store.LookRequest, len(o.targets)), looks, sent)
		due, again := o.readyAt(sent, now, 0)
		assert.Equal(t, len(due) == 0, sent.Add(behindLoser).Equal(again), "it comes back by itself")
		return len(due)
	}
	assert.Equal(t, 0, look(2000))
	assert.Len(t, o.Old(sent.Add(behindLoser), 2004, time.Hour), 1, "it looks again")
	sent = sent.Add(behindLoser)
	assert.Equal(t, 1, look(2004))
}
