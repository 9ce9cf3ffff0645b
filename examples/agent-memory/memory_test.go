package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// world is a memory on a Redis of its own, at a time that the test sets.
type world struct {
	*testing.T

	*Memory
	url string
	now time.Time
}

func newWorld(t *testing.T, now time.Time) *world {
	t.Helper()
	srv := redistest.Start(t)
	options, err := redis.ParseURL(srv.URL)
	require.NoError(t, err)
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	w := &world{T: t, url: srv.URL, now: now}
	w.Memory = &Memory{Redis: client, Sum: Extractive{}, Now: func() time.Time { return w.now }}
	return w
}

// said remembers a text each so often, from one time up to another.
func (w *world) said(from, to time.Time, every time.Duration) {
	w.Helper()
	for at := from; at.Before(to); at = at.Add(every) {
		require.NoError(w, w.Add(w.Context(), "a", Entry{At: at, Text: "Something happened at " + at.Format(time.DateTime) + "."}))
	}
}

// rolls does one step, and returns how many summaries that made.
func (w *world) rolls(step rollUp) int {
	w.Helper()
	n, err := w.RollUp(w.Context(), "a", step, time.Hour)
	require.NoError(w, err)
	return n
}

func (w *world) level(level string) []Entry {
	w.Helper()
	entries, err := w.Level(w.Context(), "a", level)
	require.NoError(w, err)
	return entries
}

// starts are the days of a level's entries.
func (w *world) starts(level string) []string {
	w.Helper()
	var out []string
	for _, e := range w.level(level) {
		out = append(out, e.At.UTC().Format(time.DateOnly))
	}
	return out
}

// scheduler is one of a process of its own, that works for the memory.
func (w *world) scheduler() *core.Scheduler {
	w.Helper()
	st, err := redisstore.Open(w.Context(), redisstore.Config{URL: w.url})
	require.NoError(w, err)
	w.Cleanup(func() { _ = st.Close() })
	s, err := core.New(st, core.Config{})
	require.NoError(w, err)
	Register(s, w.Memory)
	return s
}

func TestRollUpTakesWholePeriodsOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 0, 30, 0, 0, time.UTC)
	w := newWorld(t, now)
	for _, at := range []time.Duration{-30 * time.Hour, -29 * time.Hour, -time.Hour} {
		w.said(now.Add(at), now.Add(at+1), 1)
	}
	assert.Equal(t, 1, w.rolls(rollUps[0]), "yesterday is not an hour old yet")
	w.now = now.Add(time.Hour)
	assert.Equal(t, 1, w.rolls(rollUps[0]), "the day before is done")
	assert.Zero(t, w.rolls(rollUps[0]))
	assert.Equal(t, []string{"2026-03-02", "2026-03-03"}, w.starts(days))
	require.NoError(t, w.Add(t.Context(), "a", Entry{At: now.Add(-2 * time.Hour), Text: "Late news."}))
	assert.Equal(t, 1, w.rolls(rollUps[0]), "what is added to a day makes its summary anew")
	assert.Len(t, w.level(days), 2, "a day has one place")
	assert.Contains(t, w.level(days)[1].Text, "Late news.")
}

// Days become weeks from Monday and weeks months, each in its time.
func TestRollUpToMonths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Date(2026, 3, 18, 4, 0, 0, 0, time.UTC)) // a Wednesday
	w.said(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), w.now, 12*time.Hour)
	assert.Equal(t, 31+28+17, w.rolls(rollUps[0]))
	assert.Equal(t, 11, w.rolls(rollUps[1]))
	assert.Equal(t, 3, w.rolls(rollUps[2]))
	assert.Equal(t, []string{"2025-12-29", "2026-01-05"}, w.starts(weeks)[:2])
	assert.Equal(t, "2026-03-09", w.starts(weeks)[10], "this week is not over")
	assert.Equal(t, []string{"2025-12-01", "2026-01-01", "2026-02-01"}, w.starts(months), "nor is this month; a week belongs to where it begins")
}

// Compaction drops what is old and summarised, and nothing else. Summaries stay what they were.
func TestCompactionKeepsTheSummaries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Date(2026, 3, 18, 18, 0, 0, 0, time.UTC))
	w.said(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), w.now, time.Hour)
	all := len(w.level(segments))
	n, err := w.Compact(t.Context(), "a")
	require.NoError(t, err)
	assert.Zero(t, n, "nothing is summarised")
	for _, step := range rollUps {
		w.rolls(step)
	}
	before := w.level(days)
	n, err = w.Compact(t.Context(), "a")
	require.NoError(t, err)
	left := w.level(segments)
	assert.EqualValues(t, all-len(left), n)
	assert.Equal(t, time.Date(2026, 2, 16, 0, 0, 0, 0, time.UTC), left[0].At.UTC(), "whole days")
	for range 3 {
		w.now = w.now.Add(7 * time.Hour)
		assert.LessOrEqual(t, w.rolls(rollUps[0]), 1, "the days after, and none again")
	}
	assert.Equal(t, before, w.level(days)[:len(before)])

	w.now = w.now.AddDate(6, 0, 0)
	for _, step := range rollUps {
		w.rolls(step)
	}
	_, err = w.Compact(t.Context(), "a")
	require.NoError(t, err)
	assert.Empty(t, w.level(segments))
	assert.Empty(t, w.level(days))
	assert.Empty(t, w.level(weeks))
	assert.Len(t, w.level(months), 4, "which stay for good")
}

// What is said late, of a day that is summarised and forgotten, comes into its summary, or, once that is forgotten too, into
// the one above.
func TestWhatIsSaidLateIsKept(t *testing.T) {
	t.Parallel()
	for age, kept := range map[int][]string{40: {days, weeks, months}, 400: {weeks, months}} {
		w := newWorld(t, time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
		old := w.now.AddDate(0, 0, -age)
		for i, text := range []string{"Bob likes tea.", "Carol plays chess.", "Dan sings."} {
			require.NoError(t, w.Add(t.Context(), "a", Entry{At: old.Add(time.Duration(i) * time.Hour), Text: text}))
			for _, step := range rollUps {
				if i == 2 { // it comes when the roll-up is over
					break
				}
				assert.Equal(t, 1, w.rolls(step))
			}
			_, err := w.Compact(t.Context(), "a")
			require.NoError(t, err)
			for _, step := range rollUps {
				assert.Equal(t, i/2, w.rolls(step), "nothing is left to summarise but the last one")
			}
		}
		_, err := w.Compact(t.Context(), "a")
		require.NoError(t, err)
		assert.Empty(t, w.level(segments))
		for _, level := range kept {
			require.Len(t, w.level(level), 1)
			assert.Equal(t, "Bob likes tea. Carol plays chess. Dan sings.", w.level(level)[0].Text, level)
		}
	}
}

// Each label does its work, as a task of its preset.
func TestLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Now())
	s := w.scheduler()
	do := func(preset string, p payload) json.RawMessage {
		submitted, err := s.Submit(t.Context(), core.NewTask{Agent: "a", Preset: preset, Payload: p})
		require.NoError(t, err)
		_, err = s.RunDueTasks(t.Context(), []string{"a"})
		require.NoError(t, err)
		task, err := s.Task(t.Context(), "a", submitted[0].ID)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, task.Status, "%s: %s", preset, task.LastError)
		return task.Result
	}
	at := startOf(days, w.now.AddDate(0, 0, -40)).Add(12 * time.Hour)
	do("add", payload{Content: "Bob likes coffee.", At: at})
	do("mem_read", payload{Content: "Ada works on engines. Engines need oil!", At: at.Add(time.Second)})
	require.Len(t, w.level(segments), 3)
	do("mem_update", payload{Content: "Bob likes tea.", At: at})
	do("mem_feedback", payload{Content: "Ada works on the first engines.", At: at.Add(time.Second)})
	assert.Equal(t, "Bob likes tea.", w.level(segments)[0].Text)
	assert.Equal(t, "Ada works on the first engines.", w.level(segments)[1].Text)

	var found []Entry
	require.NoError(t, json.Unmarshal(do("query", payload{Content: "engines?"}), &found))
	assert.Len(t, found, 2)
	var answer Answer
	require.NoError(t, json.Unmarshal(do("answer", payload{Content: "What does Bob like?"}), &answer))
	assert.Equal(t, "Bob likes tea.", answer.Text)
	assert.Len(t, answer.From, 1)

	assert.JSONEq(t, `{"summaries":3}`, string(do("mem_organize", payload{})), "a day, its week, its month")
	assert.JSONEq(t, `{"dropped":3}`, string(do("mem_archive", payload{})))
	require.NoError(t, json.Unmarshal(do("answer", payload{Content: "What does Bob like?"}), &answer))
	assert.Contains(t, answer.Text, "Bob likes tea", "the summaries know it still")
}

// brittle is a summariser that fails at one of its calls, as a language model may.
type brittle struct {
	calls, fails int
}

func (b *brittle) Summarise(ctx context.Context, texts []string, most int) (string, error) {
	if b.calls++; b.calls == b.fails {
		return "", errors.New("the model is busy")
	}
	return Extractive{}.Summarise(ctx, texts, most)
}

// A roll-up that fails half-way goes on in another process where it ended.
func TestARollUpIsRestarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Now())
	w.said(w.now.AddDate(0, 0, -10), w.now.AddDate(0, 0, -1), day)
	model := &brittle{fails: 5}
	w.Sum = model
	first := w.scheduler()
	require.NoError(t, Remember(t.Context(), first, "a"))
	night := func(s *core.Scheduler) core.TaskInfo {
		_, err := s.RunNow(t.Context(), "a", "memory.rollup_day")
		require.NoError(t, err)
		_, err = s.RunDueTasks(t.Context(), []string{"a"})
		if _, failed := errors.AsType[*core.RunsError](err); !failed {
			require.NoError(t, err)
		}
		task, err := s.Task(t.Context(), "a", "memory.rollup_day")
		require.NoError(t, err)
		return task
	}
	task := night(first)
	assert.Equal(t, "the model is busy", task.LastError)
	assert.Len(t, w.level(days), 4)

	second := w.scheduler()
	require.NoError(t, Remember(t.Context(), second, "a"), "as a process does when it starts")
	task = night(second)
	assert.EqualValues(t, 1, task.ErrorCount, "no other")
	assert.JSONEq(t, `{"summaries":5}`, string(task.Result))
	assert.Len(t, w.level(days), 9)
	assert.Equal(t, 10, model.calls, "nothing was done twice")
}

func TestExtractive(t *testing.T) {
	t.Parallel()
	got, err := Extractive{}.Summarise(t.Context(), []string{"Engines need oil. The weather is fine.", "Engines need petrol! Engines are loud."}, 2)
	require.NoError(t, err)
	assert.Equal(t, "Engines need oil. Engines need petrol.", got)
	got, err = Extractive{}.Summarise(t.Context(), nil, 3)
	require.NoError(t, err)
	assert.Empty(t, got)
}
