package core_test

import (
	"context"
	"fmt"
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

func activity(a core.Activity) core.Config {
	return core.Config{Kinds: map[string]core.KindConfig{"digest": {Activity: &a, MaxAttempts: 1}}}
}

var ann = core.Subject{User: "ann", Device: "phone", Agent: "helper"}

func (w *world) notice(s core.Subject) model.Noticed {
	w.Helper()
	n, err := w.s.Notice(w.Context(), "digest", s)
	require.NoError(w, err)
	return n
}

// digests runs what is due and collects when, for a while.
func (w *world) digests(fail func(n int) error) *[]time.Duration {
	begun := time.Now()
	out := &[]time.Duration{}
	core.Handle(w.s, "digest", func(context.Context, *core.Task[map[string]string]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		*out = append(*out, time.Since(begun))
		return fail(len(*out))
	})
	return out
}

func TestThrottle(t *testing.T) {
	virtual(t, activity(core.Activity{Delay: 30 * time.Minute}), func(w *world) {
		got := w.digests(fine)
		n := w.notice(ann)
		assert.True(t, n.Scheduled)
		assert.Equal(t, store.ReasonActivity, n.Reason)
		assert.Equal(t, time.Now().Add(30*time.Minute).UnixMilli(), n.Due.UnixMilli())
		assert.Equal(t, "helper", n.Agent)
		for range 29 {
			w.runUntil(time.Minute)
			again := w.notice(ann)
			assert.False(t, again.Scheduled)
			assert.Equal(t, store.ReasonWaiting, again.Reason)
			assert.Equal(t, n.Due, again.Due)
		}
		w.runUntil(time.Hour)
		assert.Equal(t, []time.Duration{30 * time.Minute}, *got, "once, after the first activity")
		info := w.task(n.Agent, n.ID)
		assert.True(t, info.Resting)
		assert.Zero(t, info.NextRun)
		assert.Equal(t, store.ScheduleActivity, info.Schedule)
		assert.True(t, w.notice(ann).Scheduled)
		w.runUntil(time.Hour)
		assert.Len(t, *got, 2)
	})
}

func TestDebounceUnderSteadyActivity(t *testing.T) {
	virtual(t, activity(core.Activity{Delay: 10 * time.Minute, Mode: model.ActivityDebounce, MaxWait: time.Hour}), func(w *world) {
		got := w.digests(fine)
		for range 7 * 24 * 60 { // a week without a quiet minute
			w.notice(ann)
			w.runUntil(time.Minute)
		}
		assert.InDelta(t, 7*24, len(*got), 4, "it waits for an hour at most")
		w.runUntil(time.Hour)
		before := len(*got)
		w.notice(ann)
		w.runUntil(9 * time.Minute)
		w.notice(ann)
		w.runUntil(9 * time.Minute)
		assert.Len(t, *got, before, "it is not quiet yet")
		w.runUntil(time.Minute)
		assert.Len(t, *got, before+1)
	})
}

func TestActivityWhileItRunsMakesOneRunMore(t *testing.T) {
	virtual(t, activity(core.Activity{Delay: time.Minute}), func(w *world) {
		ran := 0
		core.Handle(w.s, "digest", func(ctx context.Context, _ *core.Task[map[string]string]) error {
			if ran++; ran == 1 {
				for i := range 5 {
					n, err := w.s.Notice(ctx, "digest", ann)
					require.NoError(w, err)
					assert.Equal(w, store.ReasonRunning, n.Reason)
					assert.Equal(w, i == 0, n.Scheduled)
					assert.Zero(w, n.Due)
					time.Sleep(10 * time.Second)
				}
			}
			return nil
		})
		begun := time.Now()
		n := w.notice(ann)
		w.runUntil(90 * time.Second)
		w.runUntil(time.Second)
		assert.Equal(t, begun.Add(2*time.Minute).UnixMilli(), w.task(n.Agent, n.ID).NextRun.UnixMilli(), "a minute after the first of them")
		w.runUntil(time.Hour)
		assert.Equal(t, 2, ran)
		assert.True(t, w.task(n.Agent, n.ID).Resting)
	})
}

func TestActivityMinInterval(t *testing.T) {
	const interval = 48 * time.Hour // longer than any record of the originals lived
	virtual(t, activity(core.Activity{Delay: time.Minute, MinInterval: interval}), func(w *world) {
		got := w.digests(fine)
		w.notice(ann)
		w.runUntil(47 * time.Hour)
		n := w.notice(ann)
		assert.True(t, n.Scheduled, "it is not forgotten")
		assert.Equal(t, store.ReasonInterval, n.Reason)
		assert.Equal(t, store.ReasonInterval, w.notice(ann).Reason)
		w.runUntil(time.Hour + 2*time.Minute)
		require.Len(t, *got, 2)
		assert.Equal(t, interval, (*got)[1]-(*got)[0], "from start to start")
	})
}

func TestActivityCoolsDown(t *testing.T) {
	virtual(t, activity(core.Activity{Delay: time.Minute, MinInterval: 10 * time.Hour, MaxFailures: 2}), func(w *world) {
		got := w.digests(func(n int) error {
			if n < 4 {
				return errBoom
			}
			return nil
		})
		w.notice(ann)
		w.runUntil(2 * time.Minute)
		n := w.notice(ann)
		require.Equal(t, store.ReasonInterval, n.Reason)
		w.runUntil(11 * time.Hour)
		require.Len(t, *got, 2)
		info := w.task(n.Agent, n.ID)
		assert.Equal(t, (*got)[1]+40*time.Hour, info.CoolingUntil.Sub(w.begun), "2 failures * 10 hours * 2")
		n = w.notice(ann)
		assert.False(t, n.Scheduled)
		assert.Equal(t, store.ReasonCooling, n.Reason)
		assert.Equal(t, info.CoolingUntil, n.Due)
		e, err := w.s.Explain(w.Context(), n.Agent, n.ID)
		require.NoError(t, err)
		assert.Equal(t, model.BecauseCooling, e.Reasons[0].Code)
		assert.Contains(t, e.Reasons[0].Text, "boom")
		w.runUntil(40 * time.Hour)
		require.Len(t, *got, 3, "it tries again by itself")
		w.runUntil(61 * time.Hour)
		require.Len(t, *got, 4, "3 failures * 10 hours * 2 later")
		info = w.task(n.Agent, n.ID)
		assert.Zero(t, info.ConsecutiveFailures)
		assert.Zero(t, info.CoolingUntil)
	})
}

func TestCoolDownLastsADayAtLeast(t *testing.T) {
	virtual(t, activity(core.Activity{Delay: time.Minute, MaxFailures: 1}), func(w *world) {
		w.digests(func(int) error { return errBoom })
		n := w.notice(ann)
		w.runUntil(2 * time.Minute)
		assert.Equal(t, w.begun.Add(24*time.Hour+time.Minute).UnixMilli(), w.task(n.Agent, n.ID).CoolingUntil.UnixMilli())
	})
}

// A subject that nothing happens for is kept for a while, then it is a finished task like others, and is gone in the end.
func TestIdleSubjectsDoNotPileUp(t *testing.T) {
	virtual(t, activity(core.Activity{Delay: time.Minute, MinInterval: 240 * time.Hour}), func(w *world) {
		got := w.digests(fine)
		n := w.notice(ann)
		w.runUntil(240 * time.Hour)
		assert.True(t, w.task(n.Agent, n.ID).Resting)
		w.runUntil(8 * 24 * time.Hour)
		info := w.task(n.Agent, n.ID)
		assert.Equal(t, core.StatusCompleted, info.Status)
		assert.Equal(t, "rested", info.Reason)
		assert.Len(t, *got, 1, "its handler did not run for that")
		assert.True(t, w.notice(ann).Scheduled)
		w.runUntil(2 * time.Minute)
		assert.Len(t, *got, 2)
	})
}

func TestSubjectsAreNeverMixedUp(t *testing.T) {
	for dimensions, want := range map[int]int{1: 5, 2: 7, 3: 9, 0: 9} {
		t.Run(fmt.Sprint(dimensions), func(t *testing.T) {
			virtual(t, activity(core.Activity{Delay: time.Minute, Dimensions: dimensions}), func(w *world) {
				seen := map[[2]string]bool{}
				for _, s := range []core.Subject{
					{User: "a:b", Device: "c", Agent: "d"},
					{User: "a", Device: "b:c", Agent: "d"},
					{User: "a", Device: "b", Agent: "c:d"},
					{User: "a:b:c", Device: "d", Agent: ""},
					{User: "a", Device: "b", Agent: "c"},
					{User: "a%3Ab", Device: "c", Agent: "d"},
					{User: "a"},
					{User: "a", Device: "default", Agent: "default"},
					{User: "a", Agent: "b"},
					{User: strings.Repeat("x", 256), Device: strings.Repeat("y", 256), Agent: strings.Repeat("z", 256)},
				} {
					n := w.notice(s)
					assert.LessOrEqual(t, len(n.ID), core.MaxIDLen)
					seen[[2]string{n.Agent, n.ID}] = true
				}
				assert.Len(t, seen, want)
			})
		})
	}
}

func TestNoticeRefuses(t *testing.T) {
	config := activity(core.Activity{Delay: time.Minute})
	config.Kinds["off"] = core.KindConfig{Disabled: true, Activity: &core.Activity{}}
	virtual(t, config, func(w *world) {
		for _, c := range []struct {
			kind    string
			subject core.Subject
			want    string
			code    core.Code
		}{
			{"digest", core.Subject{}, "user_id is required", core.CodeInvalid},
			{"digest", core.Subject{User: "a\n"}, "user_id has the control character", core.CodeInvalid},
			{"digest", core.Subject{User: "a", Device: "\x00"}, "device_id", core.CodeInvalid},
			{"digest", core.Subject{User: "a", Agent: strings.Repeat("x", 257)}, "agent_id is 257 bytes long", core.CodeInvalid},
			{"", ann, "kind is required", core.CodeInvalid},
			{"off", ann, `the kind "off" is disabled`, core.CodeDisabled},
		} {
			_, err := w.s.Notice(w.Context(), c.kind, c.subject)
			assert.ErrorContains(t, err, c.want)
			assert.Equal(t, c.code, core.CodeOf(err))
		}
		_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", Kind: "off"})
		assert.Equal(t, core.CodeDisabled, core.CodeOf(err))
		assert.Zero(t, w.store.total(), "no store call")
		_, err = w.s.Notice(w.Context(), "plain", ann)
		assert.ErrorContains(t, err, `kind "plain" has no activity schedule here, and the subject has no task of this kind yet`)
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
		agents, _, err := w.s.Agents(w.Context(), 0, "")
		require.NoError(t, err)
		assert.Empty(t, agents, "nothing is stored")
	})
	for _, a := range []core.Activity{
		{Delay: -1},
		{Mode: "x"},
		{MaxWait: time.Second},
		{Delay: time.Hour, Mode: model.ActivityDebounce, MaxWait: time.Minute},
		{MinInterval: -1},
		{Dimensions: 4},
		{Level: 4},
	} {
		_, err := core.New(newWorld(t, core.Config{}).store, activity(a))
		assert.ErrorContains(t, err, "Activity.", "%+v", a)
	}
}

func TestAReplayedActivityTaskAnswersToActivity(t *testing.T) {
	virtual(t, activity(core.Activity{Delay: time.Minute}), func(w *world) {
		ran := 0
		core.Handle(w.s, "digest", func(context.Context, *core.Task[map[string]string]) error { ran++; return nil })
		n := w.notice(ann)
		time.Sleep(time.Minute)
		for range 4 {
			w.dies("helper", "digest")
		}
		w.runFailing()
		require.Equal(t, core.StatusFailed, w.task(n.Agent, n.ID).Status)
		_, err := w.s.Replay(w.Context(), n.Agent, n.ID)
		require.NoError(t, err)
		w.runUntil(time.Hour)
		require.Equal(t, 1, ran)
		again := w.notice(ann)
		assert.True(t, again.Scheduled, "%+v", again)
		w.runUntil(2 * time.Hour)
		assert.Equal(t, 2, ran)
	})
}

// A second attempt is a start as well.
func TestActivityMinIntervalBetweenAttempts(t *testing.T) {
	a := core.Activity{Delay: time.Minute, MinInterval: time.Hour}
	virtual(t, core.Config{Kinds: map[string]core.KindConfig{"digest": {Activity: &a, MaxAttempts: 2}}}, func(w *world) {
		got := w.digests(func(n int) error {
			if n == 1 {
				return errBoom
			}
			return nil
		})
		w.notice(ann)
		w.runUntil(3 * time.Hour)
		require.Len(t, *got, 2)
		assert.GreaterOrEqual(t, (*got)[1]-(*got)[0], time.Hour)
	})
}

// Activity brings the next run: a failed one is not tried again by itself, whatever other kinds do, unless its own kind says so.
func TestActivityHasOneAttempt(t *testing.T) {
	a := core.Activity{Quiet: time.Minute}
	config := core.Config{
		Default: core.KindConfig{MaxAttempts: 5},
		Kinds:   map[string]core.KindConfig{"digest": {Activity: &a}, "more": {Activity: &a, MaxAttempts: 2}},
	}
	virtual(t, config, func(w *world) {
		for kind, want := range map[string]int{"digest": 3, "more": 6} {
			var runs atomic.Int32
			core.Handle(w.s, kind, func(context.Context, *core.Task[map[string]string]) error { runs.Add(1); return errBoom })
			var n model.Noticed
			for range 3 {
				var err error
				n, err = w.s.Notice(w.Context(), kind, ann)
				require.NoError(w, err)
				w.runUntil(time.Hour)
			}
			assert.EqualValues(w, want, runs.Load(), kind)
			assert.NotZero(w, w.task(n.Agent, n.ID).CoolingUntil)
		}
	})
}

// The key names the behaviour: quiet counts from the last activity, delay from the first.
func TestQuietDebouncesAndDelayThrottles(t *testing.T) {
	for _, c := range []struct {
		name string
		a    core.Activity
		want time.Duration // when the run is after two activities, the second at 40 minutes
	}{
		{"quiet", core.Activity{Quiet: time.Hour}, 100 * time.Minute},
		{"quiet with the longest wait", core.Activity{Quiet: time.Hour, MaxWait: 70 * time.Minute}, 70 * time.Minute},
		{"delay", core.Activity{Delay: time.Hour}, time.Hour},
		{"a mode is a synonym", core.Activity{Delay: time.Hour, Mode: model.ActivityDebounce}, 100 * time.Minute},
		{"so is the other", core.Activity{Delay: time.Hour, Mode: model.ActivityThrottle}, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, activity(c.a), func(w *world) {
				got := w.digests(fine)
				w.notice(ann)
				w.runUntil(40 * time.Minute)
				w.notice(ann)
				w.runUntil(2 * time.Hour)
				assert.Equal(w, []time.Duration{c.want}, *got)
			})
		})
	}
	for want, a := range map[string]core.Activity{
		"Activity.Quiet excludes a delay":            {Quiet: 1, Delay: 1},
		"Activity.Quiet must be between":             {Quiet: -1},
		"Activity.Mode must not be":                  {Quiet: 1, Mode: model.ActivityThrottle},
		"Activity.MaxWait needs a quiet time and mu": {Delay: time.Minute, MaxWait: time.Hour},
		"Activity.MaxWait needs a quiet time":        {Quiet: time.Hour, MaxWait: time.Minute},
	} {
		_, err := core.New(newWorld(t, core.Config{}).store, activity(a))
		assert.ErrorContains(t, err, want)
	}
}

// What rests waits for nothing that is to come: it has a count of its own, and no next time in events.
func TestWhatRestsIsNotWaiting(t *testing.T) {
	a := core.Activity{Delay: time.Minute, MaxFailures: 2}
	virtual(t, activity(a), func(w *world) {
		fails := false
		w.digests(func(int) error {
			if fails {
				return errBoom
			}
			return nil
		})
		counts := func() [4]int64 {
			st, err := w.s.Stats(w.Context())
			require.NoError(w, err)
			require.Len(w, st.Kinds, 1)
			return [4]int64{st.Waiting, st.Resting, st.Kinds[0].Depth(), st.Kinds[0].Resting}
		}
		last := func() core.Event {
			all := w.seen(model.EventFinish)
			return all[len(all)-1]
		}
		n := w.notice(ann)
		assert.Equal(w, [4]int64{1, 0, 1, 0}, counts())
		w.runUntil(time.Hour)
		assert.Equal(w, [4]int64{0, 1, 0, 1}, counts())
		assert.Equal(w, model.BecauseResting, last().Because)
		assert.Zero(w, last().Next, "not the time when it has rested for long enough")
		fails = true
		w.notice(ann)
		assert.Equal(w, [4]int64{1, 0, 1, 0}, counts())
		w.runUntil(time.Hour)
		assert.Equal(w, model.BecauseResting, last().Because)
		w.notice(ann)
		w.runUntil(time.Hour)
		assert.Equal(w, model.BecauseCooling, last().Because)
		assert.Equal(w, 24*time.Hour, last().Next.Sub(last().Time))
		assert.Equal(w, [4]int64{1, 0, 1, 0}, counts(), "it tries again by itself")
		require.NoError(w, w.s.Delete(w.Context(), n.Agent, n.ID))
		assert.Equal(w, [4]int64{}, counts())
	})
}
