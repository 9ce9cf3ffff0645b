package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest/spy"
)

// turns returns lent runs of kind k and asks for more in the same call.
func (w *world) turns(loan core.Loan, done ...core.LentRun) ([]core.ReturnedAs, core.Lent, error) {
	w.Helper()
	var ends []core.Returned
	for _, r := range done {
		ends = append(ends, core.Returned{Ticket: r.Ticket, End: func(*raw) error { return nil }})
	}
	loan.Kinds, loan.Worker = []string{"k"}, "gpu-1"
	return core.NewLender(w.s).Turn(w.Context(), ends, loan)
}

// What a worker has ended travels with the claim of what comes next: one call of the store, however many have ended.
func TestATurnOfAWorker(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for _, id := range []string{"1", "2", "3", "4"} {
			w.submit(core.NewTask{Agent: "ada", ID: id, Kind: "k"})
		}
		lent := w.lends(2, 0)
		require.Len(t, lent.Runs, 2)
		turns, settled := w.store.Turns(), w.store.Calls("Settle")
		as, next, err := w.turns(core.Loan{Most: 2}, lent.Runs...)
		require.NoError(t, err)
		assert.Equal(t, []core.ReturnedAs{{Status: core.StatusCompleted}, {Status: core.StatusCompleted}}, as)
		assert.Len(t, next.Runs, 2)
		assert.Equal(t, turns+1, w.store.Turns())
		assert.Equal(t, settled+1, w.store.Calls("Settle"), "they are settled by the turn, all at once")
		as, next, err = w.turns(core.Loan{Wait: time.Minute}, next.Runs...)
		require.NoError(t, err)
		assert.Len(t, as, 2)
		assert.Empty(t, next.Runs)
	})
}

// Ends are stored however the claim goes: what is wrong with it is found before, and one that is not made or fails keeps none of them.
func TestTheEndsOfATurnAreStored(t *testing.T) {
	virtual(t, core.Config{Callbacks: &receiver{}}, func(w *world) {
		for _, id := range []string{"1", "2", "3"} {
			w.submit(core.NewTask{Agent: "ada", ID: id, Kind: "k", Callback: map[string]string{"2": hook}[id]})
		}
		lent := w.lends(3, 0)
		require.Len(t, lent.Runs, 3)
		_, _, err := w.turns(core.Loan{Most: -1}, lent.Runs[0])
		require.ErrorContains(t, err, "most")
		assert.Equal(t, core.StatusInProgress, w.task("ada", lent.Runs[0].ID).Status)

		as, _, err := w.turns(core.Loan{Agents: []string{}}, lent.Runs[0]) // nothing is claimed
		require.NoError(t, err)
		assert.Equal(t, core.StatusCompleted, as[0].Status)
		as, _, err = w.turns(core.Loan{Agents: []string{"bob"}}, lent.Runs[1]) // its callback is stored before
		require.NoError(t, err)
		assert.Equal(t, core.StatusCompleted, as[0].Status)
		w.store.failing(func(verb string, n int) error {
			if verb == "claim" {
				return errors.New("the store is away")
			}
			return nil
		})
		as, _, err = w.turns(core.Loan{}, lent.Runs[2])
		require.ErrorContains(t, err, "away")
		assert.Equal(t, core.StatusCompleted, as[0].Status)
	})
}

// What the claim of a turn brings, and ends at once, waits for no other claim.
func TestATurnThatBringsWhatIsSkipped(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k"}, core.NewTask{Agent: "ada", ID: "late", Kind: "k", Every: 40 * time.Minute, Misfire: core.MisfireSkip})
		lent, err := core.NewLender(w.s).Lend(w.Context(), core.Loan{Kinds: []string{"k"}, Lease: time.Hour, Worker: "gpu-1"})
		require.NoError(t, err)
		time.Sleep(55 * time.Minute)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			as, next, err := w.turns(core.Loan{Most: 10}, lent.Runs[0])
			assert.NoError(t, err)
			assert.Equal(t, core.StatusCompleted, as[0].Status)
			assert.Empty(t, next.Runs)
		}()
		select {
		case <-answered:
		case <-time.After(time.Hour):
			t.Fatal("the turn has not ended")
		}
		assert.EqualValues(t, 1, w.task("ada", "late").SkipCount)
	})
}

// An end whose answer was lost is answered as it ended when it is sent again, also while the next run of its task is under way; one that came too late
// is lost, though the task has ended since.
func TestAnEndThatIsSentAgain(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
		first := w.lends(1, 0).Runs[0].Ticket
		yields := func(*raw) error { return core.Yield(1, time.Second) }
		as := w.returns(first, yields)
		require.Equal(t, core.StatusWaiting, as.Status)
		assert.Equal(t, as, w.returns(first, yields))
		second := w.lends(1, time.Minute).Runs[0].Ticket
		assert.Equal(t, core.StatusWaiting, w.returns(first, yields).Status)
		third := w.lends(1, time.Minute).Runs[0].Ticket // the second worker has died
		assert.Equal(t, core.StatusCompleted, w.returns(third, func(*raw) error { return nil }).Status)
		assert.True(t, w.returns(second, yields).Lost)
		assert.Equal(t, core.ReturnedAs{Status: core.StatusCompleted}, w.returns(third, yields))
		assert.EqualValues(t, 2, w.task("ada", "1").RunCount-w.task("ada", "1").ErrorCount, "each has counted once")
	})
}

// A worker that has left is no process any more, and is named where a task waits for it.
func TestTheLastWorkerIsNamed(t *testing.T) {
	st := memstore.New(memstore.Config{})
	virtual(t, core.Config{Presence: st, Name: "server"}, func(w *world) {
		first := func() string {
			e, err := w.s.Explain(w.Context(), "ada", "1")
			require.NoError(w, err)
			return e.Reasons[0].Text
		}
		w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k", Delay: 30 * time.Second})
		w.lends(1, 0)
		time.Sleep(40 * time.Second)
		assert.Contains(t, first(), "Its kind is run by gpu-1", "it may be there still")
		there, err := w.s.Processes(w.Context())
		require.NoError(t, err)
		require.Len(t, there, 1)
		assert.Zero(t, there[0].Slots, "what it asked for last is not what it has")
		assert.False(t, there[0].Busy("k", 2))
		time.Sleep(4 * time.Minute)
		processes, err := w.s.Processes(w.Context())
		require.NoError(t, err)
		assert.Empty(t, processes)
		assert.Contains(t, first(), "(the last one, gpu-1, was seen 4m40s ago, at ")
		time.Sleep(24 * time.Hour)
		assert.NotContains(t, first(), "gpu-1")
	})
}

// What a slow store has claimed is not begun behind its lease: a run whose lease is used up by a third is kept first, and left out if another has it.
func TestALoanFromASlowStore(t *testing.T) {
	for name, slow := range map[string]time.Duration{"quick": time.Second, "slow": 5 * time.Second, "behind its lease": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
				claims := 0
				w.store.After = func(_ context.Context, verb string, _ any) error {
					if verb != "Claim" {
						return nil
					}
					if claims++; claims == 1 {
						time.Sleep(slow)
						if slow > 10*time.Second {
							assert.Len(t, w.lends(1, 0).Runs, 1, "by another server")
						}
					}
					return nil
				}
				lent := w.lends(1, 0)
				assert.Len(t, lent.Runs, map[bool]int{true: 1}[slow < 10*time.Second])
				assert.Equal(t, slow >= 5*time.Second, w.store.Calls("Extend") == 1)
				if len(lent.Runs) > 0 {
					time.Sleep(6 * time.Second)
					assert.True(t, w.keeps(core.Keep{Ticket: lent.Runs[0].Ticket}).Held)
				}
			})
		})
	}
}

// A run that could not be kept before its worker hears of it is given back: no worker has begun it, and it has not crashed.
func TestALoanThatCannotBeKept(t *testing.T) {
	for name, fails := range map[string]error{"away": &store.Error{Verb: "extend", Err: errors.New("connection refused")}, "always slow": nil} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
				slow := true
				w.store.Before = func(_ context.Context, verb string) error {
					if slow && verb == "Extend" {
						time.Sleep(5 * time.Second)
						return fails
					}
					return nil
				}
				w.store.After = func(_ context.Context, verb string, _ any) error {
					if slow && verb == "Claim" {
						time.Sleep(4 * time.Second)
					}
					return nil
				}
				assert.Empty(t, w.lends(1, 0).Runs)
				assert.Equal(t, core.StatusWaiting, w.task("ada", "1").Status)
				slow = false
				lent := w.lends(1, 0)
				require.Len(t, lent.Runs, 1)
				assert.Zero(t, lent.Runs[0].Crashes)
			})
		})
	}
}

// A worker that looks for its runs asks the store for nothing that it does not need: one claim.
func TestALoanIsOneClaim(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for range 2 {
			w.submit(core.NewTask{Agent: "ada", Kind: "k"})
		}
		looks := w.store.Calls("Look")
		for range 2 {
			assert.Len(t, w.lends(1, 0).Runs, 1)
		}
		assert.Equal(t, looks+2, w.store.Calls("Look"), "one each, before")
	})
}

// A worker that is busy with long runs asks for no others, and is there all the same, with all its kinds, until it has gone.
func TestABusyWorkerIsThere(t *testing.T) {
	st := memstore.New(memstore.Config{Partitions: 1})
	virtual(t, core.Config{Presence: st}, func(w *world) {
		w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
		l := core.NewLender(w.s)
		lent, err := l.Lend(w.Context(), core.Loan{Kinds: []string{"k", "other"}, Lease: time.Minute, Worker: "gpu-1"})
		require.NoError(t, err)
		there := func() []string {
			all, err := w.s.Processes(w.Context())
			require.NoError(t, err)
			for i := range all {
				if all[i].Name == "gpu-1" {
					return all[i].Kinds
				}
			}
			return nil
		}
		for range 30 {
			time.Sleep(20 * time.Second)
			_, err := l.Keep(w.Context(), core.Keep{Ticket: lent.Runs[0].Ticket})
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"k", "other"}, there())
		w.submit(core.NewTask{Agent: "bob", ID: "2", Kind: "k"})
		core.Handle(w.s, "host", func(context.Context, *raw) error { return nil })
		w.run()
		e, err := w.s.Explain(w.Context(), "bob", "2")
		require.NoError(t, err)
		assert.True(t, e.Task.Parked)
		assert.Contains(t, e.Reasons[0].Text, "waits until a process that runs its kind has room: gpu-1")
		l = core.NewLender(w.s) // of another server
		for range 6 {
			time.Sleep(20 * time.Second)
			_, err := l.Keep(w.Context(), core.Keep{Ticket: lent.Runs[0].Ticket})
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"k"}, there(), "what it is known to run")
		time.Sleep(time.Minute)
		assert.Empty(t, there())
	})
}

// A task that fails as it is claimed, since its runs have crashed too often, is no mistake of the worker that asks: it gets what else is due.
func TestAFailureIsNoMatterOfTheWorker(t *testing.T) {
	virtual(t, core.Config{MaxCrashes: 1}, func(w *world) {
		w.submit(core.NewTask{Agent: "ada", ID: "dies", Kind: "k"})
		for range 2 {
			require.Len(t, w.lends(1, 0).Runs, 1)
			time.Sleep(15 * time.Second)
		}
		assert.Empty(t, w.lends(1, 0).Runs)
		assert.Equal(t, core.StatusFailed, w.task("ada", "dies").Status)
	})
}

// A process that has had an old answer of its store last does not take a run for one that ended before it was claimed.
func TestALateAnswerMovesNoRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var looks, returned atomic.Bool
		returns, over := make(chan struct{}), make(chan struct{})
		st := &spy.Store{Store: memstore.New(memstore.Config{Partitions: 8}), After: func(_ context.Context, verb string, _ any) error {
			switch {
			case verb == "Look" && !looks.Swap(true):
				<-returns
			case verb == "ProfileOf" && !returned.Swap(true):
				close(returns) // the answer to the first look comes now
				<-over
			}
			return nil
		}}
		w := newWorldOn(t, st, core.Config{})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		go func() {
			defer close(over)
			_, _ = w.s.NextDue(w.Context())
		}()
		time.Sleep(time.Second)
		lent := w.lends(1, 0)
		require.Len(w, lent.Runs, 1)
		time.Sleep(time.Second)
		w.returns(lent.Runs[0].Ticket, func(*raw) error { return nil })
		run := w.task("a", "1").Runs[0]
		assert.Equal(w, time.Second, run.Started.Sub(w.begun))
		assert.Zero(w, run.Duration)
	})
}
