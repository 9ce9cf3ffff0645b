package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// A claim that has found nothing says nothing of the room that a run makes under a limit, or of the task that it makes due, by ending
// while the claim is under way: the partition is asked again, and not left for the rest of the pull.
func TestRoomThatAClaimHasNotSeen(t *testing.T) {
	t.Parallel()
	s, err := New(memstore.New(memstore.Config{Partitions: 1}), Config{})
	require.NoError(t, err)
	for name, during := range map[string]bool{"while it was under way": true, "before it was sent": false} {
		p := newPull(t.Context(), s, Scope{})
		of, now, sent := p.outlook.targets[0], s.base.StoreNow(), time.Now()
		if !during {
			p.outlook.settle(0, now)
		}
		p.outlook.asking(p.outlook.targets)
		if during {
			p.outlook.settle(0, now)
		}
		p.observeClaim(of, &store.ClaimRequest{}, &store.Claim{Look: store.Look{Now: now}}, sent, slots.Grant{})
		due, _ := p.outlook.ready(sent, now, 0)
		assert.Equal(t, during, len(due) == 1, name)
		p.close()
	}
}

// Nor does a claim that has found nothing although something was due, as a limit had no room: a run that makes room while it is under way, or
// after its answer, is worth another one. What was left for lack of time is not.
func TestRoomAfterAClaimThatFoundNothing(t *testing.T) {
	t.Parallel()
	s, err := New(memstore.New(memstore.Config{Partitions: 1}), Config{})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		due           store.Millis // as the claim has said
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
		p := newPull(t.Context(), s, Scope{})
		of, now, sent := p.outlook.targets[0], s.base.StoreNow(), time.Now()
		p.outlook.settle(0, now-1) // it was due before, so that nothing new has come
		p.outlook.asking(p.outlook.targets)
		of.next = c.due
		if c.during {
			p.outlook.freed(0)
		}
		p.observeClaim(of, &store.ClaimRequest{Leave: c.leave}, &store.Claim{Look: store.Look{Now: now, NextDue: c.due}, Left: len(c.leave)}, sent, slots.Grant{})
		if c.after {
			p.outlook.freed(0)
		}
		// The clock that the store is believed to have may have been put back meanwhile, by an answer that was long under way.
		due, _ := p.outlook.ready(sent, now-1, 0)
		assert.Equal(t, c.again, len(due) == 1, name)
		p.close()
	}
}
