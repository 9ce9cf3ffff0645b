package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

func TestMain(m *testing.M) {
	logging.Disable() // as the programs do
	// After Close a pool of go-redis whose server is away still sleeps for up to a second.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// The tests run in synctest bubbles: time passes only when everything waits, so durations are exact.

// fixture is a store in memory, a scheduler and a daemon on it.
type fixture struct {
	store     *faultyStore
	scheduler *core.Scheduler
	daemon    *daemon.Daemon
	logs      *bytes.Buffer
}

func setup(t *testing.T, config daemon.Config, waking bool) *fixture {
	t.Helper()
	f := &fixture{store: faulty(), logs: new(bytes.Buffer)}
	var err error
	var st core.Store = f.store // which is the waker, if nothing else is said
	if !waking {
		st = struct{ core.Store }{f.store}
	}
	f.scheduler, err = core.New(st, core.Config{})
	require.NoError(t, err)
	config.Logger = slog.New(slog.NewTextHandler(f.logs, nil))
	f.daemon, err = daemon.New(f.scheduler, config)
	require.NoError(t, err)
	return f
}

// start runs the daemon until the test ends.
func (f *fixture) start(t *testing.T) {
	t.Helper()
	require.NoError(t, f.daemon.Start())
	t.Cleanup(func() {
		if f.daemon.Ready() != daemon.ErrNotRunning { //nolint:errorlint // it is returned as it is
			assert.NoError(t, f.daemon.Stop(context.Background()))
		}
	})
	synctest.Wait()
}

func (f *fixture) submit(t *testing.T, tasks ...core.NewTask) {
	t.Helper()
	_, err := f.scheduler.Submit(t.Context(), tasks...)
	require.NoError(t, err)
}

// stamps registers a handler for the kind note that tells when its tasks started.
func (f *fixture) stamps() chan time.Time {
	started := make(chan time.Time, 1000)
	core.Handle(f.scheduler, "note", func(context.Context, *core.Task[any]) error {
		started <- time.Now()
		return nil
	})
	return started
}

// faultyStore is a store whose claims and wake-ups can be made to fail, and are counted; stuck makes it say that something is
// due and never give it.
type faultyStore struct {
	storetest.Spy

	memory     *memstore.Store
	down       atomic.Bool
	stuck      bool
	subscribed atomic.Int64
	mu         sync.Mutex
	cut        context.CancelFunc
}

func faulty() *faultyStore {
	memory := memstore.New(memstore.Config{Partitions: 8})
	s := &faultyStore{Spy: storetest.Spy{Store: memory}, memory: memory}
	s.Before = func(_ context.Context, verb string) error {
		if s.down.Load() && (verb == "Claim" || verb == "Look") {
			return errDown
		}
		return nil
	}
	s.After = func(_ context.Context, _ string, answer any) error {
		if !s.stuck {
			return nil
		}
		switch answer := answer.(type) {
		case []store.Claim:
			for i := range answer {
				answer[i].NextDue = answer[i].Now
			}
		case []store.Look:
			for i := range answer {
				answer[i].NextDue = answer[i].Now
			}
		}
		return nil
	}
	return s
}

// claims is how often the store was asked for work.
func (s *faultyStore) claims() int { return s.Calls("Claim", "Look") }

var errDown = &store.Error{Verb: "claim", Err: errors.New("connection refused")}

func (s *faultyStore) Wakeups(ctx context.Context) (<-chan store.Wakeup, error) {
	s.subscribed.Add(1)
	if s.down.Load() {
		return nil, errDown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, s.cut = context.WithCancel(ctx)
	return s.memory.Wakeups(ctx)
}

// cutOff ends the subscription, as a store does that loses its connection for good.
func (s *faultyStore) cutOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut()
}

func TestRunsTasksWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		started := f.stamps()
		begun := time.Now()
		f.submit(t,
			core.NewTask{Agent: "a", Kind: "note"},
			core.NewTask{Agent: "b", Kind: "note", Delay: 1234 * time.Millisecond},
			core.NewTask{Agent: "c", Kind: "note", Delay: 90 * time.Minute})
		f.start(t)
		assert.Equal(t, time.Duration(0), (<-started).Sub(begun))
		assert.Equal(t, 1234*time.Millisecond, (<-started).Sub(begun))
		assert.Equal(t, 90*time.Minute, (<-started).Sub(begun))
	})
}

// A task that is submitted while the daemon sleeps starts at once.
func TestAWakeUpEndsTheSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		started := f.stamps()
		f.start(t)
		time.Sleep(time.Hour + 1700*time.Millisecond)
		for range 100 {
			submitted := time.Now()
			f.submit(t, core.NewTask{Agent: "a", Kind: "note"}, core.NewTask{Agent: "a", Kind: "note", Delay: 20 * time.Millisecond})
			assert.Equal(t, time.Duration(0), (<-started).Sub(submitted))
			assert.InDelta(t, 20*time.Millisecond, (<-started).Sub(submitted), float64(10*time.Microsecond), "at its time by the clock of the store")
			time.Sleep(333 * time.Millisecond)
		}
	})
}

func TestRecurringTasksAndRetriesKeepTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		started := f.stamps()
		f.submit(t, core.NewTask{Agent: "a", Kind: "note", Every: 2 * time.Second})
		f.start(t)
		last := <-started
		for range 50 {
			next := <-started
			assert.Equal(t, 2*time.Second, next.Sub(last))
			last = next
		}
	})
}

// A handler that takes an hour delays nobody else.
func TestASlowHandlerKeepsNothingElseWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		started := f.stamps()
		core.Handle(f.scheduler, "slow", func(context.Context, *core.Task[any]) error {
			time.Sleep(time.Hour)
			return nil
		})
		f.submit(t, core.NewTask{Agent: "a", ID: "slow", Kind: "slow"})
		f.start(t)
		for range 10 {
			submitted := time.Now()
			f.submit(t, core.NewTask{Agent: "b", Kind: "note"}, core.NewTask{Agent: "b", Kind: "note", Delay: 7 * time.Second})
			assert.Equal(t, time.Duration(0), (<-started).Sub(submitted))
			assert.Equal(t, 7*time.Second, (<-started).Sub(submitted))
		}
		task, err := f.scheduler.Task(t.Context(), "a", "slow")
		require.NoError(t, err)
		assert.Equal(t, core.StatusInProgress, task.Status)
		time.Sleep(time.Hour)
	})
}

// A daemon without a Waker of its own is woken by the store: what is due starts at once.
func TestTheStoreWakesADaemon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		started := f.stamps()
		f.start(t)
		time.Sleep(time.Minute + 100*time.Millisecond)
		submitted := time.Now()
		f.submit(t, core.NewTask{Agent: "a", Kind: "note"})
		assert.Less(t, (<-started).Sub(submitted), 10*time.Millisecond)
	})
}

// Without wake-ups the daemon looks every Tick; with wake-ups that are lost, every Safety.
func TestWorkIsFoundWithoutAWakeUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		waker store.Waker
		most  time.Duration
	}{
		"no waker":   {nil, daemon.DefaultTick},
		"deaf waker": {deafWaker{}, daemon.DefaultSafety},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := setup(t, daemon.Config{Waker: c.waker}, false)
				started := f.stamps()
				f.start(t)
				time.Sleep(time.Minute + 100*time.Millisecond)
				submitted := time.Now()
				f.submit(t, core.NewTask{Agent: "a", Kind: "note"})
				late := (<-started).Sub(submitted)
				assert.Positive(t, late)
				assert.LessOrEqual(t, late, c.most)
			})
		})
	}
}

type deafWaker struct{}

func (deafWaker) Wakeups(ctx context.Context) (<-chan store.Wakeup, error) {
	never := make(chan store.Wakeup)
	context.AfterFunc(ctx, func() { close(never) })
	return never, nil
}

// Work of a process that died starts again when its lease has ended, however idle the daemon is.
func TestTakesOverTheWorkOfTheDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		started := f.stamps()
		f.submit(t, core.NewTask{Agent: "a", Kind: "note"})
		const lease, notice = 21500 * time.Millisecond, 5 * time.Second // a store holds a lease without its notice
		claims, err := f.store.memory.Claim(t.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf("a", f.store.Partitions()), Nonce: strings.Repeat("n", store.NonceLen),
			Kinds: []string{"note"}, Limit: 1, Lease: lease - notice,
		}})
		require.NoError(t, err)
		require.Len(t, claims[0].Tasks, 1)
		claimed := time.Now()
		f.start(t)
		assert.Equal(t, lease, (<-started).Sub(claimed))
	})
}

func TestAnIdleDaemonSleeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		f.stamps()
		for range 100 {
			f.submit(t, core.NewTask{Agent: "a", Kind: "note", Delay: 24 * time.Hour}, core.NewTask{Agent: "b", Kind: "nobodys"})
		}
		f.start(t)
		time.Sleep(time.Minute)
		before := f.store.claims()
		time.Sleep(time.Hour)
		assert.InDelta(t, time.Hour/daemon.DefaultSafety, f.store.claims()-before, 1)
		assert.Empty(t, f.logs.String())
	})
}

func TestSurvivesAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		f := setup(t, daemon.Config{OnError: func(err error) { failures = append(failures, err) }}, true)
		started := f.stamps()
		core.Handle(f.scheduler, "slow", func(context.Context, *core.Task[any]) error {
			time.Sleep(30 * time.Minute)
			return nil
		})
		f.submit(t, core.NewTask{Agent: "s", Kind: "slow"})
		f.start(t)
		require.NoError(t, f.daemon.Ready())

		f.store.down.Store(true)
		before := f.store.claims()
		f.submit(t, core.NewTask{Agent: "a", Kind: "note", Delay: 10 * time.Minute})
		time.Sleep(10*time.Minute + time.Second)
		assert.ErrorIs(t, f.daemon.Ready(), errDown)
		tries := f.store.claims() - before
		assert.Greater(t, tries, int(10*time.Minute/(5*time.Second)), "it goes on trying")
		assert.Less(t, tries, int(10*time.Minute/(2*time.Second)), "but not often")
		assert.Equal(t, 1, strings.Count(f.logs.String(), "\n"), f.logs.String())
		assert.Contains(t, f.logs.String(), "connection refused")

		f.store.down.Store(false)
		back := time.Now()
		assert.LessOrEqual(t, (<-started).Sub(back), 5*time.Second)
		synctest.Wait()
		require.NoError(t, f.daemon.Ready())
		assert.Equal(t, 2, strings.Count(f.logs.String(), "\n"), f.logs.String())
		assert.Contains(t, f.logs.String(), "the store is available again")
		assert.Len(t, failures, tries)
		time.Sleep(30 * time.Minute)
	})
}

// A claim that fails while an earlier task of the same pull runs on does not stop the daemon from looking.
func TestAFailedClaimDoesNotWaitForSlowHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		started := f.stamps()
		core.Handle(f.scheduler, "slow", func(context.Context, *core.Task[any]) error {
			f.store.down.Store(true)
			time.AfterFunc(3*time.Second, func() { f.store.down.Store(false) })
			time.Sleep(time.Hour)
			return nil
		})
		f.submit(t, core.NewTask{Agent: "s", Kind: "slow", Level: core.LevelHigh})
		for range 20 { // more than one claim takes
			f.submit(t, core.NewTask{Agent: "s", Kind: "note"})
		}
		begun := time.Now()
		f.start(t)
		for range 20 {
			<-started
		}
		assert.Less(t, time.Since(begun), 10*time.Second)
		time.Sleep(time.Hour)
	})
}

func TestSubscribesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		started := f.stamps()
		f.start(t)
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, f.store.subscribed.Load())
		f.store.cutOff()
		time.Sleep(time.Second)
		require.EqualValues(t, 2, f.store.subscribed.Load())
		submitted := time.Now()
		f.submit(t, core.NewTask{Agent: "a", Kind: "note"})
		assert.Equal(t, time.Duration(0), (<-started).Sub(submitted))
	})
}

func TestSubscribingAgainIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &brokenWaker{}
		f := setup(t, daemon.Config{Waker: w}, false)
		f.start(t)
		time.Sleep(10 * time.Minute)
		assert.Less(t, w.tried.Load(), int64(10*time.Minute/(2*time.Second)))
		assert.Equal(t, 1, strings.Count(f.logs.String(), "cannot listen for wake-ups"))
	})
}

// brokenWaker fails at every second subscription and closes the others at once.
type brokenWaker struct{ tried atomic.Int64 }

func (w *brokenWaker) Wakeups(context.Context) (<-chan store.Wakeup, error) {
	if w.tried.Add(1)%2 == 1 {
		return nil, errors.New("no permission")
	}
	closed := make(chan store.Wakeup)
	close(closed)
	return closed, nil
}

// What stays due although it cannot be taken must not turn the daemon into a busy loop.
func TestAnOverdueTaskThatNobodyTakesCostsLittle(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]bool{"alone": false, "beside another daemon": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := setup(t, daemon.Config{}, false)
				f.store.stuck = true
				if others {
					_, err := f.store.memory.Announce(t.Context(), "another", []byte("{}"), time.Hour)
					require.NoError(t, err)
				}
				s, err := core.New(f.store, core.Config{Presence: f.store.memory})
				require.NoError(t, err)
				d, err := daemon.New(s, daemon.Config{Waker: f.store})
				require.NoError(t, err)
				require.NoError(t, d.Start())
				time.Sleep(time.Minute)
				require.NoError(t, d.Stop(t.Context()))
				assert.Less(t, f.store.claims(), 300)
			})
		})
	}
}

func TestStopsGracefully(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Grace: 10 * time.Second}, true)
		ended := make(chan error, 2)
		core.Handle(f.scheduler, "work", func(ctx context.Context, task *core.Task[time.Duration]) error {
			select {
			case <-time.After(task.Payload):
				ended <- nil
				return nil
			case <-ctx.Done():
				ended <- context.Cause(ctx)
				return ctx.Err()
			}
		})
		f.submit(t, core.NewTask{Agent: "a", ID: "short", Kind: "work", Payload: 9 * time.Second},
			core.NewTask{Agent: "a", ID: "long", Kind: "work", Payload: 11 * time.Second})
		f.start(t)
		f.submit(t, core.NewTask{Agent: "a", ID: "late", Kind: "work", Delay: time.Second})
		stopped := time.Now()
		require.NoError(t, f.daemon.Stop(t.Context()))
		assert.Equal(t, 10*time.Second, time.Since(stopped))
		assert.NoError(t, <-ended)
		assert.Equal(t, core.ErrStopping, <-ended)
		for id, want := range map[string]core.Status{
			"short": core.StatusCompleted, "long": core.StatusWaiting, "late": core.StatusWaiting,
		} {
			task, err := f.scheduler.Task(t.Context(), "a", id)
			require.NoError(t, err)
			assert.Equal(t, want, task.Status, id)
			assert.Equal(t, 1, task.Attempt, "nothing is charged")
		}
	})
}

func TestStartAndStopAtTheWrongTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		core.Handle(f.scheduler, "slow", func(context.Context, *core.Task[any]) error {
			time.Sleep(20 * time.Second)
			return nil
		})
		f.submit(t, core.NewTask{Agent: "a", Kind: "slow"})
		require.ErrorIs(t, f.daemon.Stop(t.Context()), daemon.ErrNotRunning)
		require.ErrorIs(t, f.daemon.Ready(), daemon.ErrNotRunning)
		f.start(t)
		require.ErrorIs(t, f.daemon.Start(), daemon.ErrRunning)
		require.ErrorIs(t, f.daemon.Run(t.Context()), daemon.ErrRunning)

		hurry, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, f.daemon.Stop(hurry), context.DeadlineExceeded)
		require.ErrorIs(t, f.daemon.Stop(t.Context()), daemon.ErrNotRunning)
		require.ErrorIs(t, f.daemon.Start(), daemon.ErrRunning, "it has not ended yet")
		time.Sleep(20 * time.Second)
		f.start(t)
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		require.NoError(t, f.daemon.Run(ctx))
		assert.Equal(t, time.Minute, time.Since(begun))
	})
}

func TestRunEndsWhenItCanNeverWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Partitions: []int{8}}, true)
		assert.EqualError(t, f.daemon.Run(t.Context()), "partitions must be between 0 and 7, not 8")
		assert.ErrorIs(t, f.daemon.Ready(), daemon.ErrNotRunning)
	})
}

// Daemons can share the work by partitions.
func TestRunsOnlyItsPartitions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Partitions: []int{store.PartitionOf("mine", 8)}}, true)
		started := f.stamps()
		other := "other"
		for store.PartitionOf(other, 8) == store.PartitionOf("mine", 8) {
			other += "'"
		}
		f.start(t)
		f.submit(t, core.NewTask{Agent: "mine", Kind: "note"}, core.NewTask{Agent: other, ID: "o", Kind: "note"})
		<-started
		time.Sleep(time.Minute)
		task, err := f.scheduler.Task(t.Context(), other, "o")
		require.NoError(t, err)
		assert.Equal(t, core.StatusWaiting, task.Status)
	})
}

func TestFailuresOfHandlersAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := make(chan error, 1)
		f := setup(t, daemon.Config{OnError: func(err error) { told <- err }}, true)
		core.Handle(f.scheduler, "bad", func(context.Context, *core.Task[any]) error { return errors.New("boom") })
		f.submit(t, core.NewTask{Agent: "a", Kind: "bad", MaxAttempts: 1})
		f.start(t)
		assert.ErrorAs(t, <-told, new(*core.RunsError))
		require.NoError(t, f.daemon.Ready())
		assert.Empty(t, f.logs.String())
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	for want, c := range map[string]daemon.Config{
		"daemon: Tick must not be negative, got -1s":         {Tick: -time.Second},
		"daemon: Safety must be at least Tick (10s), got 5s": {Tick: 10 * time.Second},
		"daemon: Grace must not be negative, got -1s":        {Grace: -time.Second},
	} {
		_, err := daemon.New(s, c)
		assert.EqualError(t, err, want)
	}
	_, err = daemon.New(nil, daemon.Config{})
	assert.Error(t, err)
}
