package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// still is a clock that does not go.
type still time.Time

func (s still) Now() time.Time { return time.Time(s) }

// A phrase becomes the field that it means, and the stored task shows no trace of it.
func TestWhen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		when, zone string
		check      func(t *testing.T, info *core.TaskInfo)
	}{
		{"every weekday at 9am", "", func(t *testing.T, info *core.TaskInfo) {
			t.Helper()
			assert.Equal(t, "0 9 * * 1-5 Europe/Berlin", info.Cron+" "+info.Zone)
			assert.Equal(t, "2026-11-27T08:00:00Z", info.NextRun.Format(time.RFC3339))
		}},
		{"every weekday at 9am", "America/New_York", func(t *testing.T, info *core.TaskInfo) {
			t.Helper()
			assert.Equal(t, "0 9 * * 1-5 America/New_York", info.Cron+" "+info.Zone)
		}},
		{"every weekday at 9am in Asia/Tokyo", "", func(t *testing.T, info *core.TaskInfo) {
			t.Helper()
			assert.Equal(t, "0 9 * * 1-5 Asia/Tokyo", info.Cron+" "+info.Zone)
		}},
		{"every day at 2:30am, skipping times that the clocks skip", core.ZoneOfAgent, func(t *testing.T, info *core.TaskInfo) {
			t.Helper()
			assert.Equal(t, core.ZoneOfAgent, info.Zone)
			assert.Equal(t, schedule.GapSkip, info.Gap)
		}},
		{"every 5 minutes, counted from the start", "", func(t *testing.T, info *core.TaskInfo) {
			t.Helper()
			assert.Equal(t, 5*time.Minute, info.Every)
			assert.Equal(t, core.FromStart, info.From)
		}},
		{"tomorrow at 8am", "Asia/Tokyo", func(t *testing.T, info *core.TaskInfo) {
			t.Helper()
			assert.Equal(t, "2026-11-26T23:00:00Z", info.NextRun.Format(time.RFC3339))
			assert.Empty(t, info.Zone)
		}},
		{"in 2 hours", "", func(t *testing.T, info *core.TaskInfo) {
			t.Helper()
			assert.Equal(t, "2026-11-26T11:00:00Z", info.NextRun.Format(time.RFC3339))
		}},
		{"by hand", "", func(t *testing.T, info *core.TaskInfo) {
			t.Helper()
			assert.True(t, info.Manual)
		}},
		{"now", "", func(t *testing.T, info *core.TaskInfo) {
			t.Helper()
			assert.Equal(t, "2026-11-26T09:00:00Z", info.NextRun.Format(time.RFC3339))
		}},
	} {
		s, err := core.New(memstore.New(memstore.Config{Partitions: 1, Clock: still(now)}), core.Config{Zone: "Europe/Berlin"})
		require.NoError(t, err)
		_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "a", Kind: "k", When: c.when, Zone: c.zone})
		require.NoError(t, err, c.when)
		info, err := s.Task(t.Context(), "ada", "a")
		require.NoError(t, err)
		c.check(t, &info)
	}
}

// A phrase that is not clear, and one beside another schedule, is refused, and nothing is stored.
func TestWhenIsRefused(t *testing.T) {
	t.Parallel()
	st := watch(memstore.New(memstore.Config{Partitions: 1}))
	s, err := core.New(st, core.Config{})
	require.NoError(t, err)
	for _, c := range []struct {
		task core.NewTask
		want string
	}{
		{core.NewTask{When: "every day at 9am", Cron: "0 9 * * *"}, "when excludes cron: say the whole schedule in one of them"},
		{core.NewTask{When: "every day at 9am", Every: time.Hour}, "when excludes every"},
		{core.NewTask{When: "every day at 9am", At: time.Now()}, "when excludes at"},
		{core.NewTask{When: "every day at 9am", Delay: time.Hour}, "when excludes delay"},
		{core.NewTask{When: "every day at 9am", Manual: true}, "when excludes manual"},
		{core.NewTask{When: "every day at 9am", DayMatch: schedule.DayMatchAll}, "when excludes day_match"},
	} {
		c.task.Agent, c.task.ID, c.task.Kind = "ada", "a", "k"
		_, err := s.Submit(t.Context(), c.task)
		require.ErrorContains(t, err, c.want)
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
	}
	assert.Zero(t, st.total(), "the store was not called")
	for when, want := range map[string]string{
		"every day at 9am":                      "when is ambiguous: In which time zone?",
		"every day at 9 in UTC":                 `when is ambiguous: 9 in the morning or in the evening? Say "every day at 09:00 in UTC" or "every day at 21:00 in UTC"`,
		"every flurb":                           `when is no schedule: "flurb" is not understood here`,
		"every 0 minutes":                       `when is no schedule: "0 minutes" has no length`,
		"every 5 minutes every day at 9 in UTC": "when is",
	} {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "a", Kind: "k", When: when})
		require.ErrorContains(t, err, want)
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
	}
	for zone, want := range map[string]string{"Asia/Tokyo": "when names the zone UTC, and zone is Asia/Tokyo", core.ZoneOfAgent: "when names the zone UTC", "Mars/Phobos": "zone \"Mars/Phobos\" is not known"} {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "a", Kind: "k", When: "every day at 9am in UTC", Zone: zone})
		require.ErrorContains(t, err, want)
	}
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "a", Kind: "k", When: "tomorrow at 8am", Zone: core.ZoneOfAgent})
	require.ErrorContains(t, err, "zone must be an IANA name for a date")
	_, err = s.Task(t.Context(), "ada", "a")
	require.ErrorIs(t, err, core.ErrNotFound)
}

// A change of a task may be a phrase, which takes the place of its schedule.
func TestEditWhen(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 1}), core.Config{Zone: "Europe/Berlin"})
	require.NoError(t, err)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "a", Kind: "k", Every: time.Hour, Delay: time.Minute})
	require.NoError(t, err)
	_, err = s.Edit(t.Context(), "ada", "a", []byte(`{"when": "every monday at 18:30"}`))
	require.NoError(t, err)
	info, err := s.Task(t.Context(), "ada", "a")
	require.NoError(t, err)
	assert.Equal(t, "30 18 * * 1 Europe/Berlin", info.Cron+" "+info.Zone)
	assert.Zero(t, info.Every)
	_, err = s.Edit(t.Context(), "ada", "a", []byte(`{"when": "every 10 minutes"}`))
	require.NoError(t, err)
	info, err = s.Task(t.Context(), "ada", "a")
	require.NoError(t, err)
	assert.Equal(t, 10*time.Minute, info.Every)
	assert.Empty(t, info.Cron)
	_, err = s.Edit(t.Context(), "ada", "a", []byte(`{"when": "monday at 9"}`))
	require.ErrorContains(t, err, "when is ambiguous: Once, or every week?")
}
