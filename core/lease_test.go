package core_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

func TestHeartbeatsKeepLeases(t *testing.T) {
	virtual(t, core.Config{Concurrency: 10, Default: core.KindConfig{Lease: 30 * time.Second}}, func(w *world) {
		core.Handle(w.s, "long", func(_ context.Context, task *core.Task[note]) error {
			for i := range 10 {
				time.Sleep(time.Minute)
				assert.NoError(t, task.SetProgress(i))
			}
			return nil
		})
		w.submit(numbered("a", "long", 3)...)
		done := make(chan core.Report)
		go func() { done <- w.run() }()
		time.Sleep(5*time.Minute + 30*time.Second)
		other, err := core.New(w.store, core.Config{})
		require.NoError(t, err)
		core.Handle(other, "long", nothing)
		report, err := other.RunDue(w.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Zero(t, report.Ran, "nobody else gets them")
		info := w.task("a", "000")
		assert.Equal(t, core.StatusInProgress, info.Status)
		assert.JSONEq(t, "4", string(info.Progress), "progress goes with the heartbeats")
		report = <-done
		assert.Equal(t, 3, report.Completed)
		assert.InDelta(t, 60, w.store.count("extend"), 1, "one call for all leases, three times in a lease")
	})
}

// A claim whose tasks are all settled is not kept alive.
func TestHeartbeatsEndWithTheirClaims(t *testing.T) {
	virtual(t, core.Config{Concurrency: 10, Default: core.KindConfig{Lease: 30 * time.Second}}, func(w *world) {
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			if task.Agent == "long" {
				time.Sleep(time.Minute + time.Second)
			}
			return nil
		})
		require.NotEqual(t, store.PartitionOf("long", 8), store.PartitionOf("quick", 8))
		w.submit(core.NewTask{Agent: "long", Kind: "k"}, core.NewTask{Agent: "quick", Kind: "k"})
		assert.Equal(t, 2, w.run().Completed)
		assert.Equal(t, []int{1, 1, 1, 1, 1, 1}, w.store.sizes)
	})
}

// A task may have a lease of its own, and so may a kind: the heartbeats give it to them.
func TestLeasesOfTasksAndKinds(t *testing.T) {
	for _, c := range []struct {
		name string
		task core.NewTask
		want time.Duration
	}{
		// As the store holds them: without their notice.
		{"default", core.NewTask{Kind: "k"}, 25 * time.Second},
		{"kind", core.NewTask{Kind: "patient"}, 5*time.Minute - 5*time.Second},
		{"task", core.NewTask{Kind: "patient", Lease: time.Minute}, 55 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			kinds := map[string]core.KindConfig{"patient": {Lease: 5 * time.Minute}}
			virtual(t, core.Config{Kinds: kinds}, func(w *world) {
				long := func(context.Context, *core.Task[note]) error { time.Sleep(3 * time.Minute); return nil }
				core.Handle(w.s, "k", long)
				core.Handle(w.s, "patient", long)
				c.task.Agent = "a"
				w.submit(c.task)
				w.run()
				require.NotEmpty(t, w.store.lease)
				assert.Equal(t, c.want, w.store.lease[0])
				assert.Equal(t, c.want, w.store.lease[len(w.store.lease)-1])
			})
		})
	}
}

// A claim with a short lease gets its heartbeats although those of a long one are planned for later.
func TestAShortLeaseBesideALongOne(t *testing.T) {
	kinds := map[string]core.KindConfig{"slow": {Lease: time.Minute}, "fast": {Lease: 3 * time.Second}}
	virtual(t, core.Config{Concurrency: 2, Kinds: kinds}, func(w *world) {
		var fast atomic.Int64
		handle := func(s *core.Scheduler) {
			core.Handle(s, "slow", func(_ context.Context, task *core.Task[int]) error {
				time.Sleep(time.Duration(task.Payload) * time.Second)
				return nil
			})
			core.Handle(s, "fast", func(context.Context, *core.Task[note]) error {
				fast.Add(1)
				time.Sleep(15 * time.Second)
				return nil
			})
		}
		handle(w.s)
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "slow", Level: 1, Payload: 60},
			core.NewTask{Agent: "a", ID: "2", Kind: "slow", Level: 1, Payload: 5}, core.NewTask{Agent: "a", ID: "3", Kind: "fast"})
		done := make(chan core.Report)
		go func() { done <- w.run() }()
		time.Sleep(10 * time.Second)
		other, err := core.New(w.store, core.Config{Kinds: kinds})
		require.NoError(t, err)
		handle(other)
		_, err = other.RunDue(w.Context(), core.Scope{})
		require.NoError(t, err)
		report := <-done
		assert.Equal(t, int64(1), fast.Load(), "nobody has died")
		assert.Zero(t, report.Lost)
	})
}

func TestRunTickKeepsShortLeases(t *testing.T) {
	kinds := map[string]core.KindConfig{"k": {Lease: 3 * time.Second}}
	virtual(t, core.Config{Kinds: kinds}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { time.Sleep(15 * time.Second); return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		request := store.ClaimRequest{
			Partition: store.PartitionOf("a", 8), Nonce: "0123456789abcdef", Kinds: []string{"k"}, Limit: 1, Lease: 3 * time.Second,
		}
		claims, err := w.store.Claim(w.Context(), []store.ClaimRequest{request})
		require.NoError(t, err)
		time.AfterFunc(5*time.Second, func() {
			request.Nonce = "0123456789abcdeg"
			again, err := w.store.Claim(w.Context(), []store.ClaimRequest{request})
			assert.NoError(t, err)
			assert.Zero(t, again[0].Recovered)
		})
		report, err := w.s.RunTick(w.Context(), "a", claims[0].Tasks)
		require.NoError(t, err)
		assert.Equal(t, 1, report.Completed)
		assert.False(t, report.More)
		assert.Zero(t, report.NextDueAt)
	})
}

// A run outlives an outage of its store, however long that is beside its lease: it is not interrupted, and its outcome is stored.
func TestARunOutlivesAnOutage(t *testing.T) {
	for name, hang := range map[string]bool{"it hangs": true, "it refuses": false} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{Default: core.KindConfig{Lease: 2 * time.Second}}, func(w *world) {
				runs := 0
				core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
					runs++
					return sleep(ctx, time.Minute)
				})
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
				begun := time.Now()
				time.AfterFunc(time.Second, func() { w.store.hang.Store(hang) })
				time.AfterFunc(43*time.Second, func() { w.store.hang.Store(false) })
				w.store.failing(func(verb string, _ int) error {
					if since := time.Since(begun); !hang && verb == "extend" && since > time.Second && since < 43*time.Second {
						return errors.New("no route")
					}
					return nil
				})
				report := w.run()
				assert.Equal(t, [3]int{1, 0, 1}, [3]int{report.Completed, report.Lost, runs})
				assert.Equal(t, time.Minute, time.Since(begun))
				assert.Zero(t, w.task("a", "1").Crashes)
			})
		})
	}
}

// A handler whose task another process has begun is told so, and what it returns is refused.
func TestLostLease(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: 9 * time.Second}}, func(w *world) {
		var cause error
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.store.failing(func(verb string, n int) error {
			if verb == "extend" && n == 1 {
				return errors.New("lost on the way")
			}
			return nil
		})
		time.AfterFunc(5*time.Second, func() { w.steal("a") })
		report := w.run()
		assert.ErrorIs(t, cause, core.ErrLeaseLost)
		assert.Equal(t, 1, report.Lost)
		require.Len(t, w.seen(model.EventLost), 1)
	})
}

// A process whose lease was taken back while it was away takes its run back, if nobody else has begun it: nothing is counted, and it is not
// run a second time.
func TestALostRunIsTakenBack(t *testing.T) {
	for name, began := range map[string]bool{"it waits": false, "another process has begun it": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{Default: core.KindConfig{Lease: 9 * time.Second}}, func(w *world) {
				runs := 0
				core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
					runs++
					return sleep(ctx, 30*time.Second)
				})
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
				w.store.failing(func(verb string, _ int) error {
					if verb == "extend" && time.Since(w.begun) < 20*time.Second {
						return errors.New("no route")
					}
					return nil
				})
				time.AfterFunc(15*time.Second, func() {
					limit := 0 // another process takes the task back, and has no slot for it
					if began {
						limit = 1
					}
					claims, err := w.store.Store.Claim(w.Context(), []store.ClaimRequest{{
						Partition: store.PartitionOf("a", 8), Nonce: "thief-0123456789", Kinds: []string{"k"}, Limit: limit, Lease: 5 * time.Second,
					}})
					assert.NoError(t, err)
					assert.Equal(t, [2]int{1, limit}, [2]int{claims[0].Recovered, len(claims[0].Tasks)})
				})
				report := w.run()
				info := w.task("a", "1")
				if began {
					assert.Equal(t, 1, report.Lost)
					assert.Zero(t, info.Crashes, "its process lived")
					return
				}
				assert.Equal(t, [3]int{1, 0, 1}, [3]int{report.Completed, report.Lost, runs})
				assert.Equal(t, core.StatusCompleted, info.Status)
				assert.Equal(t, int64(1), info.RunCount)
			})
		})
	}
}

// steal makes the store believe that a lease is over: it claims until the task is its own.
func (w *world) steal(agent string) {
	w.Helper()
	p := store.PartitionOf(agent, w.store.Partitions())
	held, err := w.store.Store.Extend(w.Context(), []store.Extension{{Partition: p, Fence: w.seen(model.EventStart)[0].Fence, Lease: time.Millisecond}})
	require.NoError(w, err)
	require.Equal(w, []store.Extended{{Held: true}}, held)
	time.Sleep(time.Millisecond)
	claims, err := w.store.Store.Claim(w.Context(), []store.ClaimRequest{{
		Partition: p, Nonce: "thief-0123456789", Kinds: []string{"k"}, Limit: 1, Lease: time.Hour,
	}})
	require.NoError(w, err)
	require.Len(w, claims[0].Tasks, 1)
}

// dies runs an agent's task in a process that dies meanwhile, and returns how many crashes it had before.
func (w *world) dies(agent, kind string) int {
	w.Helper()
	p := store.PartitionOf(agent, 8)
	claims, err := w.store.Claim(w.Context(), []store.ClaimRequest{{
		Partition: p, Nonce: rand.Text()[:store.NonceLen], Kinds: []string{kind}, Limit: 1, Lease: time.Second,
	}})
	require.NoError(w, err)
	require.Len(w, claims[0].Tasks, 1)
	c := claims[0].Tasks[0]
	time.Sleep(time.Second)
	return c.Crashes
}

// A task whose process dies again and again is dead in the end, apart from its attempts.
func TestCrashesAreCountedApart(t *testing.T) {
	virtual(t, core.Config{MaxCrashes: 3}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 1})
		for i := range 4 {
			assert.Equal(t, i, w.dies("a", "k"))
		}
		report := w.runFailing()
		assert.Equal(t, 1, report.Failed)
		assert.Equal(t, 1, report.Recovered)
		assert.Zero(t, ran)
		info := w.task("a", "1")
		assert.Equal(t, core.StatusFailed, info.Status)
		assert.Equal(t, "crashed", info.Reason)
		assert.Equal(t, int64(4), info.RunCount)
		assert.Equal(t, model.OutcomeCrashed, info.LastOutcome)
		_, err := w.s.Replay(w.Context(), "a", "1")
		require.NoError(t, err)
		assert.Equal(t, 1, w.run().Completed)
	})
}

func TestACrashIsNoAttempt(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			assert.Equal(t, 1, task.Attempt)
			assert.Equal(t, 1, task.Crashes)
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 1})
		_, err := w.store.Claim(w.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf("a", 8), Nonce: "0123456789abcdef", Kinds: []string{"k"}, Limit: 1, Lease: time.Second,
		}})
		require.NoError(t, err)
		report := w.run()
		assert.Zero(t, report.Ran)
		assert.Equal(t, time.Now().Add(time.Second).UnixMilli(), report.NextDueAt.UnixMilli(), "the end of a lease is a reason to come back")
		time.Sleep(time.Second)
		assert.Equal(t, 1, w.run().Completed)
		runs := w.task("a", "1").Runs
		require.Len(t, runs, 2)
		assert.Equal(t, model.OutcomeCrashed, runs[0].Outcome)
		assert.Equal(t, model.OutcomeSuccess, runs[1].Outcome)
	})
}

// Only the store says that a lease is lost: what a handler got from elsewhere must not leave its own task under lease.
func TestAHandlerThatSaysThatALeaseIsLostHasFailed(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		n := 0
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error { n++; return core.ErrLeaseLost })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 2})
		w.runUntil(hours(1))
		info := w.task("a", "1")
		t.Log(n, info.Status, info.Reason, info.Crashes)
		assert.Equal(t, "attempts", info.Reason)
	})
}

// forgetful loses the outcome of one task, as a store that has failed over to a replica without its last writes.
type forgetful struct {
	store.Store

	id       string // whose outcome it loses; empty once it has
	released atomic.Int64
}

func (s *forgetful) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	if runs[0].Verb == store.VerbRelease {
		s.released.Add(1)
	}
	at := slices.IndexFunc(runs, func(r store.Settlement) bool { return r.ID == s.id })
	if at < 0 {
		return s.Store.Settle(ctx, runs)
	}
	s.id = ""
	settled, err := s.Store.Settle(ctx, slices.Delete(slices.Clone(runs), at, at+1))
	return slices.Insert(settled, at, store.Settled{}), err
}

func (s *forgetful) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	return store.InTurn(ctx, s, runs, requests)
}

// A task whose outcome is lost does not wait for as long as another one takes that was claimed with it. Of the others nothing is reported, nor of any
// where nothing was lost.
func TestALostOutcomeWaitsForNoOther(t *testing.T) {
	for _, lost := range []string{"quick", "none"} {
		t.Run(lost, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				st, log := &forgetful{Store: w.store.Store, id: lost}, &bytes.Buffer{}
				s, err := core.New(st, core.Config{Default: core.KindConfig{Lease: 30 * time.Second}, Logger: slog.New(slog.NewTextHandler(log, nil))})
				require.NoError(t, err)
				var runs atomic.Int64
				core.Handle(s, "k", func(ctx context.Context, task *core.Task[note]) error {
					switch task.ID {
					case "long", "longer":
						time.Sleep(time.Second)
						assert.NoError(t, task.Save(ctx, "half"))
						time.Sleep(10 * time.Minute)
					case "quick":
						runs.Add(1)
					}
					return nil
				})
				w.submit(core.NewTask{Agent: "a", ID: "long", Kind: "k"}, core.NewTask{Agent: "a", ID: "quick", Kind: "k"},
					core.NewTask{Agent: "a", ID: "other", Kind: "k"}, core.NewTask{Agent: "a", ID: "longer", Kind: "k"})
				done := make(chan core.Report)
				go func() {
					r, err := s.RunDue(w.Context(), core.Scope{})
					assert.NoError(t, err)
					done <- r
				}()
				time.Sleep(16 * time.Second) // a heartbeat
				_, err = s.RunDue(w.Context(), core.Scope{})
				require.NoError(t, err)
				info := w.task("a", "quick")
				assert.Equal(t, core.StatusCompleted, info.Status)
				assert.Zero(t, info.ErrorCount, "nothing is charged")
				assert.Equal(t, core.StatusInProgress, w.task("a", "long").Status)
				<-done
				assert.Equal(t, core.StatusCompleted, w.task("a", "long").Status)
				if lost == "none" {
					assert.Equal(t, int64(1), runs.Load())
					assert.Empty(t, log.String())
					assert.Zero(t, st.released.Load(), "nothing is given back")
					return
				}
				assert.Equal(t, int64(2), runs.Load(), "it has run again")
				assert.Equal(t, 1, strings.Count(log.String(), "the store has lost the outcome"), log.String())
			})
		})
	}
}
