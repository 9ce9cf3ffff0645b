package storetest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// within is a task that is due after some time.
func within(s core.Submission, d time.Duration) core.Submission {
	s.Due = core.When{After: d}
	return s
}

// about names a task.
func about(agent, id string) core.Submission { return core.Submission{Agent: agent, ID: id} }

func (b *bench) control(c core.Command) core.Effect {
	b.Helper()
	effects, err := b.store.Control(b.Context(), []core.Command{c})
	require.NoError(b, err)
	require.Len(b, effects, 1)
	return effects[0]
}

func (b *bench) hold(scope core.Scoped, until core.When) {
	b.Helper()
	c := core.Command{Op: core.OpHold, Scope: scope, Hold: []byte("why"), Until: until}
	require.Equal(b, core.Effect{Code: core.EffectDone}, b.control(c))
}

func (b *bench) unhold(scope core.Scoped) core.EffectCode {
	b.Helper()
	return b.control(core.Command{Op: core.OpUnhold, Scope: scope}).Code
}

func (b *bench) extend(f core.Fence, p ...core.Progress) core.Extended {
	b.Helper()
	out, err := b.store.Extend(b.Context(), []core.Extension{{Fence: f, Lease: lease, Progress: p}})
	require.NoError(b, err)
	require.Len(b, out, 1)
	return out[0]
}

// look is when there is work for kind k; zero for never.
func (b *bench) look() core.Millis {
	b.Helper()
	return b.claimWith(core.ClaimRequest{Kinds: []string{"k"}}).NextDue
}

// quiet demands that claims neither find anything nor say that anything is due before a time; zero for never.
func (b *bench) quiet(until core.Millis, why string) {
	b.Helper()
	for range 3 { // the first may still have to park what is held
		c := b.claim(10)
		require.Empty(b, names(c), why)
		if c.Parked > 0 {
			continue
		}
		next := c.NextDue
		if next == 0 || c.NextLease != 0 && c.NextLease < next {
			next = c.NextLease
		}
		assert.Equal(b, until, next, why)
	}
	assert.Equal(b, until, b.look(), why)
}

// take claims what is due, which must be the tasks of these names, and returns the claim.
func (b *bench) take(want ...string) core.Claim {
	b.Helper()
	c := b.claim(10)
	require.Equal(b, want, names(c))
	return c
}

// one is a task, explained.
func (b *bench) one(agent, id string) core.Stored {
	b.Helper()
	page, err := b.store.Read(b.Context(), core.Query{Agent: agent, IDs: []string{id}, Explain: true})
	require.NoError(b, err)
	require.Len(b, page.Tasks, 1)
	return page.Tasks[0]
}

// group are the counts of a group of agent a.
func (b *bench) group(name string) core.GroupCounts {
	b.Helper()
	page, err := b.store.Read(b.Context(), core.Query{Agent: "a", Group: name, Limit: 1})
	require.NoError(b, err)
	return page.Group
}

// kind are the counters of a kind; empty if there are none.
func (b *bench) kind(name string) core.KindStats {
	b.Helper()
	for _, k := range b.stats().Kinds {
		if k.Kind == name {
			return k
		}
	}
	return core.KindStats{}
}

// ended settles a run as it says, and returns when the task is due again.
func (b *bench) ended(s core.Settlement) core.Millis {
	b.Helper()
	out := b.settle(s)[0]
	require.NoError(b, out.Err)
	return out.Due
}

// again ends a run with the task due again after some time.
func again(t core.Claimed, d time.Duration) core.Settlement {
	return core.Settlement{Run: t.Run, Kind: t.Kind, Verb: core.VerbAgain, Due: core.When{After: d}}
}

// place is a way for a task not to run.
type place struct {
	name    string
	several bool                             // its agent has another task
	put     func(b *bench, agent, id string) // puts it there, out of being due
	parked  bool
}

// places are the ways for a live task not to run: in the queue or out of it, alone or not.
func places() []place {
	nothing := func(*bench, string, string) {}
	left := func(b *bench, _, _ string) {
		b.Helper()
		r := b.request(10)
		r.Kinds = []string{"none"}
		require.Positive(b, b.claimWith(r).Parked)
	}
	held := func(scope func(agent, id string) core.Scoped) func(b *bench, agent, id string) {
		return func(b *bench, agent, id string) {
			b.Helper()
			b.hold(scope(agent, id), core.When{After: 24 * time.Hour})
			require.Positive(b, b.claim(10).Parked)
		}
	}
	task := held(func(agent, id string) core.Scoped { return core.Scoped{Agent: agent, ID: id} })
	key := held(func(string, string) core.Scoped { return core.Scoped{Key: "key"} })
	var out []place
	for _, several := range []bool{false, true} {
		out = append(out, place{"waiting", several, nothing, false}, place{"parked", several, left, true},
			place{"held", several, task, true}, place{"held by its key", several, key, true})
	}
	return out
}

// stand opens a store with one due task, a/1 of a group and a key, that does not run, and with another one of a if the
// place says so.
func (b *bench) stand(p place) {
	b.Helper()
	b.with(Options{})
	s := task("a", "1")
	s.Group, s.Key = "g", "key"
	b.submit(s)
	if p.several {
		b.submit(within(task("a", "2"), time.Hour))
	}
	p.put(b, "a", "1")
	require.Equal(b, p.parked, b.one("a", "1").Parked)
}
