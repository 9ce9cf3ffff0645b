package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// lates notes how long after its due time each task of a kind starts.
type lates struct {
	mu sync.Mutex
	of map[string][]time.Duration
}

// handle registers a handler that takes a while and heeds its context.
func (l *lates) handle(w *world, kind string, takes time.Duration) {
	core.Handle(w.s, kind, func(ctx context.Context, task *core.Task[note]) error {
		l.mu.Lock()
		if l.of == nil {
			l.of = map[string][]time.Duration{}
		}
		l.of[kind] = append(l.of[kind], task.Claimed.Sub(task.Due))
		l.mu.Unlock()
		select {
		case <-time.After(takes):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// soon checks that so many tasks of a kind have started, none later than 100 ms.
func (l *lates) soon(t *testing.T, kind string, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.Len(t, l.of[kind], n)
	for _, late := range l.of[kind] {
		assert.LessOrEqual(t, late, 100*time.Millisecond)
	}
}

// A hundred tasks of a slow kind, of one agent or of many, use the slots of their kind and leave the others to the rest:
// to other agents, and to their own.
func TestASlowKindLeavesRoom(t *testing.T) {
	for _, agents := range []int{1, 100} {
		t.Run(fmt.Sprint(agents), func(t *testing.T) {
			virtual(t, core.Config{Kinds: map[string]core.KindConfig{"slow": {Slots: 2}}}, func(w *world) {
				l := &lates{}
				l.handle(w, "slow", 5*time.Second)
				l.handle(w, "quick", 10*time.Millisecond)
				for i := range 100 {
					w.submit(core.NewTask{Agent: fmt.Sprint("slow", i%agents), Kind: "slow"})
				}
				ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
				defer cancel()
				for i := range 10 {
					time.AfterFunc(time.Duration(i+1)*time.Second+333*time.Millisecond, func() {
						w.submit(core.NewTask{Agent: "quick", Kind: "quick"})
						if agents == 100 { // behind more than a hundred of its own, order is kept
							w.submit(core.NewTask{Agent: "slow0", Kind: "quick"})
						}
					})
				}
				_, err := w.s.RunDue(ctx, core.Scope{})
				require.NoError(t, err)
				l.soon(t, "quick", 10*min(agents, 2))
				assert.Len(t, l.of["slow"], 2*3, "two at a time, all the time that is enough for them")
				assert.Equal(t, model.KindSlots{Total: 2}, w.s.Slots().Kinds["slow"])
			})
		})
	}
}

// A reminder of level 1 of an idle agent does not wait for slow work, however much of it there is.
func TestUrgentTasksDoNotWait(t *testing.T) {
	for _, agents := range []int{1, 1000} {
		t.Run(fmt.Sprint(agents), func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				l := &lates{}
				l.handle(w, "slow", 5*time.Second)
				l.handle(w, "reminder", 10*time.Millisecond)
				for i := range 1000 {
					w.submit(core.NewTask{Agent: fmt.Sprint("slow", i%agents), Kind: "slow"})
				}
				ctx, cancel := context.WithTimeout(w.Context(), 100*time.Second)
				defer cancel()
				for i := range 20 { // also when what waits has waited for so long that it counts as level 1 for its agent
					time.AfterFunc(time.Duration(i+1)*4*time.Second+333*time.Millisecond, func() {
						w.submit(core.NewTask{Agent: fmt.Sprint("idle", i), Kind: "reminder", Level: core.LevelHigh})
					})
				}
				_, err := w.s.RunDue(ctx, core.Scope{})
				require.NoError(t, err)
				l.soon(t, "reminder", 20)
			})
		})
	}
}

// lambda is a pull as a function makes it: with a deadline, and half a second of margin.
func lambda(w *world, budget time.Duration) (core.Report, error) {
	ctx, cancel := context.WithTimeout(w.Context(), budget)
	defer cancel()
	return w.s.RunDue(ctx, core.Scope{})
}

// A run that hangs and is cut off says nothing of how long its kind takes: other agents' tasks of it run.
func TestASlowRunDoesNotStopItsKind(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Timeout: 10 * time.Minute}}, func(w *world) {
		core.Handle(w.s, "webhook", func(ctx context.Context, task *core.Task[note]) error {
			if task.Agent == "hangs" {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(time.Second)
			return nil
		})
		w.submit(core.NewTask{Agent: "hangs", ID: "1", Kind: "webhook"})
		report, err := lambda(w, time.Minute)
		require.NoError(t, err)
		require.Equal(t, 1, report.Released)
		for i := range 20 {
			w.submit(core.NewTask{Agent: fmt.Sprint("healthy", i), Kind: "webhook"})
		}
		report, err = lambda(w, time.Minute)
		require.NoError(t, err)
		assert.Equal(t, 20, report.Completed)
		assert.Zero(t, report.Left)
	})
}

// A kind is left when what its runs usually take is more than what remains, which the report says; never by a pull that
// has nearly all of its time.
func TestTasksAreLeftForLackOfTime(t *testing.T) {
	virtual(t, core.Config{Concurrency: 1}, func(w *world) {
		core.Handle(w.s, "slow", func(ctx context.Context, _ *core.Task[note]) error {
			select {
			case <-time.After(20 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		core.Handle(w.s, "quick", func(context.Context, *core.Task[note]) error { time.Sleep(time.Second); return nil })
		w.submit(numbered("a", "slow", 4)...)
		w.submit(numbered("b", "quick", 3)...)
		report, err := lambda(w, 50*time.Second)
		require.NoError(t, err)
		assert.Equal(t, 5, report.Completed, "two slow ones fit, and all quick ones")
		assert.Equal(t, 2, report.Left)
		assert.True(t, report.More)
		report, err = lambda(w, 15*time.Second)
		require.NoError(t, err)
		assert.Equal(t, 1, report.Released, "it is tried with all the time there is")
	})
}

// A bad day is forgotten.
func TestLongRunsAreForgotten(t *testing.T) {
	virtual(t, core.Config{Concurrency: 1}, func(w *world) {
		takes := 40 * time.Second
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { time.Sleep(takes); return nil })
		for range 5 {
			w.submit(core.NewTask{Agent: "a", Kind: "k"})
			_, err := lambda(w, time.Minute)
			require.NoError(t, err)
		}
		takes = time.Second
		completed := 0
		w.submit(numbered("b", "k", 100)...)
		for range 10 {
			report, err := lambda(w, time.Minute)
			require.NoError(t, err)
			completed += report.Completed
		}
		assert.Equal(t, 100, completed)
	})
}

// A task that is cut off again and again, with all the time there is, is paused and says why.
func TestATaskThatTakesTooLongIsPaused(t *testing.T) {
	virtual(t, core.Config{Name: "fn-1"}, func(w *world) {
		core.Handle(w.s, "slow", func(ctx context.Context, _ *core.Task[note]) error { <-ctx.Done(); return ctx.Err() })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "slow"})
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := w.s.RunDue(ctx, core.Scope{MaxDuration: time.Minute}) // an end that was asked for is nobody's fault
		require.NoError(t, err)
		var report core.Report
		for range 3 {
			report, err = lambda(w, time.Minute)
			require.NoError(t, err)
			assert.Equal(t, 1, report.Ran)
		}
		assert.Equal(t, 1, report.Parked)
		info := w.task("a", "1")
		require.Len(t, info.Pauses, 1)
		assert.Contains(t, info.Pauses[0].Reason, "too_long: it was cut off 3 times in a row after nearly all of 1m0s")
		require.Len(t, info.Runs, 4)
		for i, run := range info.Runs {
			assert.Equal(t, model.OutcomeReleased, run.Outcome)
			assert.Equal(t, "fn-1", run.Process)
			if i > 0 {
				assert.Contains(t, run.Error, "the time of its pull was up")
			}
		}
		assert.Equal(t, 1, info.Attempt, "it is not charged")
		report, err = lambda(w, time.Minute)
		require.NoError(t, err)
		assert.Zero(t, report.Ran)
		explained, err := w.s.Explain(w.Context(), "a", "1")
		require.NoError(t, err)
		assert.Contains(t, explained.Reasons[0].Text, "too_long")
		err = w.s.Resume(w.Context(), core.Target{Agent: "a", ID: "1"})
		require.NoError(t, err)
		report, err = lambda(w, time.Minute)
		require.NoError(t, err)
		assert.Equal(t, 1, report.Ran, "it has three more tries")
		assert.Zero(t, report.Parked)
	})
}

// A handler that timed out shortly before the end of its pull, and ignores it, does not keep the pull beyond its end.
func TestAHandlerThatTimedOutDoesNotOutlastThePull(t *testing.T) {
	virtual(t, core.Config{Margin: time.Second, Default: core.KindConfig{Timeout: 8 * time.Second}}, func(w *world) {
		free := make(chan struct{})
		core.Handle(w.s, "stuck", func(context.Context, *core.Task[note]) error { <-free; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "stuck"})
		begun := time.Now()
		report, err := lambda(w, 10*time.Second) // it ends after nine, and its patience with it
		assert.Equal(t, 9500*time.Millisecond, time.Since(begun))
		assert.Equal(t, core.CodeRunsFailed, core.CodeOf(err))
		assert.Equal(t, 1, report.Retried, "it ran into its own timeout")
		close(free)
		synctest.Wait()
	})
}

// frozen is a store that does not answer calls of a verb, and heeds the deadlines of contexts only.
func frozen(st core.Store, verb string) *storetest.Spy {
	return &storetest.Spy{Store: st, Before: func(ctx context.Context, called string) error {
		if called != verb {
			return nil
		}
		deadline, ok := ctx.Deadline()
		if !ok {
			select {} // for ever
		}
		time.Sleep(time.Until(deadline))
		return &store.Error{Verb: verb, Err: context.DeadlineExceeded}
	}}
}

// A store that hangs keeps no pull beyond its time.
func TestAStoreThatHangsEndsInTime(t *testing.T) {
	for _, budget := range []time.Duration{3 * time.Second, 10 * time.Second, time.Minute} {
		for _, verb := range []string{"Look", "Claim", "Settle"} {
			t.Run(fmt.Sprint(budget, verb), func(t *testing.T) {
				virtual(t, core.Config{}, func(w *world) {
					w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
					s, err := core.New(frozen(w.store, verb), core.Config{})
					require.NoError(t, err)
					core.Handle(s, "k", nothing)
					ctx, cancel := context.WithTimeout(w.Context(), budget)
					defer cancel()
					begun := time.Now()
					report, err := s.RunDue(ctx, core.Scope{})
					assert.Less(t, time.Since(begun), budget)
					if verb == "Settle" {
						assert.Equal(t, 1, report.Lost)
						return
					}
					assert.Equal(t, core.CodeUnavailable, core.CodeOf(err))
					assert.NoError(t, ctx.Err(), "there is time left to say so")
				})
			})
		}
	}
}

// partly is a store of which some partitions do not answer.
type partly struct {
	core.Store

	mu   sync.Mutex
	down map[int]bool
	asks int // of partitions that are down
}

var errShard = &store.Error{Verb: "claim", Err: errors.New("connection refused")}

func (s *partly) set(down ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = map[int]bool{}
	for _, p := range down {
		s.down[p] = true
	}
}

func (s *partly) is(partition int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down[partition] {
		s.asks++
	}
	return s.down[partition]
}

func (s *partly) Look(ctx context.Context, requests []store.LookRequest) ([]store.Look, error) {
	out := make([]store.Look, len(requests))
	failed := 0
	for i := range requests {
		if s.is(requests[i].Partition) {
			out[i] = store.Look{Partition: requests[i].Partition, Err: errShard}
			failed++
			continue
		}
		l, err := s.Store.Look(ctx, requests[i:i+1])
		if err != nil {
			return nil, err
		}
		out[i] = l[0]
	}
	if failed == len(requests) && failed > 0 {
		return nil, errShard
	}
	return out, nil
}

// Turn is made of Settle and Claim.
func (s *partly) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	return store.InTurn(ctx, s, runs, requests)
}

func (s *partly) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	out := make([]store.Claim, len(requests))
	failed := 0
	for i := range requests {
		if s.is(requests[i].Partition) {
			out[i] = store.Claim{Look: store.Look{Partition: requests[i].Partition, Err: errShard}}
			failed++
			continue
		}
		c, err := s.Store.Claim(ctx, requests[i:i+1])
		if err != nil {
			return nil, err
		}
		out[i] = c[0]
	}
	if failed == len(requests) && failed > 0 {
		return nil, errShard
	}
	return out, nil
}

func (s *partly) Extend(ctx context.Context, leases []store.Extension) ([]store.Extended, error) {
	out := make([]store.Extended, len(leases))
	failed := 0
	for i := range leases {
		if s.is(leases[i].Partition) {
			out[i].Err = errShard
			failed++
			continue
		}
		e, err := s.Store.Extend(ctx, leases[i:i+1])
		if err != nil {
			return nil, err
		}
		out[i] = e[0]
	}
	if failed == len(leases) && failed > 0 {
		return nil, errShard
	}
	return out, nil
}

// agentOf is an agent of a partition.
func agentOf(partition int) string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("p%d-%d", partition, i); store.PartitionOf(name, 8) == partition {
			return name
		}
	}
}

// A partition that does not answer stops only itself, is named, is asked now and then, and is served as soon as it is
// back.
func TestAPartitionThatIsAway(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		st := &partly{Store: w.store}
		s, err := core.New(st, core.Config{})
		require.NoError(t, err)
		core.Handle(s, "k", nothing)
		all := func() {
			for p := range 8 {
				w.submit(core.NewTask{Agent: agentOf(p), Kind: "k"})
			}
		}
		all()
		st.set(3, 5)
		report, err := s.RunDue(w.Context(), core.Scope{})
		var away *core.AwayError
		require.ErrorAs(t, err, &away)
		assert.Equal(t, []int{3, 5}, away.Partitions)
		assert.Equal(t, core.CodeUnavailable, core.CodeOf(err))
		assert.Equal(t, 6, report.Completed)
		assert.Equal(t, []int{3, 5}, report.Away)
		assert.True(t, report.More)
		require.ErrorAs(t, s.Ready(), &away)
		asked := st.asks
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			_, err = s.RunDue(w.Context(), core.Scope{})
			require.ErrorAs(t, err, &away)
		}
		assert.LessOrEqual(t, st.asks-asked, 20, "in five seconds, of two partitions")
		st.set()
		completed := 0
		for range 30 {
			time.Sleep(50 * time.Millisecond)
			report, _ = s.RunDue(w.Context(), core.Scope{})
			completed += report.Completed
		}
		assert.Equal(t, 2, completed, "within a second and a half")
		require.NoError(t, s.Ready())
		all()
		report, err = s.RunDue(w.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, 8, report.Completed)

		all()
		st.set(0, 1, 2, 3, 4, 5, 6, 7) // then it is the store that is away
		_, err = s.RunDue(w.Context(), core.Scope{})
		require.ErrorIs(t, err, errShard)
		require.NotErrorAs(t, err, &away)
		st.set()
		report, err = s.RunDue(w.Context(), core.Scope{})
		require.NoError(t, err, "at once")
		assert.Equal(t, 8, report.Completed)
	})
}

// The heartbeat of a partition that is away costs the others nothing.
func TestHeartbeatsOfAPartitionThatIsAway(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: 3 * time.Second}}, func(w *world) {
		st := &partly{Store: w.store}
		s, err := core.New(st, core.Config{Default: core.KindConfig{Lease: 3 * time.Second}})
		require.NoError(t, err)
		causes := map[string]error{}
		var mu sync.Mutex
		core.Handle(s, "k", func(ctx context.Context, task *core.Task[note]) error {
			select {
			case <-time.After(20 * time.Second):
			case <-ctx.Done():
			}
			mu.Lock()
			defer mu.Unlock()
			causes[task.Agent] = context.Cause(ctx)
			return ctx.Err()
		})
		w.submit(core.NewTask{Agent: agentOf(1), Kind: "k"}, core.NewTask{Agent: agentOf(2), Kind: "k"})
		time.AfterFunc(time.Second, func() { st.set(2) })
		time.AfterFunc(15*time.Second, func() { st.set() })
		report, _ := s.RunDue(w.Context(), core.Scope{})
		synctest.Wait()
		assert.Equal(t, [2]int{2, 0}, [2]int{report.Completed, report.Lost})
		assert.NoError(t, causes[agentOf(1)])
		assert.NoError(t, causes[agentOf(2)], "its partition was away for longer than a lease, and nobody has taken it")
	})
}

// Who ran a task, and who took it over from whom it died with, is in its history.
func TestTheHistoryNamesProcesses(t *testing.T) {
	virtual(t, core.Config{Name: "first"}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return errBoom })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 5})
		w.runFailing0()
		_, err := w.store.Store.Claim(w.Context(), []store.ClaimRequest{{ // somebody takes it and dies
			Partition: store.PartitionOf("a", 8), Nonce: "0123456789abcdef", Kinds: []string{"k"}, Limit: 1, Lease: time.Second, Agents: []string{"a"},
		}})
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		second, err := core.New(w.store, core.Config{Name: "second"})
		require.NoError(t, err)
		core.Handle(second, "k", nothing)
		for range 2 {
			_, err = second.RunDue(w.Context(), core.Scope{})
			require.NoError(t, err)
			time.Sleep(10 * time.Second)
		}
		info := w.task("a", "1")
		var got []string
		for _, run := range info.Runs {
			got = append(got, string(run.Outcome)+" "+run.Process)
		}
		assert.Equal(t, []string{"failed first", "crashed second", "success second"}, got)
	})
}

// runFailing0 pulls once, and waits until what failed is due again.
func (w *world) runFailing0() {
	_, _ = w.s.RunDue(w.Context(), core.Scope{})
	time.Sleep(2 * time.Second)
}
