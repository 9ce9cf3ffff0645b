package core_test

// Quiet hours: when tasks of an agent with a profile start, and when they do not.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// night is the usual one: from 22:00 to 07:00, in UTC.
var night = []core.QuietHours{{From: "22:00", To: "07:00"}}

// profile sets a profile that has to be accepted.
func (w *world) profile(p core.Profile) core.Profile {
	w.Helper()
	set, err := w.s.SetProfile(w.Context(), p)
	require.NoError(w, err)
	return set
}

// clocks registers a handler of kind k that notes when it starts, as day and time of the bubble, whose clock begins at midnight of day 0.
func (w *world) clocks(outcome func(n int) error) *[]string {
	out := &[]string{}
	core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
		*out = append(*out, w.clock(time.Now()))
		return outcome(len(*out))
	})
	return out
}

// clock is a time as clocks notes it: day 1 12:30.
func (w *world) clock(t time.Time) string {
	since := t.Sub(w.begun)
	return fmt.Sprintf("%d %02d:%02d", since/(24*time.Hour), int(since.Hours())%24, int(since.Minutes())%60)
}

// due is when a task is due.
func (w *world) due(id string) string {
	w.Helper()
	return w.clock(w.task("a", id).NextRun)
}

func longest(most time.Duration) time.Duration { return most }

func failsFirst(n int) error {
	if n == 1 {
		return errBoom
	}
	return nil
}

func snoozesFirst(n int, d time.Duration) error {
	if n == 1 {
		return core.Snooze(d)
	}
	return nil
}

// Whatever makes a task due, it is due when the quiet hours end, and what falls due in between is one run.
func TestQuietHoursMoveDueTimes(t *testing.T) {
	for name, c := range map[string]struct {
		task    core.NewTask
		outcome func(n int) error
		want    []string
	}{
		"once, by a delay":     {core.NewTask{Delay: 23 * time.Hour}, fine, []string{"1 07:00"}},
		"once, in time":        {core.NewTask{Delay: 21 * time.Hour}, fine, []string{"0 21:00"}},
		"a night's cron":       {core.NewTask{Cron: "30 2 * * *"}, fine, []string{"0 07:00", "1 07:00"}},
		"a day's cron":         {core.NewTask{Cron: "0 12 * * *"}, fine, []string{"0 12:00", "1 12:00"}},
		"every three hours":    {core.NewTask{Cron: "0 */3 * * *"}, fine, []string{"0 07:00", "0 09:00", "0 12:00", "0 15:00", "0 18:00", "0 21:00", "1 07:00", "1 09:00", "1 12:00"}},
		"caught up no more":    {core.NewTask{Cron: "0 */8 * * *", Misfire: core.MisfireAll}, fine, []string{"0 08:00", "0 16:00", "1 07:00", "1 08:00"}},
		"its end is one of it": {core.NewTask{Cron: "0 1,7,8 * * *"}, fine, []string{"0 07:00", "0 08:00", "1 07:00", "1 08:00"}},
		"slots":                {core.NewTask{Every: 5 * time.Hour, From: core.FromStart, Delay: 8 * time.Hour}, fine, []string{"0 08:00", "0 13:00", "0 18:00", "1 07:00", "1 09:00"}},
		"an interval":          {core.NewTask{Every: 9 * time.Hour, Delay: 8 * time.Hour}, fine, []string{"0 08:00", "0 17:00", "1 07:00"}},
		"an attempt":           {core.NewTask{Delay: 21*time.Hour + 59*time.Minute + 30*time.Second, MaxAttempts: 2, Backoff: time.Minute}, failsFirst, []string{"0 21:59", "1 07:00"}},
		"a snooze":             {core.NewTask{Delay: 20 * time.Hour}, func(n int) error { return snoozesFirst(n, 3*time.Hour) }, []string{"0 20:00", "1 07:00"}},
		"it overlaps itself":   {core.NewTask{Cron: "0 6,23 * * *", Overlap: core.OverlapAllow}, fine, []string{"0 07:00", "1 07:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{Random: longest}, func(w *world) {
				w.profile(core.Profile{Agent: "a", Quiet: night})
				c.task.Agent, c.task.ID, c.task.Kind = "a", "1", "k"
				got := w.clocks(c.outcome)
				w.submit(c.task)
				for range 36 {
					w.runUntil(time.Hour)
					if info := w.task("a", "1"); info.Status == core.StatusWaiting { // no claim is needed to put it off
						assert.Contains(t, "07 08 09 10 11 12 13 14 15 16 17 18 19 20 21", strings.Fields(w.clock(info.NextRun))[1][:2], "due in quiet hours")
					}
				}
				w.runUntil(time.Minute)
				assert.Equal(t, c.want, *got)
				assert.Zero(t, w.task("a", "1").SkipCount, "nothing is skipped")
			})
		})
	}
}

// What is urgent passes quiet hours if the profile says so, and not otherwise.
func TestWhatIsUrgentPassesQuietHours(t *testing.T) {
	for _, urgent := range []bool{false, true} {
		t.Run(fmt.Sprint(urgent), func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				w.profile(core.Profile{Agent: "a", Quiet: night, Urgent: urgent})
				w.clocks(fine)
				w.submit(
					core.NewTask{Agent: "a", ID: "first", Kind: "k", Delay: time.Hour, Level: core.LevelHigh},
					core.NewTask{Agent: "a", ID: "urgent", Kind: "k", Delay: time.Hour, Urgent: true},
					core.NewTask{Agent: "a", ID: "other", Kind: "k", Delay: time.Hour},
				)
				passes := map[bool]string{false: "0 07:00", true: "0 01:00"}[urgent]
				assert.Equal(t, []string{passes, passes, "0 07:00"}, []string{w.due("first"), w.due("urgent"), w.due("other")})
				assert.True(t, w.task("a", "urgent").Urgent)
			})
		})
	}
}

// A submit returns the time that counts, also the first of a process for an agent, and costs one call from the second on.
func TestSubmitsKnowQuietHours(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.profile(core.Profile{Agent: "a", Quiet: night})
		other, err := core.New(w.store, core.Config{})
		require.NoError(t, err)
		for i, calls := range []int{4, 1, 1} { // submit, ask for alarms, read and plan; then it is known
			before := w.store.Calls()
			done, err := other.Submit(w.Context(), core.NewTask{Agent: "a", ID: fmt.Sprint(i), Kind: "k", Delay: time.Minute})
			require.NoError(t, err)
			assert.Equal(t, calls, w.store.Calls()-before)
			assert.Equal(t, "0 07:00", w.clock(done[0].Due))
			assert.Equal(t, "0 07:00", w.due(fmt.Sprint(i)))
		}
		w.profile(core.Profile{Agent: "a", Quiet: []core.QuietHours{{From: "22:00", To: "08:00"}}})
		done, err := other.Submit(w.Context(), core.NewTask{Agent: "a", ID: "later", Kind: "k"})
		require.NoError(t, err)
		assert.Equal(t, "0 08:00", w.clock(done[0].Due), "its profile has changed since")
		assert.Equal(t, "0 08:00", w.due("later"))
		require.NoError(t, w.s.DeleteProfile(w.Context(), "a"))
		done, err = other.Submit(w.Context(), core.NewTask{Agent: "a", ID: "last", Kind: "k", Delay: time.Minute})
		require.NoError(t, err)
		assert.Equal(t, "0 00:01", w.clock(done[0].Due), "it has none any more")
		assert.Equal(t, "0 00:01", w.due("last"))
		before := w.store.Calls()
		w.submit(core.NewTask{Agent: "nobody", Kind: "k"})
		assert.Equal(t, 1, w.store.Calls()-before, "an agent without a profile")
	})
}

// A change of a profile counts for all that waits, and back again.
func TestAChangedProfilePlansWhatWaits(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.clocks(fine)
		w.submit(
			core.NewTask{Agent: "a", ID: "once", Kind: "k", Delay: time.Hour},
			core.NewTask{Agent: "a", ID: "day", Kind: "k", Delay: 12 * time.Hour},
			core.NewTask{Agent: "a", ID: "cron", Kind: "k", Cron: "0 3 * * *"},
			core.NewTask{Agent: "a", ID: "follows", Kind: "k", Cron: "0 12 * * *", Zone: core.ZoneOfAgent, Jitter: time.Minute},
			core.NewTask{Agent: "b", ID: "1", Kind: "k", Delay: time.Hour},
		)
		at := func(want ...string) {
			t.Helper()
			assert.Equal(t, want, []string{w.due("once"), w.due("day"), w.due("cron"), w.due("follows")[:4]})
		}
		at("0 01:00", "0 12:00", "0 03:00", "0 12")
		first := w.profile(core.Profile{Agent: "a", Quiet: night})
		at("0 07:00", "0 12:00", "0 07:00", "0 12")
		assert.Equal(t, "0 01:00", w.clock(w.task("b", "1").NextRun), "another agent")
		assert.EqualValues(t, 1, first.Revision)
		again := w.profile(core.Profile{Agent: "a", Quiet: night})
		assert.EqualValues(t, 1, again.Revision, "nothing has changed")
		w.profile(core.Profile{Agent: "a", Quiet: night, Zone: "Asia/Tokyo"}) // 13:00 to 22:00
		at("0 01:00", "0 12:00", "0 03:00", "0 03")
		why, err := w.s.Explain(w.Context(), "a", "day")
		require.NoError(t, err)
		assert.Equal(t, model.BecauseNotDue, why.Reasons[0].Code)
		w.profile(core.Profile{Agent: "a", Quiet: []core.QuietHours{{From: "20:00", To: "24:00"}}, Zone: "Asia/Tokyo"}) // 11:00 to 15:00
		at("0 01:00", "0 15:00", "0 03:00", "0 03")
		why, err = w.s.Explain(w.Context(), "a", "day")
		require.NoError(t, err)
		assert.Equal(t, model.BecauseQuiet, why.Reasons[0].Code)
		assert.Contains(t, why.Reasons[0].Text, "quiet until 2000-01-01T15:00:00.000Z (in 15h0m0s)")
		require.NoError(t, w.s.DeleteProfile(w.Context(), "a"))
		at("0 01:00", "0 12:00", "0 03:00", "0 12")
		_, err = w.s.Profile(w.Context(), "a")
		require.ErrorIs(t, err, core.ErrNotFound)
		require.ErrorIs(t, w.s.DeleteProfile(w.Context(), "a"), core.ErrNotFound)
	})
}

// A plan that is given up half way, as its process dies, is completed by whoever next claims a task of the agent; until then nothing starts
// in quiet hours.
func TestAPlanThatStopsIsCompleted(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		got := w.clocks(fine)
		w.profile(core.Profile{Agent: "a", Quiet: []core.QuietHours{{From: "00:00", To: "12:00"}}})
		w.submit(core.NewTask{Agent: "a", ID: "soon", Kind: "k", Delay: time.Hour}, core.NewTask{Agent: "a", ID: "late", Kind: "k", Delay: 2 * time.Hour})
		w.store.failing(func(verb string, n int) error {
			if verb == "replan" {
				return errBoom
			}
			return nil
		})
		_, err := w.s.SetProfile(w.Context(), core.Profile{Agent: "a", Quiet: []core.QuietHours{{From: "08:00", To: "10:00"}}})
		require.ErrorIs(t, err, errBoom)
		w.store.failing(nil)
		assert.Equal(t, []string{"0 12:00", "0 12:00"}, []string{w.due("soon"), w.due("late")}, "as it was")
		time.Sleep(time.Minute)
		w.submit(core.NewTask{Agent: "a", ID: "finds", Kind: "k"}) // what is claimed shows that a plan has stopped
		w.run()
		assert.Equal(t, []string{"0 01:00", "0 02:00"}, []string{w.due("soon"), w.due("late")})
		w.runUntil(3 * time.Hour)
		assert.Equal(t, []string{"0 00:01", "0 01:00", "0 02:00"}, *got)
	})
}

// Nothing starts in quiet hours that was due before and waited, or whose profile changed while it was claimed; a process that crashed in
// between stays counted, and whoever runs a task by hand runs it.
func TestNothingStartsInQuietHours(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		got := w.clocks(fine)
		w.submit(core.NewTask{Agent: "a", ID: "late", Kind: "k", Delay: 21 * time.Hour}, core.NewTask{Agent: "a", ID: "hand", Kind: "k", Delay: 21 * time.Hour})
		w.profile(core.Profile{Agent: "a", Quiet: night})
		time.Sleep(23 * time.Hour) // nobody was there
		report := w.run()
		assert.Zero(t, report.Ran)
		assert.Empty(t, w.seen(model.EventStart))
		assert.Equal(t, "1 07:00", w.due("late"))
		assert.Zero(t, w.task("a", "late").SkipCount+w.task("a", "late").RunCount)
		why, err := w.s.Explain(w.Context(), "a", "late")
		require.NoError(t, err)
		assert.Equal(t, model.BecauseQuiet, why.Reasons[0].Code)
		_, err = w.s.RunNow(w.Context(), "a", "hand")
		require.NoError(t, err)
		w.run()
		assert.Equal(t, []string{"0 23:00"}, *got)
		w.runUntil(9 * time.Hour)
		assert.Equal(t, []string{"0 23:00", "1 07:00"}, *got)
	})
}

func TestACrashInQuietHoursStaysCounted(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		got := w.clocks(fine)
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.dies("a", "k")
		w.profile(core.Profile{Agent: "a", Quiet: night})
		time.Sleep(time.Hour)
		w.run()
		assert.Equal(t, "0 07:00", w.due("1"))
		assert.Equal(t, 1, w.task("a", "1").Crashes)
		w.runUntil(8 * time.Hour)
		assert.Equal(t, []string{"0 07:00"}, *got)
	})
}

// A profile that is set while a task runs counts for the time that its run has left behind.
func TestAProfileThatChangesDuringARun(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		n := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			if n++; n == 1 {
				_, err := w.s.SetProfile(w.Context(), core.Profile{Agent: "a", Zone: "Asia/Tokyo"})
				return err
			}
			return nil
		})
		w.profile(core.Profile{Agent: "a", Quiet: night})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 15 * time.Hour, Delay: 8 * time.Hour},
			core.NewTask{Agent: "a", ID: "2", Kind: "k", Cron: "0 9 * * *", Zone: core.ZoneOfAgent})
		assert.Equal(t, "0 09:00", w.due("2"))
		w.runUntil(8*time.Hour + time.Minute)
		assert.Equal(t, "0 23:00", w.due("1"), "it would have been put off to the morning")
		assert.Equal(t, "1 00:00", w.due("2"))
	})
}

// The default zone is that of cron expressions and quiet hours that name none, and is kept with them.
func TestDefaultZone(t *testing.T) {
	virtual(t, core.Config{Zone: "Asia/Tokyo"}, func(w *world) {
		w.clocks(fine)
		set := w.profile(core.Profile{Agent: "a", Quiet: night})
		assert.Equal(t, "Asia/Tokyo", set.Zone)
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "0 12 * * *"}, core.NewTask{Agent: "a", ID: "2", Kind: "k", Delay: 14 * time.Hour},
			core.NewTask{Agent: "b", ID: "1", Kind: "k", Cron: "0 12 * * *", Zone: core.ZoneOfAgent})
		assert.Equal(t, []string{"0 03:00", "0 22:00"}, []string{w.due("1"), w.due("2")})
		assert.Equal(t, "0 03:00", w.clock(w.task("b", "1").NextRun), "an agent without a profile")
		assert.Equal(t, "Asia/Tokyo", w.task("a", "1").Zone)
	})
	_, err := core.New(nil, core.Config{})
	require.Error(t, err)
}

func TestProfilesAreChecked(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for _, c := range []struct {
			profile core.Profile
			field   string
		}{
			{core.Profile{}, "agent_id"},
			{core.Profile{Agent: "a", Zone: "Mars"}, "zone"},
			{core.Profile{Agent: "a", Zone: core.ZoneOfAgent}, "zone"},
			{core.Profile{Agent: "a", Quiet: []core.QuietHours{{From: "22", To: "07:00"}}}, "quiet[0].from"},
			{core.Profile{Agent: "a", Quiet: []core.QuietHours{{From: "00:00", To: "24:00"}}}, "quiet"},
			{core.Profile{Agent: "a", Labels: map[string]string{"": "x"}}, "labels."},
		} {
			_, err := w.s.SetProfile(w.Context(), c.profile)
			var invalid *core.InvalidError
			require.ErrorAs(t, err, &invalid)
			assert.Equal(t, c.field, invalid.Field)
		}
		assert.Zero(t, w.store.Calls(), "no store was asked")
		whole := core.Profile{
			Agent: "a", Zone: "Europe/Berlin", Quiet: []core.QuietHours{{From: "22:00", To: "07:00", Days: []string{"mon-fri", "sun"}}, {From: "12:00", To: "13:00"}},
			Urgent: true, Labels: map[string]string{"x": "y"}, Revision: 1,
		}
		assert.Equal(t, whole, w.profile(whole))
		read, err := w.s.Profile(w.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, whole, read)
		w.profile(core.Profile{Agent: "b"})
		all, next, err := w.s.Profiles(w.Context(), "", 0)
		require.NoError(t, err)
		assert.Empty(t, next)
		slices.SortFunc(all, func(a, b core.Profile) int { return int(a.Agent[0]) - int(b.Agent[0]) })
		assert.Equal(t, []core.Profile{whole, {Agent: "b", Revision: 1}}, all)
	})
}

// An order to run now that is refused, as everything is paused, does not let its task start in quiet hours once that is over.
func TestARefusedOrderPassesNoQuietHours(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		starts := w.clocks(func(int) error { return nil })
		w.profile(core.Profile{Agent: "a", Quiet: []core.QuietHours{{From: "01:00", To: "03:00"}}})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: 30 * time.Minute})
		require.NoError(t, w.s.Pause(w.Context(), core.Target{}, core.Pause{}))
		time.Sleep(90 * time.Minute)
		_, err := w.s.RunNow(w.Context(), "a", "1")
		require.ErrorContains(t, err, "everything is paused")
		require.NoError(t, w.s.Resume(w.Context(), core.Target{}))
		w.runUntil(3 * time.Hour)
		assert.Equal(t, []string{"0 03:00"}, *starts)
	})
}
