package core_test

// The alarm: a host that is called for what falls due, and for nothing else.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// cloud is where processes live only while they are called: by a clock outside, which is an alarm of all of them, and rarely by a
// watchdog.
type cloud struct {
	*testing.T

	store store.Store
	begun time.Time

	mu     sync.Mutex
	rings  []time.Time // that are to come, in order; a time that was set twice rings twice
	calls  []time.Time // when the clock outside has called
	starts map[string]time.Time
	fails  error
}

// newCloud has a store, and no process.
func newCloud(t *testing.T) *cloud {
	t.Helper()
	return &cloud{T: t, store: memstore.New(memstore.Config{}), begun: time.Now(), starts: map[string]time.Time{}}
}

// Set is the clock outside.
func (c *cloud) Set(ctx context.Context, at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails != nil {
		return c.fails
	}
	assert.Equal(c, at.Truncate(time.Second), at, "a whole second")
	assert.True(c, at.After(time.Now()), "a time to come")
	assert.NoError(c, ctx.Err())
	c.rings = append(c.rings, at)
	slices.SortFunc(c.rings, time.Time.Compare)
	return nil
}

// process is a new one, whose handler of kind k notes when its tasks start.
func (c *cloud) process(st store.Store, clock core.Alarm) *core.Scheduler {
	s, err := core.New(st, core.Config{Alarm: clock, MaxCrashes: 1000, Default: core.KindConfig{Lease: time.Minute, Spread: -1}})
	require.NoError(c, err)
	core.Handle(s, "k", func(_ context.Context, t *core.Task[note]) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.starts[t.ID+t.Occurrence.String()] = time.Now()
		return nil
	})
	return s
}

// at are the times of some rings since the begin.
func (c *cloud) at(times []time.Time) []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []time.Duration
	for _, t := range times {
		out = append(out, t.Sub(c.begun))
	}
	return out
}

// next takes the next ring until a time; the time itself if there is none.
func (c *cloud) next(until time.Time) (at time.Time, rings bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.rings) == 0 || c.rings[0].After(until) {
		return until, false
	}
	at = c.rings[0]
	c.rings = c.rings[1:]
	c.calls = append(c.calls, at)
	return at, true
}

// guarded are calls that had work, each with its guard.
func guarded(calls ...time.Duration) (out []time.Duration) {
	for _, at := range calls {
		out = append(out, at, at+time.Second)
	}
	return out
}

// live has a process answer each ring until a time.
func (c *cloud) live(until time.Duration, answer func()) {
	for end := c.begun.Add(until); ; {
		next := time.Now().Add(time.Second) // others may set one meanwhile
		if next.After(end) {
			next = end
		}
		at, rings := c.next(next)
		time.Sleep(time.Until(at))
		switch {
		case rings:
			answer()
		case next.Equal(end):
			return
		}
	}
}

// inCloud runs a test in a bubble.
func inCloud(t *testing.T, test func(c *cloud)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(newCloud(t)) })
}

// One alarm is booked for what is due next, by whoever makes it due.
func TestOneAlarmIsBooked(t *testing.T) {
	inCloud(t, func(c *cloud) {
		s, other := c.process(c.store, c), c.process(c.store, c)
		submit := func(s *core.Scheduler, id string, after time.Duration) {
			_, err := s.Submit(c.Context(), core.NewTask{Agent: "a", ID: id, Kind: "k", Delay: after})
			require.NoError(c, err)
		}
		submit(s, "hour", time.Hour+time.Millisecond)
		assert.Equal(c, []time.Duration{time.Hour + time.Second}, c.at(c.rings), "the next whole second")
		submit(s, "later", 2*time.Hour)
		submit(other, "later still", 3*time.Hour)
		assert.Len(c, c.rings, 1, "the first pull books the next")
		time.Sleep(alarm.GatherFor)
		submit(other, "minute", time.Minute)
		assert.Equal(c, []time.Duration{65 * time.Second, time.Hour + time.Second}, c.at(c.rings), "what comes earlier needs one of its own")

		var reports []core.Report
		c.live(24*time.Hour, func() {
			r, err := s.RunDue(c.Context(), core.Scope{})
			require.NoError(c, err)
			reports = append(reports, r)
		})
		require.Len(c, reports, 8)
		for i, next := range []time.Duration{time.Hour + time.Second, 2 * time.Hour, 3 * time.Hour} {
			assert.Equal(c, 1, reports[2*i].Ran)
			assert.Equal(c, next, reports[2*i].AlarmAt.Sub(c.begun), "the report says when somebody comes")
			assert.Zero(c, reports[2*i+1].Ran, "the guard finds nothing to do")
		}
		assert.Zero(c, reports[6].AlarmAt, "nothing is scheduled")
		assert.Equal(c, guarded(65*time.Second, time.Hour+time.Second, 2*time.Hour, 3*time.Hour), c.at(c.calls),
			"what was booked for later is not booked again")
	})
}

// Each command that makes something due earlier books for it, without a pull.
func TestCommandsBookAlarms(t *testing.T) {
	agent := core.Target{Agent: "a"}
	for name, command := range map[string]func(ctx context.Context, s *core.Scheduler) error{
		"run now": func(ctx context.Context, s *core.Scheduler) error { _, err := s.RunNow(ctx, "a", "later"); return err },
		"replay":  func(ctx context.Context, s *core.Scheduler) error { _, err := s.Replay(ctx, "a", "dead"); return err },
		"resume":  func(ctx context.Context, s *core.Scheduler) error { return s.Resume(ctx, agent) },
		"lift": func(ctx context.Context, s *core.Scheduler) error {
			return s.LiftLimit(ctx, core.LimitTarget{Kind: "k"})
		},
		"lift spent": func(ctx context.Context, s *core.Scheduler) error { return s.LiftBudget(ctx, aBudget.About) },
		"activity": func(ctx context.Context, s *core.Scheduler) error {
			_, err := s.Notice(ctx, "act", core.Subject{User: "u"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCloud(t, func(c *cloud) {
				ctx := c.Context()
				plain, err := core.New(c.store, core.Config{}) // what it does books nothing
				require.NoError(c, err)
				core.Handle(plain, "bad", func(context.Context, *core.Task[note]) error { return core.SkipRetry(errors.New("bad")) })
				_, err = plain.Submit(ctx, core.NewTask{Agent: "b", ID: "dead", Kind: "bad"})
				require.NoError(c, err)
				_, err = plain.Submit(ctx, core.NewTask{Agent: "a", ID: "dead", Kind: "bad"}, core.NewTask{Agent: "a", ID: "later", Kind: "k", Delay: time.Hour})
				require.NoError(c, err)
				_, err = plain.RunDue(ctx, core.Scope{})
				require.Error(c, err)
				require.NoError(c, plain.SetLimits(ctx, core.Limit{About: core.LimitTarget{Kind: "k"}, Concurrency: 1}))
				require.NoError(c, plain.SetBudgets(ctx, aBudget))
				require.NoError(c, plain.Pause(ctx, agent, core.Pause{}))
				s, err := core.New(c.store, core.Config{Alarm: c, Kinds: map[string]core.KindConfig{"act": {Activity: &core.Activity{Delay: time.Second}}}})
				require.NoError(c, err)
				require.NoError(c, command(ctx, s))
				assert.Equal(c, []time.Duration{time.Second}, c.at(c.rings))
			})
		})
	}
}

var aBudget = core.Budget{About: core.BudgetTarget{LimitTarget: core.LimitTarget{Kind: "k"}, Unit: bound.UnitRuns, Per: core.PerDay}, Amount: 10 * bound.AmountOne, Then: core.ThenHold}

// A pause that ends by itself has somebody come then.
func TestTheEndOfAPauseIsBooked(t *testing.T) {
	inCloud(t, func(c *cloud) {
		s := c.process(c.store, c)
		_, err := s.Submit(c.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Minute})
		require.NoError(c, err)
		require.NoError(c, s.Pause(c.Context(), core.Target{Agent: "a"}, core.Pause{Until: c.begun.Add(time.Hour)}))
		c.live(2*time.Hour, func() {
			_, err := s.RunDue(c.Context(), core.Scope{})
			require.NoError(c, err)
		})
		assert.Equal(c, guarded(time.Minute, time.Hour), c.at(c.calls))
		assert.Len(c, c.starts, 1)
	})
}

// turned is the clock of a store that is wrong by a fixed time.
func (c *cloud) turned(skew time.Duration) {
	c.store = memstore.New(memstore.Config{Clock: skewed(skew)})
}

// Alarms are set in the time of the clock outside, however far the store's is from it.
func TestTheEndOfAPauseGivenAsADurationIsBooked(t *testing.T) {
	for _, skew := range []time.Duration{0, -time.Hour, time.Hour, -3 * time.Second, 2 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			inCloud(t, func(c *cloud) {
				c.turned(skew)
				_, err := c.process(c.store, nil).Submit(c.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k"})
				require.NoError(c, err)
				s := c.process(c.store, c)
				require.NoError(c, s.Pause(c.Context(), core.Target{Agent: "a"}, core.Pause{For: 10 * time.Minute}))
				assert.Equal(c, []time.Duration{10 * time.Minute}, c.at(c.rings))
				c.live(time.Hour, func() {
					_, err := c.process(c.store, c).RunDue(c.Context(), core.Scope{})
					require.NoError(c, err)
				})
				require.Len(c, c.starts, 1)
				for _, at := range c.starts {
					assert.WithinDuration(c, c.begun.Add(10*time.Minute), at, time.Second)
				}
				assert.Equal(c, guarded(10*time.Minute), c.at(c.calls))
			})
		})
	}
}

// An alarm that has called long before its time is set again: the store takes it for one that is to come.
func TestAnAlarmThatCalledTooEarlyIsSetAgain(t *testing.T) {
	inCloud(t, func(c *cloud) {
		s := c.process(c.store, c)
		later(c, s, "1", 10*time.Minute)
		at, _ := c.next(c.begun.Add(time.Hour))
		time.Sleep(8 * time.Minute) // it is two minutes ahead
		r, err := s.RunDue(c.Context(), core.Scope{AlarmAt: at})
		require.NoError(c, err)
		assert.Zero(c, r.Ran)
		assert.Equal(c, []time.Duration{12 * time.Minute}, c.at(c.rings), "which comes in time")
		_, err = s.RunDue(c.Context(), core.Scope{})
		require.NoError(c, err)
		assert.Len(c, c.rings, 1, "by another call nothing was wrong")
	})
}

// A pull that has settled something without a run has not come for nothing: what it left is called for at once, and what it made due in time.
func TestAnAlarmFollowsAPullWithoutRuns(t *testing.T) {
	inCloud(t, func(c *cloud) {
		_, err := c.process(c.store, nil).Submit(c.Context(),
			core.NewTask{Agent: "a", ID: "missed", Kind: "k", Every: 10 * time.Minute, From: core.FromStart, Misfire: core.MisfireSkip},
			core.NewTask{Agent: "b", ID: "1", Kind: "k", Delay: time.Second})
		require.NoError(c, err)
		time.Sleep(5 * time.Minute)
		r, err := c.process(c.store, c).RunDue(c.Context(), core.Scope{MaxTasks: 1})
		require.NoError(c, err)
		require.Zero(c, r.Ran)
		require.Equal(c, 1, r.Skipped)
		assert.Equal(c, []time.Duration{5*time.Minute + time.Second}, c.at(c.rings))
	})
}

// What is due in a month has somebody come each six days: no clock outside takes a month.
func TestAnAlarmIsNoMonthAhead(t *testing.T) {
	inCloud(t, func(c *cloud) {
		s := c.process(c.store, c)
		_, err := s.Submit(c.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: 15 * 24 * time.Hour})
		require.NoError(c, err)
		c.live(16*24*time.Hour, func() {
			_, err := s.RunDue(c.Context(), core.Scope{})
			require.NoError(c, err)
		})
		day := 24 * time.Hour
		assert.Equal(c, []time.Duration{6 * day, 12 * day, 15 * day, 15*day + time.Second}, c.at(c.calls), "with a guard of the one that had work")
		assert.Len(c, c.starts, 1)
	})
}

// An alarm that rings a moment early waits for what it was booked for.
func TestAnAlarmThatRingsEarly(t *testing.T) {
	inCloud(t, func(c *cloud) {
		s := c.process(c.store, c)
		_, err := s.Submit(c.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour})
		require.NoError(c, err)
		time.Sleep(time.Hour - 3400*time.Millisecond)
		r, err := s.RunDue(c.Context(), core.Scope{})
		require.NoError(c, err)
		assert.Equal(c, 1, r.Ran)
		assert.Equal(c, 3400*time.Millisecond, r.Duration)
	})
}

// While a run takes long, others are called for what falls due meanwhile, and for the end of its lease.
func TestAlarmsWhileARunTakesLong(t *testing.T) {
	inCloud(t, func(c *cloud) {
		s := c.process(c.store, c)
		c.fails = errors.New("the clock is away as the pull begins: nothing guards it")
		core.Handle(s, "long", func(context.Context, *core.Task[note]) error {
			c.fails = nil
			_, err := s.Submit(c.Context(), core.NewTask{Agent: "b", ID: "before", Kind: "k", Delay: 25 * time.Second})
			time.Sleep(50 * time.Second)
			return err
		})
		_, err := c.process(c.store, nil).Submit(c.Context(), // without an alarm: there is no other that rings
			core.NewTask{Agent: "a", ID: "long", Kind: "long"}, core.NewTask{Agent: "c", ID: "during", Kind: "k", Delay: 15 * time.Second})
		require.NoError(c, err)
		ended := make(chan core.Report)
		go func() {
			r, err := s.RunDue(c.Context(), core.Scope{})
			assert.NoError(c, err)
			ended <- r
		}()
		other := c.process(c.store, c)
		c.live(49*time.Second, func() {
			_, err := other.RunDue(c.Context(), core.Scope{})
			assert.NoError(c, err)
		})
		r := <-ended
		assert.Equal(c, 50*time.Second, r.Duration.Truncate(time.Second))
		assert.Equal(c, guarded(15*time.Second, 25*time.Second), c.at(c.calls))
		assert.Len(c, c.starts, 2)
	})
}

// A pull that waits for what falls due within a moment claims what a run has made room for, at once.
func TestRoomIsUsedWhileAPullWaits(t *testing.T) {
	inCloud(t, func(c *cloud) {
		s, err := core.New(c.store, core.Config{Alarm: c, Default: core.KindConfig{Spread: -1}, Limits: []core.Limit{{Concurrency: 1}}})
		require.NoError(t, err)
		starts := map[string]time.Duration{}
		core.Handle(s, "k", func(_ context.Context, task *core.Task[note]) error {
			starts[task.ID] = time.Since(c.begun)
			time.Sleep(10 * time.Millisecond)
			return nil
		})
		_, err = s.Submit(c.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k"}, core.NewTask{Agent: "a", ID: "2", Kind: "k"},
			core.NewTask{Agent: "a", ID: "3", Kind: "k"}, core.NewTask{Agent: "a", ID: "soon", Kind: "k", Delay: time.Second})
		require.NoError(t, err)
		r, err := s.RunDue(c.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, 4, r.Completed)
		assert.Equal(t, map[string]time.Duration{"1": 0, "2": 10 * time.Millisecond, "3": 20 * time.Millisecond, "soon": time.Second}, starts)
	})
}

// A pull says that nobody is going to come; a submit does not, as it was carried out: it is on record in the log, and the next call tries
// again.
func TestAnAlarmThatCannotBeSet(t *testing.T) {
	inCloud(t, func(c *cloud) {
		c.fails = errors.New("no")
		s := c.process(c.store, c)
		_, err := s.Submit(c.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour})
		require.NoError(c, err)
		r, err := s.RunDue(c.Context(), core.Scope{})
		var failed *core.AlarmError
		require.ErrorAs(c, err, &failed)
		assert.Equal(c, time.Hour, failed.At.Sub(c.begun))
		require.ErrorIs(c, err, c.fails)
		assert.Equal(c, core.CodeUnavailable, core.CodeOf(err))
		assert.Equal(c, core.CodeUnavailable, core.CodeOf(errors.Join(&core.RunsError{}, err)), "whatever else has failed")
		assert.Equal(c, time.Hour, r.NextDueAt.Sub(c.begun))
		assert.Zero(c, r.AlarmAt)
		c.fails = nil
		_, err = s.RunDue(c.Context(), core.Scope{})
		require.NoError(c, err)
		assert.Equal(c, []time.Duration{time.Hour}, c.at(c.rings))
	})
}

// A fleet on which somebody only calls for what is due: no call is late, none is for nothing.
func TestAFleetThatIsOnlyCalledForWhatIsDue(t *testing.T) {
	agents, days := 200, 1
	if n, err := strconv.Atoi(os.Getenv("DULY_ALARM_AGENTS")); err == nil {
		agents, days = n, 7
	}
	inCloud(t, func(c *cloud) {
		random := rand.New(rand.NewPCG(1, 2))
		s := c.process(c.store, c)
		for i := range agents {
			agent := fmt.Sprint("agent", i)
			// Most agents have one thing a day, in the morning; some poll by the hour, a few by the minute.
			task := core.NewTask{Agent: agent, ID: "digest" + agent, Kind: "k", Cron: fmt.Sprintf("%d %d * * *", random.IntN(12)*5, 6+random.IntN(4))}
			switch {
			case i%20 == 0:
				task.Cron = fmt.Sprintf("%d 8-18 * * *", random.IntN(60))
			case i%97 == 0:
				task.Cron = "*/5 9-11 * * *"
			}
			_, err := s.Submit(c.Context(), task)
			require.NoError(c, err)
		}
		end := time.Duration(days) * 24 * time.Hour
		c.live(end, func() {
			_, err := s.RunDue(c.Context(), core.Scope{})
			require.NoError(c, err)
		})
		seconds, night := map[int64]bool{}, 0
		var late []time.Duration
		for key, at := range c.starts {
			due, err := time.Parse("2006-01-02 15:04:05 -0700 MST", key[len(key)-len("2006-01-02 15:04:05 +0000 UTC"):])
			require.NoError(c, err)
			seconds[due.Unix()] = true
			late = append(late, at.Sub(due))
		}
		for _, at := range c.calls {
			if h := at.UTC().Hour(); h < 6 || h > 18 {
				night++
			}
		}
		slices.Sort(late)
		c.Logf("figure: %d agents, %d days, %d runs at %d distinct seconds: %d calls, %d of them at night; late at most %s",
			agents, days, len(late), len(seconds), len(c.calls), night, late[len(late)-1])
		assert.GreaterOrEqual(c, len(late), agents*days)
		assert.LessOrEqual(c, len(c.calls), 2*len(seconds)+1, "with guards, and one that gathers the submits")
		assert.LessOrEqual(c, night, 1)
		assert.LessOrEqual(c, late[len(late)-1], 2*time.Second)
		assert.GreaterOrEqual(c, late[0], time.Duration(0))
	})
}
