package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/race"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// What the worst tenant has.
const (
	tenantTasks  = 100_000
	tenantKinds  = 5_000
	tenantGroups = 10_000
	tenantHolds  = 1_000
)

// tenant is a store with one partition, in which a tenant has as much as can be of everything, under the longest names.
type tenant struct {
	t      *testing.T
	store  *redisstore.Store
	client *redis.Client
	agent  string
	n      int
}

func newTenant(t *testing.T) *tenant {
	t.Helper()
	srv := redistest.Start(t)
	w := &tenant{
		t: t, client: srv.Client(t), agent: strings.Repeat("é", core.MaxIDLen/2),
		store: open(t, redisstore.Config{URL: srv.URL, Partitions: 1, MaxTasks: 10 * tenantTasks}),
	}
	for i := 0; i < tenantTasks; i += 1000 {
		subs := make([]store.Submission, 1000)
		for k := range subs {
			subs[k] = w.task(w.agent, i+k)
		}
		_, err := w.store.Submit(t.Context(), subs)
		require.NoError(t, err)
	}
	for i := range tenantHolds {
		_, err := w.store.Hold(t.Context(), []store.Hold{{
			Target: store.Target{Agent: w.agent, ID: w.id(i)}, Until: moment.When{After: time.Hour}, Note: []byte("{}"),
		}})
		require.NoError(t, err)
	}
	for parked := 0; parked < tenantTasks; {
		c := claim(t, w.store, w.nonce(), store.MaxClaim)
		require.Positive(t, c.Parked)
		parked += c.Parked
	}
	return w
}

func (*tenant) id(i int) string {
	return fmt.Sprintf("%s%06d", strings.Repeat("i", core.MaxIDLen-6), i)
}

func (*tenant) kind(i int) string {
	return fmt.Sprintf("%s%05d", strings.Repeat("k", core.MaxKindLen-5), i%tenantKinds)
}

func (w *tenant) task(agent string, i int) store.Submission {
	return store.Submission{
		Agent: agent, ID: w.id(i), Kind: w.kind(i), Level: store.LevelLow, Body: []byte("b"), Group: fmt.Sprintf("%0200d", i%tenantGroups),
	}
}

func (w *tenant) nonce() string {
	w.n++
	return fmt.Sprint("worst", w.n)
}

// takes is how long the scripts of a step take. While that is too long the step is made again, and its best time counts: what other
// processes of the machine take is not the tenant's doing.
func (w *tenant) takes(step func()) time.Duration {
	var best time.Duration
	for i := 0; i == 0 || i < mostRounds && best >= mostTime; i++ {
		before := inScripts(w.t, w.client)
		step()
		took := time.Duration((inScripts(w.t, w.client) - before) * float64(time.Microsecond))
		if i == 0 || took < best {
			best = took
		}
	}
	return best
}

// No script's work grows with what a tenant chooses.
func TestTheWorstTenant(t *testing.T) {
	t.Parallel()
	if testing.Short() || race.Enabled {
		t.Skip("it fills a store with the tasks of the largest tenant, and what it measures is Redis: .ci/run makes it without the race detector")
	}
	w := newTenant(t)
	var figures []string
	for _, step := range w.steps() {
		took := w.takes(step.do)
		assert.Less(t, took, mostTime, step.name)
		figures = append(figures, fmt.Sprintf("%s %.2f", step.name, float64(took)/float64(time.Millisecond)))
	}
	t.Log("figure: ms of the scripts with the worst tenant: " + strings.Join(figures, ", "))
}

type tenantStep struct {
	name string
	do   func()
}

func (w *tenant) steps() []tenantStep {
	ctx, t, st := w.t.Context(), w.t, w.store
	heldFor := func(target store.Target) {
		_, err := st.Hold(ctx, []store.Hold{{Target: target, Until: moment.When{After: time.Hour}, Note: []byte("{}")}})
		require.NoError(t, err)
		_, err = st.Unhold(ctx, []store.Target{target})
		require.NoError(t, err)
	}
	audited := func(cursor string) func() {
		return func() {
			_, err := st.Audit(ctx, []audit.Page{{Cursor: cursor, Repair: true}})
			require.NoError(t, err)
		}
	}
	var held store.Claim
	own := make([]string, 100) // the kinds of a process that has handlers for some of the tenant's
	for i := range own {
		own[i] = w.kind(i)
	}
	return []tenantStep{
		{"submit by a stranger", func() {
			_, err := st.Submit(ctx, []store.Submission{sub("stranger", w.nonce())})
			require.NoError(t, err)
		}},
		{"claim", func() { held = claim(t, st, w.nonce(), 1) }},
		{"extend", func() {
			_, err := st.Extend(ctx, []store.Extension{{Fence: held.Fence, Lease: time.Minute}})
			require.NoError(t, err)
		}},
		{"claim and settle", func() {
			_, err := st.Submit(ctx, []store.Submission{sub("stranger", w.nonce())})
			require.NoError(t, err)
			settle(t, st, store.VerbComplete, claim(t, st, w.nonce(), 50).Tasks...)
		}},
		{"look for one agent", func() {
			_, err := st.Look(ctx, []store.LookRequest{{Agents: []string{w.agent}, Kinds: own}})
			require.NoError(t, err)
		}},
		{"submit by the tenant", func() {
			_, err := st.Submit(ctx, []store.Submission{w.task(w.agent, tenantTasks+w.n)})
			require.NoError(t, err)
			w.n++
		}},
		{"hold and unhold of a task", func() { heldFor(store.Target{Agent: w.agent, ID: w.id(tenantHolds + 1)}) }},
		{"hold and unhold of the tenant", func() { heldFor(store.Target{Agent: w.agent}) }},
		{"run now", func() {
			_, err := st.RunNow(ctx, []store.RunNow{{Agent: w.agent, ID: w.id(tenantHolds + 2)}})
			require.NoError(t, err)
		}},
		{"delete", func() {
			_, err := st.Delete(ctx, []store.Deletion{deletion(w.task(w.agent, tenantHolds+10+w.n))})
			require.NoError(t, err)
			w.n++
		}},
		{"audit, a page of tasks", audited("t0")},
		{"audit, a page of the agenda", audited("g0")},
		{"audit, a page of what is parked", audited("p0")},
		{"audit, the last page", audited("q0")},
		{"claim of the tenant's kinds", func() {
			r := store.ClaimRequest{Nonce: fmt.Sprintf("%-16s", w.nonce()), Kinds: own, Limit: store.MaxClaim, Lease: time.Minute}
			_, err := st.Claim(ctx, []store.ClaimRequest{r})
			require.NoError(t, err)
		}},
	}
}
