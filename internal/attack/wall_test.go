package attack_test

// The wall between tenants: an agent does what it can with names of its choice, and of another agent nothing is changed or read.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// kindOf is the kind of the victims' tasks. Attackers submit tasks of it too, but claim none: a claim is a process's, which
// may put back whatever is parked for its kinds.
const kindOf = "victim"

// private is something of a victim.
func private(what, agent string) []byte { return []byte(marker + " " + what + " " + agent) }

// furnish gives each victim tasks in every place that a task can be in, and returns the cursors of their lists.
func furnish(t *testing.T, st store.Store) (cursors []string) {
	t.Helper()
	ctx := t.Context()
	for i, agent := range victims {
		var tasks []store.Submission
		for _, id := range []string{"waiting", "later", "held", "finished", "failed", "running", "i", "b"} {
			s := store.Submission{
				Agent: agent, ID: id, Kind: kindOf, Group: "g", Key: "key", Level: 1 + store.Level(i%3), Body: private("body", agent), State: private("state", agent),
			}
			if id == "later" {
				s.Due.After = time.Hour
			}
			tasks = append(tasks, s)
		}
		_, err := st.Submit(ctx, tasks)
		require.NoError(t, err)
		_, err = st.Touch(ctx, []store.Touch{{Agent: agent, ID: "touched", Kind: kindOf, Level: 1, Body: private("body", agent), Pulse: store.Pulse{Delay: time.Hour}}})
		require.NoError(t, err)
		_, err = st.Hold(ctx, []store.Hold{{Target: store.Target{Agent: agent, ID: "held"}, Note: private("note", agent)}})
		require.NoError(t, err)
		claims, err := st.Claim(ctx, []store.ClaimRequest{{
			Nonce: fmt.Sprintf("nonce of %7d", i), Agents: []string{agent}, Kinds: []string{kindOf}, Limit: 50, Lease: 10 * time.Hour,
		}})
		require.NoError(t, err)
		for _, claimed := range claims[0].Tasks {
			end := store.Settlement{Run: claimed.Run, Group: "g", Kind: kindOf, BodyLen: len(claimed.Body), Record: private("record", agent), Verb: store.VerbAgain, State: private("state", agent)}
			switch claimed.ID {
			case "finished":
				end.Verb = store.VerbComplete
			case "failed":
				end.Verb = store.VerbFail
			case "running", "i":
				continue
			}
			settled, err := st.Settle(ctx, []store.Settlement{end})
			require.NoError(t, err)
			require.NoError(t, settled[0].Err)
		}
		_, err = st.Cancel(ctx, []store.Cancellation{{Agent: agent, ID: "running", Group: "g", Order: private("order", agent)}})
		require.NoError(t, err)
		page, err := st.List(ctx, store.List{Agent: agent, Limit: 3})
		require.NoError(t, err)
		require.NotEmpty(t, page.Next)
		cursors = append(cursors, page.Next)
		for j := range page.Tasks {
			cursors = append(cursors, page.Tasks[j].Cursor)
		}
	}
	return cursors
}

// attacker calls a store with names of its own choice.
type attacker struct {
	store   store.Store
	random  *rand.Rand
	agents  []string
	ids     []string
	kinds   []string
	cursors []string    // of the victims' lists
	held    []store.Run // its own runs
	foreign string      // what it was answered of somebody else
	calls   map[string]int
	done    map[string]int // without an error
}

func newAttacker(st store.Store, seed uint64, cursors []string) *attacker {
	random := rand.New(rand.NewPCG(12, seed))
	a := &attacker{store: st, random: random, agents: names(random, 400), cursors: cursors, calls: map[string]int{}, done: map[string]int{}}
	a.ids = append(names(random, 60), victims...)
	a.ids = append(a.ids, "waiting", "later", "held", "finished", "failed", "running", "i", "touched")
	a.kinds = []string{"l", "r", "z", "s", "k:", "a:bob", "-", "queue:1:bob", "n", "t:bob:i", "l" + kindOf, ".", "/", "bob"}
	a.cursors = append(a.cursors, names(random, 40)...)
	return a
}

func (a *attacker) one(of []string) string { return of[a.random.IntN(len(of))] }

func (a *attacker) agent() string { return a.one(a.agents) }

func (a *attacker) id() string { return a.one(a.ids) }

// group is one that a victim may have as well, or none.
func (a *attacker) group() string {
	if a.random.IntN(3) == 0 {
		return ""
	}
	return a.one([]string{"g", "g", a.id(), "b:g", ":g"})
}

// kind is one that it may submit.
func (a *attacker) kind() string {
	if a.random.IntN(4) == 0 {
		return kindOf
	}
	return a.one(a.kinds)
}

func (a *attacker) bytes() []byte { return []byte("hostile " + a.id()) }

func (a *attacker) when() moment.When {
	return moment.When{After: time.Duration(a.random.IntN(5)) * time.Second}
}

// run is one of its own, one of these under another name, or one that it makes up. The fence of somebody else's claim is not among
// them: runs are settled by processes, which are trusted, and by no tenant.
func (a *attacker) run() store.Run {
	if n := len(a.held); n > 0 && a.random.IntN(4) > 0 {
		run := a.held[a.random.IntN(n)]
		if a.random.IntN(5) == 0 {
			run.Agent, run.ID, run.Ref = a.agent(), a.id(), ""
		}
		return run
	}
	return store.Run{Fence: store.Fence(1 + a.random.IntN(1000)), Index: a.random.IntN(8), Agent: a.agent(), ID: a.id()}
}

// looked keeps it if an answer is not about an agent that was asked for.
func (a *attacker) looked(asked []string, agent string) {
	if !slices.Contains(asked, agent) {
		a.foreign += fmt.Sprintf("asked for %q and got %q\n", asked, agent)
	}
}

// try makes one random call.
func (a *attacker) try(ctx context.Context) {
	verbs := attacks()
	one := verbs[a.random.IntN(len(verbs))]
	answer, err := one.call(ctx, a)
	a.calls[one.verb]++
	if err == nil {
		a.done[one.verb]++
	}
	if text := fmt.Sprintf("%s %v", answer, err); strings.Contains(text, marker) {
		a.foreign += one.verb + ": " + text + "\n"
	}
}

// assault lets four attackers make so many calls together, and demands that none was answered what is somebody else's, and that each
// verb did what it is for often enough to be a trial.
func assault(t *testing.T, st store.Store, cursors []string, calls int) {
	t.Helper()
	attackers := make([]*attacker, 4)
	var all sync.WaitGroup
	for i := range attackers {
		a := newAttacker(st, uint64(i), slices.Clone(cursors))
		attackers[i] = a
		all.Go(func() {
			for range calls / len(attackers) {
				a.try(t.Context())
			}
		})
	}
	all.Wait()
	for _, a := range attackers {
		require.Empty(t, a.foreign)
		for verb, n := range a.calls {
			assert.Greater(t, a.done[verb], n/10, "%s: nearly all were refused, so that nothing was tried", verb)
		}
	}
}

// Whatever an agent calls itself and its tasks, nothing of another agent changes in Redis, and none of it is answered.
func TestATenantLeavesNoTraceInAnother(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: redis.URL, Partitions: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	cursors := furnish(t, st)
	d := &dump{client: redis.Client(t)}
	before := d.all(t)
	require.Contains(t, fmt.Sprint(before), marker)
	calls := proof.Size(20_000, 1_000_000)
	assault(t, st, cursors, calls)
	after := d.all(t)
	kept := 0
	for place, value := range before {
		if shared(place) {
			continue
		}
		kept++
		assert.Equal(t, value, after[place], "%q of a victim has changed", place)
	}
	for place := range after {
		if _, known := before[place]; !known && !shared(place) {
			for _, v := range victims {
				assert.False(t, belongs(place, encoded(v)), "%q was added to %q", place, v)
			}
		}
	}
	assert.Greater(t, kept, 10*len(victims))
	proof.Figure(t, "%d calls of a hostile tenant left %d entries of %d others in Redis as they were (%d entries in all)", calls, kept, len(victims), len(after))
}

// The same in memory: what the victims have can be read by themselves, and is what it was.
func TestATenantLeavesNoTraceInAnotherInMemory(t *testing.T) {
	t.Parallel()
	st := memstore.New(memstore.Config{Partitions: 1})
	cursors := furnish(t, st)
	view := func() map[string]string {
		all := map[string]string{}
		for _, agent := range victims {
			page, err := st.List(t.Context(), store.List{Agent: agent, Limit: 100})
			require.NoError(t, err)
			require.Len(t, page.Tasks, 9)
			for i := range page.Tasks {
				found, err := st.Get(t.Context(), store.Get{Agent: agent, IDs: []string{page.Tasks[i].ID}})
				require.NoError(t, err)
				all[agent+"|"+page.Tasks[i].ID] = fmt.Sprintf("%+v %+v", page.Tasks[i], found.Tasks[0])
			}
			group, err := st.Group(t.Context(), agent, "g")
			require.NoError(t, err)
			all[agent+"|g"] = fmt.Sprintf("%+v", group)
		}
		return all
	}
	before := view()
	assault(t, st, cursors, proof.Size(20_000, 1_000_000))
	assert.Equal(t, before, view())
}
