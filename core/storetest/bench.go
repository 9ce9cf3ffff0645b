package storetest

// The bench that a test drives a store with: a clock to set, and calls that must succeed.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
	"github.com/seed-6f6f2c11/duly/core/storetest/spy"
)

// within is a task that is due after some time.
// b is the receiver and also the *testing.T, so that a failed check names the line of the test.
func within(s store.Submission, d time.Duration) store.Submission {
	s.Due = moment.When{After: d}
	return s
}

// about names a task of agent a.
// Tests of a single task use agent a, and id 1 unless several are needed.
func about(id string) store.Submission { return store.Submission{Agent: "a", ID: id} }

// effect is what the one request of a call did.
// Most calls of the contract are about one request. Those for several are tested apart.
func (b *desk) effect(effects []store.Effect, err error) store.Effect {
	b.Helper()
	require.NoError(b, err)
	require.Len(b, effects, 1)
	return effects[0]
}

// delete forgets one task.
func (b *desk) delete(s store.Submission) store.Effect {
	b.Helper()
	return b.effect(b.store.Delete(b.Context(), []store.Deletion{given.Deletion(s)}))
}

// cancelled sends one order to cancel.
func (b *desk) cancelled(c store.Cancellation) store.Effect {
	b.Helper()
	return b.effect(b.store.Cancel(b.Context(), []store.Cancellation{c}))
}

// held sets one hold, which may be refused.
func (b *desk) held(h store.Hold) store.Effect {
	b.Helper()
	return b.effect(b.store.Hold(b.Context(), []store.Hold{h}))
}

// hold sets a hold that must take effect.
func (b *desk) hold(target store.Target, until moment.When) {
	b.Helper()
	h := store.Hold{Target: target, Note: []byte("why"), Until: until}
	require.Equal(b, store.Effect{Code: store.EffectDone}, b.held(h))
}

// unhold ends one hold, and says whether it existed.
func (b *desk) unhold(target store.Target) store.EffectCode {
	b.Helper()
	return b.effect(b.store.Unhold(b.Context(), []store.Target{target})).Code
}

// extend sends one heartbeat for a claim, for the length of a whole lease.
func (b *bench) extend(f store.Fence, p ...store.Progress) store.Extended {
	b.Helper()
	out, err := b.store.Extend(b.Context(), []store.Extension{{Fence: f, Lease: lease, Progress: p}})
	require.NoError(b, err)
	require.Len(b, out, 1)
	return out[0]
}

// look is when there is work for kind k; zero for never.
// It is a look at the only partition that the bench has.
func (b *sight) look() moment.Millis {
	b.Helper()
	return b.lookWith(store.LookRequest{Kinds: []string{"k"}}).NextDue
}

// lookWith makes one look.
func (b *sight) lookWith(r store.LookRequest) store.Look {
	b.Helper()
	looks, err := b.store.Look(b.Context(), []store.LookRequest{r})
	require.NoError(b, err)
	require.Len(b, looks, 1)
	return looks[0]
}

// quiet demands that claims neither find anything nor say that anything is due before a time; zero for never.
func (b *bench) quiet(until moment.Millis, why string) {
	b.Helper()
	for range 3 {
		// The first claim may still have to park what is held, and is then asked again.
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
// The order counts: it is that in which the tasks would run.
func (b *bench) take(want ...string) store.Claim {
	b.Helper()
	c := b.claim(10)
	require.Equal(b, want, names(c))
	return c
}

// one is a task, explained.
func (b *sight) one(agent, id string) store.Stored {
	b.Helper()
	page, err := b.store.Get(b.Context(), store.Get{Agent: agent, IDs: []string{id}, Explain: true})
	require.NoError(b, err)
	require.Len(b, page.Tasks, 1)
	return page.Tasks[0]
}

// group are the counts of a group of agent a.
func (b *sight) group(name string) store.GroupCounts {
	b.Helper()
	counts, err := b.store.Group(b.Context(), "a", name)
	require.NoError(b, err)
	return counts
}

// kind are the counters of a kind; empty if there are none.
// Every counter is zero in it.
func (b *sight) kind(name string) count.KindStats {
	b.Helper()
	for _, k := range b.stats().Kinds {
		if k.Kind == name {
			return k
		}
	}
	return count.KindStats{}
}

// ended settles a run as it says, and returns when the task is due again.
func (b *bench) ended(s store.Settlement) moment.Millis {
	b.Helper()
	out := b.settle(s)[0]
	require.NoError(b, out.Err)
	return out.Due
}

// again ends a run with the task due again after some time.
func again(t store.Claimed, d time.Duration) store.Settlement {
	return store.Settlement{Run: t.Run, Kind: t.Kind, Verb: store.VerbAgain, Due: moment.When{After: d}}
}

// place is a way for a task not to run.
// What a command does may depend on where the task is, so each command is tested in every place.
type place struct {
	name    string
	several bool                             // its agent has another task
	put     func(b *bench, agent, id string) // puts it there, out of being due
	parked  bool
}

// places are the ways for a live task not to run: in the queue or out of it, alone or not.
func places() []place {
	// Each puts the task there by calls that a real process makes, never
	// by changing a store from inside.
	nothing := func(*bench, string, string) {}
	left := func(b *bench, _, _ string) {
		// A claim without a handler for the kind parks the task.
		b.Helper()
		r := b.request(10)
		r.Kinds = []string{"none"}
		require.Positive(b, b.claimWith(r).Parked)
	}
	held := func(scope func(agent, id string) store.Target) func(b *bench, agent, id string) {
		return func(b *bench, agent, id string) {
			// The hold is set first, and then a claim parks what it finds held.
			b.Helper()
			b.hold(scope(agent, id), moment.When{After: 24 * time.Hour})
			require.Positive(b, b.claim(10).Parked)
		}
	}
	task := held(func(agent, id string) store.Target { return store.Target{Agent: agent, ID: id} })
	key := held(func(string, string) store.Target { return store.Target{Key: "key"} })
	var out []place
	// Alone and beside another task of its agent, as a store may keep both cases in different ways.
	for _, several := range []bool{false, true} {
		out = append(out, place{"waiting", several, nothing, false}, place{"parked", several, left, true},
			place{"held", several, task, true}, place{"held by its key", several, key, true})
	}
	return out
}

// stand opens a store with one due task, a/1 of a group and a key, that does not run, and with another one of a if the
// place says so.
// What follows is the same for every place, which is the point of having them.
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

// sight is what a test sees of a store, and the time there. It is the *testing.T as well, so that its methods can fail the test.
type sight struct {
	*testing.T

	clock *Clock
	store store.Store
}

// desk is sight and what operators and senders order: calls that belong to no run.
type desk struct{ sight }

// bench is what a test works with: a desk, and the calls of a process that submits and runs tasks.
type bench struct {
	desk

	open func(o Options) store.Store
	// nonces counts the claims, each of which needs a nonce of its own.
	nonces int
}

// with opens the store. Without options it has one partition, so that order is defined.
func (b *bench) with(o Options) {
	b.Helper()
	if o.Partitions == 0 {
		o.Partitions = 1
	}
	b.store = b.open(o)
}

// lease is the length of all leases here, unless a test is about it.
const lease = 30 * time.Second

// task is a submission that is due at once.
func task(agent, id string) store.Submission {
	return store.Submission{Agent: agent, ID: id, Kind: "k", Level: store.LevelLow, Body: []byte("body of " + id)}
}

// submit stores tasks, which must not be refused.
func (b *bench) submit(tasks ...store.Submission) []store.Submitted {
	b.Helper()
	placed, err := b.store.Submit(b.Context(), tasks)
	require.NoError(b, err)
	require.Len(b, placed, len(tasks))
	return placed
}

// request is a claim of any agent's tasks of kind k.
func (b *bench) request(limit int) store.ClaimRequest {
	b.nonces++
	return store.ClaimRequest{Nonce: fmt.Sprintf("nonce%011d", b.nonces), Kinds: []string{"k"}, Limit: limit, Lease: lease}
}

// claimWith makes one claim.
func (b *bench) claimWith(r store.ClaimRequest) store.Claim {
	b.Helper()
	claims, err := b.store.Claim(b.Context(), []store.ClaimRequest{r})
	require.NoError(b, err)
	require.Len(b, claims, 1)
	return claims[0]
}

// claim claims up to a number of due tasks of kind k.
func (b *bench) claim(limit int) store.Claim {
	b.Helper()
	return b.claimWith(b.request(limit))
}

// settle ends runs; what becomes of each is for the caller to check.
func (b *bench) settle(runs ...store.Settlement) []store.Settled {
	b.Helper()
	out, err := b.store.Settle(b.Context(), runs)
	require.NoError(b, err)
	require.Len(b, out, len(runs))
	return out
}

// complete settles all tasks of a claim.
func (b *bench) complete(c store.Claim) {
	b.Helper()
	for _, t := range c.Tasks {
		require.NoError(b, b.settle(complete(t))[0].Err)
	}
}

// complete is the settlement of a run that went well.
func complete(t store.Claimed) store.Settlement {
	return store.Settlement{Run: t.Run, Kind: t.Kind, Verb: store.VerbComplete, Record: []byte("record of " + t.ID)}
}

// read is what the store says about tasks of one agent, all of which it is asked for by id.
func (b *sight) read(agent string, ids ...string) []store.Stored {
	b.Helper()
	page, err := b.store.Get(b.Context(), store.Get{Agent: agent, IDs: ids})
	require.NoError(b, err)
	require.Len(b, page.Tasks, len(ids))
	return page.Tasks
}

// status is the status of one task; empty if it does not exist.
func (b *sight) status(agent, id string) store.Status {
	b.Helper()
	return b.read(agent, id)[0].Status
}

// stats are the counters without the time, which no test compares.
func (b *sight) stats() count.Stats {
	b.Helper()
	st, err := b.store.Stats(b.Context())
	require.NoError(b, err)
	assert.NotZero(b, st.Now) // some ask the machine
	st.Now = 0
	return st
}

// now is the time of the store.
func (b *sight) now() moment.Millis { return moment.Millis(b.clock.Now().UnixMilli()) }

// names are agent/id of claimed tasks, in order.
func names(c store.Claim) []string {
	out := make([]string, len(c.Tasks))
	for i, t := range c.Tasks {
		out[i] = t.Agent + "/" + t.ID
	}
	return out
}

// Spy is the store for tests that count, delay or fail the calls of another one.
type Spy = spy.Store
