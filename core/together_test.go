package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// A pause until the morning ends for all agents in the same millisecond, and a claim ends some of them: one pull, as a function makes it once a minute,
// runs what is due behind all the others.
func TestPausesThatEndTogether(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]core.Scope{"all": {}, "one agent": {Agents: []string{"199"}}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorldOn(t, memstore.New(memstore.Config{}), core.Config{})
			morning := time.Now().Add(time.Hour)
			for i := range 200 {
				agent := fmt.Sprintf("%03d", i)
				w.submit(core.NewTask{Agent: agent, ID: "later", Kind: "k", Delay: 24 * time.Hour})
				require.NoError(t, w.s.Pause(t.Context(), core.Target{Agent: agent}, core.Pause{Until: morning}))
			}
			w.submit(core.NewTask{Agent: "199", ID: "due", Kind: "k"})
			core.Handle(w.s, "k", nothing)
			assert.Zero(t, w.run().Completed)
			time.Sleep(time.Until(morning) + time.Millisecond)
			report, err := w.s.RunDue(t.Context(), scope)
			require.NoError(t, err)
			assert.Equal(t, 1, report.Completed, name)
		})
	}
}

// The leases of a process end together, as one heartbeat extends all of them. However many runs it had when it was killed, they are begun again
// together, once their holder has had its notice.
func TestRunsThatDiedTogether(t *testing.T) {
	t.Parallel()
	const runs, lease = 200, 20 * time.Second
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(memstore.Config{})
		for i := range runs { // each claimed by itself
			_, err := st.Submit(t.Context(), []store.Submission{{Agent: fmt.Sprint(i), ID: "1", Kind: "k", Level: store.LevelLow}})
			require.NoError(t, err)
			claims, err := st.Claim(t.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%-16d", i), Kinds: []string{"k"}, Limit: 1, Lease: lease}})
			require.NoError(t, err)
			require.Len(t, claims[0].Tasks, 1)
		}
		w := newWorldOn(t, st, core.Config{Concurrency: 2 * runs, Default: core.KindConfig{Lease: lease}})
		begun := time.Now()
		var last atomic.Int64
		core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error {
			last.Store(int64(time.Since(begun)))
			return nil
		})
		completed := 0
		for completed < runs {
			completed += w.run().Completed
			time.Sleep(time.Second)
		}
		assert.Less(t, time.Duration(last.Load()), 2*lease, "a lease, and half of one for the notice")
	})
}

// Of five hundred agents that are due at nine, all but the last have tasks of a kind that runs one at a time, for hours: the last is not kept waiting.
func TestAKindThatIsBusyHidesNoOtherOfItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := core.KindConfig{Slots: 1, Timeout: 24 * time.Hour}
		w := newWorldOn(t, memstore.New(memstore.Config{}), core.Config{Concurrency: 5, Kinds: map[string]core.KindConfig{"slow": slow}})
		nine := time.Now().Add(time.Hour)
		for i := range 500 {
			w.submit(core.NewTask{Agent: fmt.Sprintf("%03d", i), Kind: "slow", At: nine})
		}
		w.submit(core.NewTask{Agent: "z", Kind: "quick", At: nine})
		core.Handle(w.s, "slow", func(ctx context.Context, _ *core.Task[any]) error {
			<-ctx.Done()
			return nil
		})
		ran := make(chan struct{})
		core.Handle(w.s, "quick", func(context.Context, *core.Task[any]) error {
			close(ran)
			return nil
		})
		time.Sleep(time.Until(nine))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = w.s.RunDue(ctx, core.Scope{})
		}()
		select {
		case <-ran:
		case <-time.After(time.Minute):
			assert.Fail(t, "it has waited for a minute")
		}
		stop()
		<-ended
	})
}
