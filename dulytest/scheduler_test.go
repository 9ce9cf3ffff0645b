package dulytest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/dulytest"
)

func TestNothingRunsBeforeTheClockSaysSo(t *testing.T) {
	t.Parallel()
	s := dulytest.New(t, core.Config{})
	core.Handle(s.Scheduler, "echo", echo)
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "echo", Payload: note{Text: "x"}, Delay: time.Hour})
	require.NoError(t, err)
	s.Clock.Advance(time.Hour - time.Millisecond)
	assert.Zero(t, s.RunDue(t).Ran)
	s.Clock.Advance(time.Millisecond)
	assert.Equal(t, 1, s.RunDue(t).Completed)
	info, err := s.Task(t.Context(), "a", "1")
	require.NoError(t, err)
	assert.JSONEq(t, `{"text": "x"}`, string(info.Result))
}

// The week of docs/handlers.md.
func TestARecurringTaskRunsOnEachDayThatTheClockIsTurned(t *testing.T) {
	t.Parallel()
	s := dulytest.New(t, core.Config{})
	core.Handle(s.Scheduler, "echo", echo)
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "echo", Every: 24 * time.Hour})
	require.NoError(t, err)
	for range 7 {
		assert.Equal(t, 1, s.RunDue(t).Completed)
		assert.Zero(t, s.RunDue(t).Ran)
		s.Clock.Advance(24 * time.Hour)
	}
}

// More tasks than slots: a pull waits for slots, and not for the clock.
func TestARunNeedsNoHelpFromTheClock(t *testing.T) {
	t.Parallel()
	s := dulytest.New(t, core.Config{Concurrency: 2, Kinds: map[string]core.KindConfig{"echo": {Slots: 1}}})
	core.Handle(s.Scheduler, "echo", echo)
	tasks := make([]core.NewTask, 100)
	for i := range tasks {
		tasks[i] = core.NewTask{Agent: fmt.Sprint("a", i%7), Kind: "echo"}
	}
	_, err := s.Submit(t.Context(), tasks...)
	require.NoError(t, err)
	assert.Equal(t, 100, s.RunDue(t).Completed)
}

func TestAFailedRunFailsTheTest(t *testing.T) {
	t.Parallel()
	s := dulytest.New(t, core.Config{Default: core.KindConfig{Backoff: time.Minute}})
	core.Handle(s.Scheduler, "flaky", func(_ context.Context, task *core.Task[note]) error {
		if task.Attempt == 1 {
			return errBoom
		}
		return nil
	})
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "flaky"})
	require.NoError(t, err)
	p := &probe{TB: t}
	assert.Equal(t, 1, s.RunDue(p).Retried)
	require.Len(t, p.failed, 1)
	assert.Contains(t, p.failed[0], "boom")

	s.Clock.Advance(time.Minute)
	assert.Equal(t, 1, s.RunDue(t).Completed)
}

// A handler can make its own time pass.
func TestAHandlerMeetsItsTimeout(t *testing.T) {
	t.Parallel()
	s := dulytest.New(t, core.Config{Default: core.KindConfig{Timeout: 10 * time.Second, MaxAttempts: 1}})
	core.Handle(s.Scheduler, "slow", func(ctx context.Context, _ *core.Task[note]) error {
		s.Clock.Advance(10 * time.Second)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "slow"})
	require.NoError(t, err)
	_, err = s.Scheduler.RunDue(t.Context(), core.Scope{})
	require.ErrorIs(t, err, core.ErrTimeout)
}

func TestAConfigurationThatMakesNoSenseFailsTheTest(t *testing.T) {
	t.Parallel()
	p := &probe{TB: t}
	assert.Nil(t, dulytest.New(p, core.Config{Clock: core.SystemClock{}}))
	assert.Nil(t, dulytest.New(p, core.Config{Concurrency: -1}))
	require.Len(t, p.failed, 2)
	assert.Contains(t, p.failed[0], "Config.Clock must be nil, not a model.SystemClock")
	assert.Contains(t, p.failed[1], "Concurrency must be between")
}

func TestAStoreFailsAsTold(t *testing.T) {
	t.Parallel()
	s := dulytest.New(t, core.Config{})
	core.Handle(s.Scheduler, "echo", echo)
	task := core.NewTask{Agent: "a", ID: "1", Kind: "echo"}

	s.Store.Fail("Submit", errBoom)
	_, err := s.Submit(t.Context(), task)
	require.ErrorIs(t, err, errBoom)
	assert.Equal(t, core.CodeUnavailable, core.CodeOf(err))
	s.Store.Fail("Submit", store.ErrFull)
	_, err = s.Submit(t.Context(), task)
	assert.Equal(t, core.CodeStoreFull, core.CodeOf(err))
	s.Store.Fail("Submit", nil)
	_, err = s.Submit(t.Context(), task)
	require.NoError(t, err)

	for _, verb := range []string{"Look", "Claim"} {
		s.Store.Fail(verb, errBoom)
		p := &probe{TB: t}
		s.RunDue(p)
		require.Len(t, p.failed, 1, verb)
		assert.Contains(t, p.failed[0], "boom")
		s.Store.Fail(verb, nil)
		s.Clock.Advance(time.Minute) // the partitions were away, and are asked again later
	}
	assert.Equal(t, 1, s.RunDue(t).Completed)
}

// Each verb of the contract can fail, and no other: a misspelt one would never fail.
func TestOnlyAVerbCanFail(t *testing.T) {
	t.Parallel()
	p := &probe{TB: t}
	s := dulytest.New(p, core.Config{})
	for _, verb := range []string{"Submit", "Touch", "Settle", "Extend", "Cancel", "Audit", "Get", "Stats"} {
		s.Store.Fail(verb, errBoom)
	}
	assert.Empty(t, p.failed)
	for i, verb := range []string{"", "Clam", "claim", "Partitions"} {
		s.Store.Fail(verb, errBoom)
		require.Len(t, p.failed, i+1)
		assert.Contains(t, p.failed[i], fmt.Sprintf("the store has no verb %q: use one of Agents, ", verb))
	}
}

// An outcome that cannot be stored is lost in the end, and the task runs again.
func TestAnOutcomeIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := dulytest.New(t, core.Config{})
		core.Handle(s.Scheduler, "echo", echo)
		_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "echo"})
		require.NoError(t, err)
		s.Store.Fail("Settle", errBoom)
		assert.Equal(t, 1, s.RunDue(t).Lost)
		s.Store.Fail("Settle", nil)
		s.Clock.Advance(time.Minute)
		assert.Equal(t, 1, s.RunDue(t).Completed)
	})
}
