package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/internal/waiting"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// raw is a task of a worker.
type raw = core.Task[json.RawMessage]

// lends asks for runs of kind k as a worker does.
func (w *world) lends(most int, wait time.Duration) core.Lent {
	w.Helper()
	lent, err := core.NewLender(w.s).Lend(w.Context(), core.Loan{Kinds: []string{"k"}, Most: most, Lease: 10 * time.Second, Wait: wait, Worker: "gpu-1"})
	require.NoError(w, err)
	return lent
}

// returns ends a lent run.
func (w *world) returns(t core.Ticket, end func(t *raw) error) core.ReturnedAs {
	w.Helper()
	out, err := core.NewLender(w.s).Return(w.Context(), core.Returned{Ticket: t, End: end})
	require.NoError(w, err)
	require.NoError(w, out[0].Err)
	return out[0]
}

// keeps is a sign of life of a lent run.
func (w *world) keeps(k core.Keep) core.Kept {
	w.Helper()
	out, err := core.NewLender(w.s).Keep(w.Context(), k)
	require.NoError(w, err)
	require.NoError(w, out[0].Err)
	return out[0]
}

// A worker outside gets what is due, keeps it for longer than its lease with a checkpoint, and ends it; the history has its times and its name.
func TestALentRun(t *testing.T) {
	virtual(t, core.Config{Name: "server"}, func(w *world) {
		w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k", Payload: note{"hello"}}, core.NewTask{Agent: "ada", ID: "2", Kind: "other"})
		lent := w.lends(10, 0)
		require.Len(t, lent.Runs, 1)
		run := lent.Runs[0]
		assert.JSONEq(t, `{"text":"hello"}`, string(run.Payload))
		assert.Equal(t, 1, run.Attempt)
		assert.Equal(t, core.StatusInProgress, w.task("ada", "1").Status)
		assert.Empty(t, w.lends(10, 0).Runs, "it is lent once")
		for range 4 {
			time.Sleep(8 * time.Second)
			assert.True(t, w.keeps(core.Keep{Ticket: run.Ticket}).Held)
			assert.Empty(t, w.lends(10, 0).Runs)
		}
		assert.True(t, w.keeps(core.Keep{Ticket: run.Ticket, Progress: json.RawMessage(`{"done":1}`), Checkpoint: json.RawMessage(`[7]`)}).Held)
		assert.JSONEq(t, `{"done":1}`, string(w.task("ada", "1").Progress))
		as := w.returns(run.Ticket, func(t *raw) error {
			var seven []int
			has, err := t.Checkpoint(&seven)
			if !has || err != nil || seven[0] != 7 {
				return errors.New("no checkpoint")
			}
			return t.SetResult("done")
		})
		assert.Equal(t, core.ReturnedAs{Status: core.StatusCompleted}, as)
		task := w.task("ada", "1")
		assert.Equal(t, core.StatusCompleted, task.Status)
		assert.JSONEq(t, `"done"`, string(task.Result))
		require.Len(t, task.Runs, 1)
		assert.Equal(t, 32*time.Second, task.Runs[0].Duration)
		assert.Equal(t, "gpu-1", task.Runs[0].Process)
		assert.Equal(t, as, w.returns(run.Ticket, func(*raw) error { return errors.New("no") }), "sent again, it changes nothing")
		assert.JSONEq(t, `"done"`, string(w.task("ada", "1").Result))
		assert.False(t, w.keeps(core.Keep{Ticket: run.Ticket}).Held)
	})
}

// Each outcome of a handler is one of a lent run.
func TestOutcomesOfLentRuns(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{MaxAttempts: 2, Backoff: time.Second, MaxBackoff: time.Second}}, func(w *world) {
		w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
		one := func() core.Ticket {
			lent := w.lends(1, time.Hour)
			require.Len(t, lent.Runs, 1)
			return lent.Runs[0].Ticket
		}
		assert.Equal(t, core.StatusWaiting, w.returns(one(), func(*raw) error { return core.Snooze(time.Minute) }).Status)
		begun := time.Now()
		ticket := one()
		assert.Equal(t, time.Minute, time.Since(begun), "the wait is until it is due")
		assert.Equal(t, core.StatusWaiting, w.returns(ticket, func(*raw) error { return core.Yield([]int{1}, time.Second) }).Status)
		assert.True(t, w.returns(one(), nil).Released)
		assert.Equal(t, core.StatusWaiting, w.returns(one(), func(*raw) error { return errors.New("once") }).Status)
		assert.Equal(t, core.StatusFailed, w.returns(one(), func(*raw) error { panic("twice") }).Status)
		task := w.task("ada", "1")
		assert.EqualValues(t, 2, task.ErrorCount)
		assert.Contains(t, task.LastError, "twice")
	})
}

// A worker that dies loses its run with the lease, and what it sends later changes nothing.
func TestAWorkerThatDies(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
		first := w.lends(1, 0).Runs[0]
		w.keeps(core.Keep{Ticket: first.Ticket, Checkpoint: json.RawMessage(`"half"`)})
		second := w.lends(1, time.Minute).Runs[0]
		assert.Greater(t, second.Fence, first.Fence)
		assert.Equal(t, 1, second.Crashes)
		var at string
		_, err := second.Checkpoint(&at)
		require.NoError(t, err)
		assert.Equal(t, "half", at)
		assert.False(t, w.keeps(core.Keep{Ticket: first.Ticket, Checkpoint: json.RawMessage(`"stale"`)}).Held)
		assert.True(t, w.returns(first.Ticket, func(*raw) error { return nil }).Lost)
		assert.Equal(t, core.StatusCompleted, w.returns(second.Ticket, func(t *raw) error {
			assert.Equal(w, 1, t.Crashes, "as it began, also if the first worker turns out to live")
			_, err := t.Checkpoint(&at)
			return err
		}).Status)
		assert.Equal(t, "half", at)
	})
}

// A cancel, a delete and a timeout reach a worker with its next sign of life.
func TestALentRunIsToEnd(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for _, id := range []string{"1", "2", "3"} {
			w.submit(core.NewTask{Agent: "ada", ID: id, Kind: "k", Timeout: 15 * time.Second})
		}
		of := map[string]core.Ticket{}
		for _, run := range w.lends(10, 0).Runs {
			of[run.ID] = run.Ticket
			assert.Equal(t, 15*time.Second, run.Timeout)
		}
		_, err := w.s.Cancel(w.Context(), "ada", "1", core.Order{By: "ann", Reason: "no more"})
		require.NoError(t, err)
		require.NoError(t, w.s.Delete(w.Context(), "ada", "2"))
		kept := w.keeps(core.Keep{Ticket: of["1"]})
		assert.ErrorIs(t, kept.Cause, core.ErrCancelled)
		assert.Equal(t, "no more", kept.Order.Reason)
		assert.False(t, w.keeps(core.Keep{Ticket: of["2"]}).Held)
		assert.Equal(t, core.StatusCancelled, w.returns(of["1"], func(*raw) error { return nil }).Status)
		for range 2 {
			require.NoError(t, w.keeps(core.Keep{Ticket: of["3"]}).Cause)
			time.Sleep(8 * time.Second)
		}
		assert.ErrorIs(t, w.keeps(core.Keep{Ticket: of["3"]}).Cause, core.ErrTimeout)
		for range 4 {
			time.Sleep(8 * time.Second)
			w.keeps(core.Keep{Ticket: of["3"]})
		}
		assert.False(t, w.keeps(core.Keep{Ticket: of["3"]}).Held, "no worker holds a task for ever")
		assert.Len(t, w.lends(1, time.Minute).Runs, 1)
	})
}

// What must not start is not lent: a misfire that is skipped, an overlap, a closed gate, another's task.
func TestWhatIsNotLent(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.submit(core.NewTask{Agent: "ada", ID: "late", Kind: "k", Every: time.Hour, Misfire: core.MisfireSkip})
		w.submit(core.NewTask{Agent: "ada", ID: "twins", Kind: "k", Cron: "0 * * * *", Overlap: core.OverlapAllow})
		time.Sleep(90 * time.Minute)
		lent := w.lends(10, time.Minute) // it was late, and so is put off by chance
		require.Len(t, lent.Runs, 1)
		assert.Equal(t, "twins", lent.Runs[0].Parent, "it is its child, and not the occurrence again")
		assert.EqualValues(t, 1, w.task("ada", "late").SkipCount)
		none, err := core.NewLender(w.s).Lend(w.Context(), core.Loan{Kinds: []string{"k"}, Agents: []string{"bob"}, Most: 10})
		require.NoError(t, err)
		assert.Empty(t, none.Runs)
	})
}

// spied is a store that can wake, and counts its calls.
type spied struct {
	storetest.Spy
	store.Waker
}

// Of workers that wait for the same only one is woken for a task; a caller that has gone gets nothing.
func TestWaitingWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(memstore.Config{Partitions: 8})
		st := &spied{Spy: storetest.Spy{Store: mem}, Waker: mem}
		s, err := core.New(st, core.Config{})
		require.NoError(t, err)
		l := core.NewLender(s)
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var got atomic.Int64
		for i := range 10 {
			all.Go(func() {
				of := t.Context()
				if i == 0 { // it has waited longest
					of = ctx
				}
				lent, _ := l.Lend(of, core.Loan{Kinds: []string{"k"}, Wait: 20 * time.Second})
				got.Add(int64(len(lent.Runs)))
			})
			time.Sleep(time.Millisecond)
		}
		leave()
		time.Sleep(time.Second)
		submit := func(task core.NewTask) {
			_, err := s.Submit(t.Context(), task)
			require.NoError(t, err)
		}
		before := st.Calls("Claim", "Look")
		submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
		time.Sleep(10 * time.Millisecond)
		assert.LessOrEqual(t, st.Calls("Claim", "Look")-before, 4, "one that gets it, and one that sees that there is no more")
		assert.EqualValues(t, 1, got.Load())
		submit(core.NewTask{Agent: "ada", ID: "2", Kind: "k", Delay: 5 * time.Second})
		time.Sleep(5*time.Second - time.Millisecond)
		assert.EqualValues(t, 1, got.Load())
		time.Sleep(10 * time.Millisecond)
		assert.EqualValues(t, 2, got.Load())
		all.Wait()
		assert.EqualValues(t, 2, got.Load())
		time.Sleep(waiting.Lingers) // until nothing is listened to
		synctest.Wait()
	})
}

// A run whose caller goes while it is prepared is given back at once.
func TestNothingIsLentWithoutACaller(t *testing.T) {
	leave := func() {}
	asked := core.AuthorizerFunc(func(_ context.Context, _ core.Principal, what core.Access) error {
		if what.Action == model.ActionRun {
			leave()
		}
		return nil
	})
	virtual(t, core.Config{Authorizer: asked}, func(w *world) {
		var ctx context.Context
		ctx, leave = context.WithCancel(w.Context())
		w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
		lent, _ := core.NewLender(w.s).Lend(ctx, core.Loan{Kinds: []string{"k"}})
		assert.Empty(t, lent.Runs)
		assert.Len(t, w.lends(1, 0).Runs, 1)
	})
}

// A loan, a ticket and a sign of life that make no sense are refused before any call of the store.
func TestALoanThatMakesNoSense(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for field, l := range map[string]core.Loan{
			"kinds": {}, "kind": {Kinds: []string{"duly.tell"}}, "most": {Kinds: []string{"k"}, Most: 51}, "lease": {Kinds: []string{"k"}, Lease: time.Millisecond}, "wait": {Kinds: []string{"k"}, Wait: -1},
			"agent_ids[0]": {Kinds: []string{"k"}, Agents: []string{""}}, "worker": {Kinds: []string{"k"}, Worker: strings.Repeat("x", 101)},
		} {
			_, err := core.NewLender(w.s).Lend(w.Context(), l)
			var wrong *core.InvalidError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, field, wrong.Field)
		}
		w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
		ticket := w.lends(1, 0).Runs[0].Ticket
		before := w.store.Calls()
		for field, k := range map[string]core.Keep{
			"ticket": {}, "progress": {Ticket: ticket, Progress: json.RawMessage("{")}, "checkpoint": {Ticket: ticket, Checkpoint: make([]byte, core.MaxCheckpoint+1)},
			"used": {Ticket: ticket, Used: core.Usage{"tokens": -1}},
		} {
			_, err := core.NewLender(w.s).Keep(w.Context(), k)
			var wrong *core.InvalidError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, field, wrong.Field)
		}
		assert.Equal(t, before, w.store.Calls())
	})
}

// A process that has lent a task does not read it again, unless another one has stored something of its run since.
func TestALentTaskIsReadOnce(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		here, there := core.NewLender(w.s), core.NewLender(w.s)
		seen := ""
		for _, c := range []struct {
			by     []*core.Lender // that store checkpoints 1, 2 and so on
			number int64
			reads  int
		}{{nil, 0, 0}, {[]*core.Lender{here, here}, 2, 0}, {[]*core.Lender{here, there}, 2, 2}, {[]*core.Lender{there, here, here}, 3, 2}, {[]*core.Lender{here}, 0, 1}} {
			w.submit(core.NewTask{Agent: "ada", Kind: "k"})
			lent, err := here.Lend(w.Context(), core.Loan{Kinds: []string{"k"}})
			require.NoError(t, err)
			ticket, before := lent.Runs[0].Ticket, w.store.Calls("Get")
			for i, by := range c.by {
				kept, err := by.Keep(w.Context(), core.Keep{Ticket: ticket, Checkpoint: json.RawMessage(strconv.Itoa(i + 1)), Number: int64(i + 1)})
				require.NoError(t, err)
				require.True(t, kept[0].Held)
			}
			out, err := here.Return(w.Context(), core.Returned{Ticket: ticket, Number: c.number, End: func(t *raw) error {
				at := 0
				_, err := t.Checkpoint(&at)
				seen = strconv.Itoa(at)
				return err
			}})
			require.NoError(t, err)
			require.Equal(t, core.StatusCompleted, out[0].Status)
			assert.Equal(t, strconv.Itoa(len(c.by)), seen)
			assert.Equal(t, c.reads, w.store.Calls("Get")-before, "%d saves", len(c.by))
		}
	})
}

// What a worker reports as used is charged once, and a budget that it uses up ends its run.
func TestALentRunUsesABudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOn(t, memstore.New(memstore.Config{}), core.Config{})
		tokens := core.BudgetTarget{LimitTarget: core.LimitTarget{Kind: "k"}, Unit: "tokens", Per: core.PerDay}
		require.NoError(t, w.s.SetBudgets(w.Context(), core.Budget{About: tokens, Amount: core.AmountOf(100)}))
		w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
		ticket := w.lends(1, 0).Runs[0].Ticket
		require.NoError(t, w.keeps(core.Keep{Ticket: ticket, Used: core.Usage{"tokens": 60}}).Cause)
		require.ErrorIs(t, w.keeps(core.Keep{Ticket: ticket, Used: core.Usage{"tokens": 110}}).Cause, core.ErrBudgetSpent)
		w.returns(ticket, func(t *raw) error { return t.Use(core.Usage{"tokens": 120}) })
		all, err := w.s.Budgets(w.Context())
		require.NoError(t, err)
		assert.Equal(t, core.AmountOf(120), all[0].Used)
	})
}

// A run that waits for its gate costs the others of its loan nothing: their leases are kept until the worker has them.
func TestASlowGateBesideLentRuns(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Gate(w.s, "k", func(ctx context.Context, t *core.RunInfo) (core.GateAnswer, error) {
			if t.ID == "slow" {
				return core.GateAnswer{Open: true}, sleep(ctx, 25*time.Second)
			}
			return core.GateAnswer{Open: true}, nil
		})
		w.submit(core.NewTask{Agent: "ada", ID: "quick", Kind: "k"}, core.NewTask{Agent: "bob", ID: "slow", Kind: "k"}) // in two partitions
		others := make(chan int)
		go func() {
			n := 0
			for range 10 { // until the gate has answered
				time.Sleep(2 * time.Second)
				n += len(w.lends(10, 0).Runs)
			}
			others <- n
		}()
		lent := w.lends(10, 0)
		require.Len(t, lent.Runs, 2)
		assert.Zero(t, <-others, "another worker gets none of them meanwhile")
		for _, run := range lent.Runs {
			assert.True(t, w.keeps(core.Keep{Ticket: run.Ticket}).Held, run.ID)
		}
	})
}

// A store that is away or full makes no worker wait for long: the worker is answered that nothing is known, and its end counts when it is sent again.
func TestAnEndWhileTheStoreIsAway(t *testing.T) {
	for verb, failure := range map[string]error{
		"Settle": &store.Error{Verb: "settle", Err: errors.New("connection refused")},
		"Submit": store.ErrFull, // of the delivery, which is stored before
	} {
		t.Run(verb, func(t *testing.T) {
			virtual(t, core.Config{Callbacks: &receiver{}}, func(w *world) {
				w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k", Callback: hook})
				lent, err := core.NewLender(w.s).Lend(w.Context(), core.Loan{Kinds: []string{"k"}, Lease: time.Hour})
				require.NoError(t, err)
				ticket, away := lent.Runs[0].Ticket, true
				w.store.Before = func(_ context.Context, called string) error {
					if away && called == verb {
						return failure
					}
					return nil
				}
				begun := time.Now()
				out, err := core.NewLender(w.s).Return(w.Context(), core.Returned{Ticket: ticket, End: func(*raw) error { return nil }})
				require.NoError(t, err)
				require.ErrorIs(t, out[0].Err, failure)
				require.NotErrorIs(t, out[0].Err, core.ErrLeaseLost)
				assert.False(t, out[0].Lost)
				assert.LessOrEqual(t, time.Since(begun), 11*time.Second)
				away = false
				assert.Equal(t, core.StatusCompleted, w.returns(ticket, func(*raw) error { return nil }).Status)
			})
		})
	}
}

// A worker that sleeps, and that the clock outside calls in place of a host, makes what falls due at its second: each claim books the call for what is next,
// and one that it does not end is booked for the end of its lease.
func TestAWorkerThatAnAlarmWakes(t *testing.T) {
	inCloud(t, func(c *cloud) {
		s := c.process(c.store, c)
		loan := core.Loan{Kinds: []string{"gpu"}, Lease: 30 * time.Second, Worker: "gpu-1", Most: 10}
		_, err := s.Submit(c.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "gpu", Delay: 10 * time.Second}, core.NewTask{Agent: "b", ID: "dies", Kind: "gpu", Delay: time.Minute},
			core.NewTask{Agent: "c", ID: "2", Kind: "gpu", Every: time.Hour, From: core.FromStart})
		require.NoError(c, err)
		calls, starts := 0, map[string][]time.Duration{}
		c.live(150*time.Minute, func() {
			calls++
			l := core.NewLender(c.process(c.store, c)) // a server of the moment
			var ends []core.Returned
			for {
				_, lent, err := l.Turn(c.Context(), ends, loan)
				require.NoError(c, err)
				if ends = nil; len(lent.Runs) == 0 {
					return
				}
				for _, run := range lent.Runs {
					starts[run.ID] = append(starts[run.ID], time.Since(c.begun).Truncate(time.Second))
					if run.ID != "dies" || run.Crashes > 0 {
						ends = append(ends, core.Returned{Ticket: run.Ticket, End: func(*raw) error { return nil }})
					}
				}
			}
		})
		want := map[string][]time.Duration{"1": {10 * time.Second}, "2": {time.Second, time.Hour, 2 * time.Hour}, "dies": {time.Minute, 90 * time.Second}}
		for id, times := range want {
			require.Len(c, starts[id], len(times), id)
			for i, at := range times {
				assert.InDelta(c, at.Seconds(), starts[id][i].Seconds(), 2, id)
			}
		}
		assert.LessOrEqual(c, calls, 16, "seven times of which each has a guard, and little besides")
	})
}

// Beside an alarm that calls a host, a worker that polls neither takes nor delays what the host runs, whatever it comes across, and the other way round.
func TestAHostBesideAWorkerThatPolls(t *testing.T) {
	inCloud(t, func(c *cloud) {
		s := c.process(c.store, c)
		for i := range 20 {
			_, err := s.Submit(c.Context(), core.NewTask{Agent: fmt.Sprint("a", i), ID: fmt.Sprint(i), Kind: "k", Delay: time.Duration(10+i*7) * time.Second},
				core.NewTask{Agent: fmt.Sprint("a", i), ID: fmt.Sprint("gpu", i), Kind: "gpu", Delay: time.Duration(10+i*5) * time.Second})
			require.NoError(c, err)
		}
		var polls sync.WaitGroup
		taken := 0
		polls.Go(func() {
			for range 100 {
				lent, err := core.NewLender(c.process(c.store, c)).Lend(c.Context(), core.Loan{Kinds: []string{"gpu"}, Lease: 30 * time.Second, Worker: "gpu-1", Most: 10})
				assert.NoError(c, err)
				for _, run := range lent.Runs {
					taken++
					_, err := core.NewLender(s).Return(c.Context(), core.Returned{Ticket: run.Ticket, End: func(*raw) error { return nil }})
					assert.NoError(c, err)
				}
				time.Sleep(1900 * time.Millisecond)
			}
		})
		c.live(200*time.Second, func() {
			_, err := c.process(c.store, c).RunDue(c.Context(), core.Scope{})
			assert.NoError(c, err)
		})
		polls.Wait()
		assert.Equal(c, 20, taken)
		for i := range 20 {
			looked := 0
			for name, at := range c.starts {
				if strings.HasPrefix(name, fmt.Sprintf("%d%d-", i, c.begun.Year())) {
					looked++
					assert.InDelta(c, 10+i*7, at.Sub(c.begun).Seconds(), 2, name)
				}
			}
			assert.Equal(c, 1, looked, "%d: %v", i, c.starts)
		}
	})
}

// A turn beside an alarm waits for nothing that is about to fall due, and least of all for the end of its own leases: its ends are stored at once.
func TestATurnBesideAnAlarm(t *testing.T) {
	inCloud(t, func(c *cloud) {
		l := core.NewLender(c.process(c.store, c))
		_, err := c.process(c.store, c).Submit(c.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "gpu"}, core.NewTask{Agent: "b", ID: "2", Kind: "gpu", Delay: 3 * time.Second})
		require.NoError(c, err)
		loan := core.Loan{Kinds: []string{"gpu"}, Lease: 2 * time.Second, Worker: "gpu-1"}
		lent, err := l.Lend(c.Context(), loan)
		require.NoError(c, err)
		require.Len(c, lent.Runs, 1)
		as, next, err := l.Turn(c.Context(), []core.Returned{{Ticket: lent.Runs[0].Ticket, End: func(*raw) error { return nil }}}, loan)
		require.NoError(c, err)
		assert.Equal(c, core.StatusCompleted, as[0].Status)
		assert.Empty(c, next.Runs)
		assert.Less(c, time.Since(c.begun), 100*time.Millisecond)
	})
}
