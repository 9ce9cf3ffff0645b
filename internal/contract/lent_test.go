package contract_test

// Lent runs, as their workers read them, and the ends that they send.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// A run that was read says the same as the one that was lent, in all that a program gets.
func TestALentRunIsReadAsItWasLent(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 2, 3, 4, 5, 6e6, time.UTC)
	o := core.Outside{
		RunInfo: core.RunInfo{
			Agent: "a", ID: "i", Kind: "k", Group: "g", Level: core.LevelMedium, Attempt: 2, Due: at, Occurrence: at.Add(-time.Hour), Zone: "UTC", Parent: "p",
			Submitted: at.Add(-2 * time.Hour), Fence: 7, TraceID: "t", Traceparent: "tp", SessionID: "s", UserID: "u", Info: json.RawMessage(`{"i":1}`),
			Tags: []string{"x"}, Labels: map[string]string{"l": "v"}, Crashes: 1,
		},
		Calls: 2, Checkpoint: json.RawMessage(`{"page":3}`), Gate: json.RawMessage(`[1]`), Values: core.Values{"TENANT": "acme"}, MaxResult: 1 << 20,
		Heard: &core.Heard{Key: "key", Told: true, Payload: json.RawMessage(`"yes"`), How: core.ByPage, By: "ops", Question: "really?"},
	}
	task := &core.Task[json.RawMessage]{Payload: json.RawMessage(`{"n":1}`), RunInfo: o.Run()}
	data, err := contract.EncodeLent(&core.LentRun{Task: task, Timeout: 90 * time.Second}, "ticket")
	require.NoError(t, err)
	got, err := contract.DecodeLent(data, nil, nil, nil)
	require.NoError(t, err)
	assert.Equal(t, "ticket", got.Ticket)
	assert.Equal(t, 90*time.Second, got.Timeout)
	assert.Equal(t, core.Values{"TENANT": "acme"}, got.Task.Bound())
	assert.Equal(t, 1<<20, got.Task.MaxResult(), "what its server takes is not cut")
	again, err := contract.EncodeLent(&core.LentRun{Task: got.Task, Timeout: got.Timeout}, got.Ticket)
	require.NoError(t, err)
	assert.JSONEq(t, string(data), string(again))
	for _, member := range []string{"payload", "group", "attempt", "call", "crashes", "fence", "zone", "parent", "checkpoint", "gate", "heard", "trace_id", "labels", "tags", "info"} {
		assert.Contains(t, string(data), `"`+member+`":`)
	}
	for _, wrong := range []string{`{`, `{"due_at":"soon"}`} {
		_, err = contract.DecodeLent([]byte(wrong), nil, nil, nil)
		require.Error(t, err, wrong)
	}
}

// Each outcome of a handler is the same when it has been sent and read, and so is what the handler has reported.
func TestEndsAreReadAsTheyWereMeant(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	wrong := errors.New("wrong")
	for _, outcome := range []error{
		nil, wrong, core.SkipRetry(wrong), core.Cancel(wrong), core.RetryAfter(now.Add(time.Minute), wrong), core.Snooze(time.Minute), core.Snooze(0), core.NextIn(time.Hour),
		core.Yield(json.RawMessage(`{"page":1}`), time.Second), core.Yield(nil, 0), core.Await(core.Signal{Key: "key"}, nil),
		core.Await(core.Signal{Key: "k", Timeout: time.Hour, OnTimeout: core.TimeoutFail, From: core.FromApproval}, map[string]int{"page": 2}),
		fmt.Errorf("wrapped: %w", core.Snooze(time.Minute)),
	} {
		sent := core.NewTestRun(nil)
		require.NoError(t, sent.SetResult(map[string]any{"duly_usage": map[string]any{"tokens": 0.1}}))
		require.NoError(t, sent.SetProgress("half"))
		require.NoError(t, sent.Use(core.Usage{"tokens": 0.3, "usd": 1}))
		data, err := json.Marshal(contract.End(sent, outcome, nil, now))
		require.NoError(t, err)
		o, err := contract.ParseOutcome(data)
		require.NoError(t, err, string(data))
		end, err := o.Read(now)
		require.NoError(t, err, string(data))
		task := &core.Task[json.RawMessage]{RunInfo: core.NewTestRun(nil)}
		got := end(task)
		want := core.OutcomeFields(outcome, nil, now)
		assert.Equal(t, want, core.OutcomeFields(got, nil, now), string(data))
		result, progress := task.Recorded()
		assert.JSONEq(t, `"half"`, string(progress))
		assert.Equal(t, want["error"] == nil && want["yield"] == nil && want["await"] == nil, result != nil, string(data))
		assert.InDelta(t, 0.3, task.Used()["tokens"], 1e-9, string(data))
		assert.InDelta(t, 1.0, task.Used()["usd"], 1e-9)
	}
}

// Why a run had to end is part of its failure, and a worker that stops gives it back; an outcome that the handler has chosen counts.
func TestEndsOfRunsThatHadToEnd(t *testing.T) {
	t.Parallel()
	killed := errors.New("signal: terminated")
	for cause, want := range map[error]map[string]any{
		core.ErrTimeout:     {"error": core.ErrTimeout.Error() + "\nsignal: terminated"},
		core.ErrBudgetSpent: {"snooze": "1s"},
		core.ErrStopping:    {"release": true},
	} {
		run := core.NewTestRun(nil)
		assert.Equal(t, want, contract.End(run, killed, cause, time.Time{}))
		assert.Empty(t, contract.End(run, nil, cause, time.Time{}), "it has done its work")
		assert.Equal(t, map[string]any{"snooze": "1m0s"}, contract.End(run, core.Snooze(time.Minute), cause, time.Time{}))
	}
	run := core.NewTestRun(nil)
	require.NoError(t, run.SetResult(json.RawMessage(`"\ud800"`)))
	odd := contract.End(run, nil, nil, time.Time{})
	assert.Equal(t, true, odd["no_retry"])
	assert.Contains(t, odd["error"], "surrogate")
}

// A worker hears at once of what a handler reports, and stores what it saves.
func TestWhatAHandlerReportsIsHeard(t *testing.T) {
	t.Parallel()
	news, away := 0, errors.New("away")
	saved := ""
	o := core.Outside{News: func() { news++ }, Store: func(_ context.Context, c json.RawMessage) error { saved = string(c); return away }}
	run := o.Run()
	require.NoError(t, run.SetProgress(1))
	require.NoError(t, run.Use(core.Usage{"tokens": 1}))
	assert.Equal(t, 2, news)
	require.ErrorIs(t, run.Save(t.Context(), map[string]int{"page": 1}), away)
	assert.JSONEq(t, `{"page":1}`, saved)
	var checkpoint map[string]int
	_, err := run.Checkpoint(&checkpoint)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"page": 1}, checkpoint)
}
