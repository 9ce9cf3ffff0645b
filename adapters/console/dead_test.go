package console_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// deadMany is a console with so many dead tasks of an agent and of others, whose errors are of two causes.
func deadMany(t *testing.T, n int, options console.Options) *fixture {
	t.Helper()
	f := setup(t, options)
	core.Handle(f.scheduler, "mail", func(_ context.Context, task *core.Task[int]) error {
		if task.Payload%4 == 0 {
			return core.SkipRetry(fmt.Errorf("no room on host-%d", task.Payload))
		}
		return core.SkipRetry(fmt.Errorf("timeout after %d ms", task.Payload))
	})
	for at := 0; at < n; {
		var some []core.NewTask
		for ; len(some) < 500 && at < n; at++ {
			some = append(some, core.NewTask{Agent: fmt.Sprintf("agent-%d", at%10), ID: fmt.Sprint(at), Kind: "mail", Payload: at})
		}
		f.submit(some...)
		f.run()
	}
	return f
}

// Dead tasks are grouped over all of them: a page counts some, and the next one goes on with the count.
func TestDeadTasksAreCountedOverAll(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	f := deadMany(t, 1200, console.Options{Clock: clock})
	before := f.calls.Load()
	a := f.get("/ui/dead")
	a.says(t, "<strong>1,000</strong>")
	a.says(t, "so far: still counting.")
	a.says(t, `hx-get="/ui/dead?more=1"`)
	assert.LessOrEqual(t, f.calls.Load()-before, int64(12))
	a = f.get("/ui/dead?more=1")
	for _, says := range []string{"<strong>1,200</strong>", "in all.", ">900<span", ">300<span", "75.0 % of all", "25.0 % of all", "10 agents", "timeout after ", "no room on host-", "cause=no&#43;room&#43;on&#43;%23"} {
		a.says(t, says)
	}
	a.lacks(t, "hx-get")
	before = f.calls.Load()
	f.get("/ui/dead").says(t, "<strong>1,200</strong>")
	assert.Equal(t, before, f.calls.Load(), "what was counted just now is not counted again")
	f.get("/ui/dead", "agent", "agent-3").says(t, "<strong>120</strong>")
	f.get("/ui/dead", "text", "no room").says(t, "<strong>300</strong>")
	f.get("/ui/dead", "kind", "other").says(t, "No dead task is like that.")

	a = f.post("/ui/bulk?do=delete&status=failed&cause=no+room+on+%23", "count", "100", "typed", "100")
	a.says(t, "100 of 100 tasks are deleted")
	f.get("/ui/dead", "text", "no room").says(t, "<strong>200</strong>", "an order has the count begin again")
	require.NoError(t, f.scheduler.Delete(t.Context(), "agent-1", "1"))
	f.get("/ui/dead?agent=agent-1").says(t, "<strong>119</strong>")
	require.NoError(t, f.scheduler.Delete(t.Context(), "agent-1", "11"))
	f.get("/ui/dead?agent=agent-1").says(t, "<strong>119</strong>")
	clock.Advance(11 * time.Second)
	f.get("/ui/dead?agent=agent-1").says(t, "<strong>118</strong>", "a count is shown for some seconds")
}

// A group shows when its tasks have failed, and what a replay did is said, with where to see the rest. A dead task has its payload changed and is replayed
// by one form.
func TestReplayWithAnotherPayload(t *testing.T) {
	t.Parallel()
	f := deadMany(t, 8, console.Options{})
	a := f.get("/ui/dead")
	a.says(t, "when they failed, over the last")
	a.says(t, `<polyline points="`)
	a = f.get("/ui/task?agent=agent-3&id=3")
	a.says(t, "Change the payload and replay")
	a.says(t, `rows="6">3</textarea>`)
	a = f.post("/ui/again?agent=agent-3&id=3", "was_payload", "3", "payload", "{")
	assert.Equal(t, 400, a.status)
	a.says(t, "must be JSON")
	a = f.post("/ui/again?agent=agent-3&id=3", "was_payload", "3", "payload", "4444")
	require.Equal(t, 303, a.status)
	assert.Equal(t, "/ui/task?agent=agent-3&id=3&said=replaced", a.header.Get("Location"))
	info, err := f.scheduler.Task(t.Context(), "agent-3", "3")
	require.NoError(t, err)
	assert.Equal(t, "4444", string(info.Payload))
	assert.Equal(t, core.StatusWaiting, info.Status)
	f.get("/ui/task?agent=agent-3&id=3&said=replaced").says(t, "due again with the changed payload")
	f.get("/ui/task?agent=agent-3&id=3").lacks(t, "Change the payload and replay")
	require.Equal(t, 409, f.post("/ui/again?agent=agent-3&id=3", "was_payload", "3", "payload", "5").status)
	a = f.post("/ui/again?agent=agent-5&id=5", "was_payload", "5", "payload", "5")
	assert.Equal(t, "/ui/task?agent=agent-5&id=5&said=replayed", a.header.Get("Location"))
	a = f.post("/ui/bulk?do=replay&status=failed&kind=mail", "count", "6")
	a.says(t, "6 of 6 tasks are due again.")
	a.says(t, `href="/ui/tasks?kind=mail"`)
}

// Many visitors may look at once, at many choices.
func TestDeadTasksAreCountedOnceAtATime(t *testing.T) {
	t.Parallel()
	f := deadMany(t, 200, console.Options{})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			visitor := f.with(console.Options{})
			visitor.handler = f.handler
			visitor.get("/ui/dead").says(t, "<strong>200</strong>")
			visitor.get("/ui/dead", "agent", fmt.Sprint("agent-", i%20)).says(t, "Dead tasks")
		})
	}
	all.Wait()
}
