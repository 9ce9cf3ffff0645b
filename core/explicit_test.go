package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// What is given is never taken for what was left out: zero means what it says, or is refused with the field's name.
func TestZeroIsRefusedWhereItSaysNothing(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		`"every":"0s"`:                `every must be longer than "0s": leave it out for the default`,
		`"lease":"0s"`:                `lease must be longer than "0s": leave it out for the default`,
		`"level":0`:                   "level must be 1, 2 or 3, not 0",
		`"max_attempts":0`:            "max_attempts must be a whole number from 1 on, not 0",
		`"at":"0001-01-01T00:00:00Z"`: `at must be a time such as "2026-01-02T15:04:05Z", not "0001-01-01T00:00:00Z"`,
		`"delay":"-1s"`:               "delay must not be negative, not -1s",
		`"timeout":"-1ns"`:            "timeout must not be negative, not -1ns",
	} {
		_, err := model.ParseTasks([]byte(`{"agent_id":"a",` + field + `}`))
		assert.EqualError(t, err, want, field)
	}
	for _, name := range []string{
		"agent_id", "id", "kind", "cron", "zone", "day_match", "gap", "from", "overlap", "misfire", "limit_key", "unique_key",
		"on_conflict", "preset",
	} {
		_, err := model.ParseTasks([]byte(`{"` + name + `":""}`))
		assert.EqualError(t, err, name+" must not be empty: leave it out if it has no value")
	}
	for _, name := range []string{"group", "trace_id", "traceparent", "session_id", "user_id"} {
		tasks, err := model.ParseTasks([]byte(`{"` + name + `":""}`))
		require.NoError(t, err, "an empty label is none")
		assert.Equal(t, core.NewTask{}, tasks[0])
	}
}

func TestATaskCanHaveNoTimeoutAndNoPauses(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Timeout: time.Minute, Backoff: time.Hour, MaxBackoff: time.Hour}}, func(w *world) {
		var begun []time.Time
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[any]) error {
			begun = append(begun, time.Now())
			if len(begun) < 3 {
				return errors.New("again")
			}
			time.Sleep(time.Hour)
			return ctx.Err()
		})
		var task core.NewTask
		require.NoError(w, json.Unmarshal([]byte(`{"agent_id":"a","id":"1","kind":"k","timeout":"0s","backoff":"0s"}`), &task))
		w.submit(task)
		read, err := json.Marshal(w.task("a", "1"))
		require.NoError(w, err)
		assert.Contains(w, string(read), `"backoff":"0s","timeout":"0s"`, "it reads as it was submitted")
		w.runUntil(2 * time.Hour)
		assert.Equal(w, core.StatusCompleted, w.task("a", "1").Status, w.task("a", "1").LastError)
		require.Len(w, begun, 3)
		assert.Less(w, begun[2].Sub(begun[0]), time.Second)
	})
}

// A kind can have none of what the others have by default.
func TestAKindCanHaveNone(t *testing.T) {
	config := core.Config{
		Default: core.KindConfig{Timeout: time.Minute, Backoff: time.Hour, MaxBackoff: time.Hour},
		Kinds:   map[string]core.KindConfig{"k": {Timeout: -1, Backoff: -1}},
	}
	virtual(t, config, func(w *world) {
		runs := 0
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[any]) error {
			if runs++; runs == 1 {
				return errors.New("again")
			}
			time.Sleep(time.Hour)
			return ctx.Err()
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.runUntil(2 * time.Hour)
		assert.Equal(w, core.StatusCompleted, w.task("a", "1").Status)
	})
}

func TestNothingIsCaughtUp(t *testing.T) {
	config := core.Config{Default: core.KindConfig{CatchUp: -1, Spread: -1}}
	virtual(t, config, func(w *world) {
		runs := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error { runs++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "0 * * * *", Misfire: core.MisfireAll})
		time.Sleep(10*time.Hour + 30*time.Minute)
		w.runUntil(time.Second)
		assert.Zero(w, runs, "all of them were missed")
		assert.Positive(w, w.task("a", "1").SkipCount)
		w.runUntil(time.Hour)
		assert.Equal(w, 1, runs, "the next one is on time")
	})
}

func TestAPresetKeepsWhatTheTaskDoesNotSay(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var without core.NewTask
		require.NoError(w, json.Unmarshal([]byte(`{"agent_id":"a","id":"1","preset":"memory.rollup_day","jitter":"0s"}`), &without))
		w.submit(without, core.NewTask{Agent: "a", ID: "2", Preset: "memory.rollup_day", Cron: "0 5 * * *"},
			core.NewTask{Agent: "a", ID: "3", Preset: "memory.rollup_day", Jitter: time.Second},
			core.NewTask{Agent: "a", ID: "4", Preset: "memory.rollup_day", Every: time.Hour})
		info := w.task("a", "1")
		assert.Zero(w, info.Jitter)
		assert.Equal(w, 1, info.Due.Hour())
		assert.Zero(w, info.Due.Minute())
		own := w.task("a", "2")
		assert.Equal(w, "0 5 * * *", own.Cron)
		assert.Equal(w, 5*time.Minute, own.Jitter)
		assert.JSONEq(w, `{"min_age":"1h0m0s"}`, string(own.Payload))
		assert.Equal(w, time.Second, w.task("a", "3").Jitter)
		other := w.task("a", "4")
		assert.Empty(w, other.Cron)
		assert.Zero(w, other.Jitter)
	})
}

// What the caller hands in stays the caller's.
func TestSubmitLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.Config{})
	fresh := func() []core.NewTask {
		return []core.NewTask{
			{Agent: "a", Preset: "memory.rollup_day", Jitter: -1, Backoff: -5, Timeout: -7, Tags: []string{"x", "y"}},
			{Agent: "a", Kind: "k", Payload: []byte(`{"a":1}`), Info: json.RawMessage(`{"b":2}`), Tags: slices.Grow([]string{"z"}, 8)},
			{Agent: "a", Kind: "k", Payload: json.RawMessage(`[1]`), UniqueKey: "u"},
			{Agent: "a", Kind: "k", Payload: map[string]any{"c": []any{1.0}}},
		}
	}
	mine := fresh()
	_, err := w.s.Submit(t.Context(), mine...)
	require.NoError(t, err)
	assert.Equal(t, fresh(), mine)
	assert.Equal(t, []string{"z", "", ""}, mine[1].Tags[:3], "nor what lies behind a slice")
}

// Half of a surrogate pair is no character: encoding/json would make U+FFFD of it, and one id of two.
func TestHalfSurrogatesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.Config{})
	for text, want := range map[string]string{
		`{"agent_id":"a\ud800","kind":"k"}`:          `\ud800`,
		`{"agent_id":"\udC00","kind":"k"}`:           `\udC00`,
		`{"agent_id":"\ud83d\u0041","kind":"k"}`:     `\ud83d`,
		`{"agent_id":"\ud83d\ud83d","kind":"k"}`:     `\ud83d`,
		`{"agent_id":"\ud83d\\","kind":"k"}`:         `\ud83d`,
		`{"tasks":[{"payload":{"\udfff":1}}]}`:       `\udfff`,
		`{"agent_id":"a","tags":["\\\\\ud801 bad"]}`: `\ud801`,
	} {
		_, err := model.ParseTasks([]byte(text))
		assert.EqualError(t, err, "task has the escape "+want+", which is half of a surrogate pair and no character", text)
	}
	tasks, err := model.ParseTasks([]byte(`{"agent_id":"\ud83d\ude00 \\ud800 \u00e9\n","kind":"k"}`))
	require.NoError(t, err)
	assert.Equal(t, "\U0001F600 \\ud800 é\n", tasks[0].Agent)
	for _, task := range []core.NewTask{
		{Agent: "a", Kind: "k", Payload: json.RawMessage(`"\ud800"`)}, {Agent: "a", Kind: "k", Info: json.RawMessage(`"\ud800"`)},
	} {
		_, err := w.s.Submit(t.Context(), task)
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
	}
}
