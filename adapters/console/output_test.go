package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	"github.com/seed-6f6f2c11/duly/core"
)

// What a run prints is on the page of its task while it runs and afterwards: the end of it, from the beginning of a line, without the colours of terminals.
func TestOutput(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{})
	end := make(chan struct{})
	core.Handle(f.scheduler, "prints", func(_ context.Context, task *core.Task[json.RawMessage]) error {
		fmt.Fprintln(task.Output(), "\x1b[31mreading\x1b[0m <page> 1")
		if task.Attempt == 1 {
			<-end
			return assert.AnError
		}
		for i := range 3000 {
			fmt.Fprintf(task.Output(), "line %d\n", i)
		}
		return nil
	})
	f.submit(core.NewTask{Agent: "ann", ID: "p", Kind: "prints", MaxAttempts: 2, Backoff: time.Millisecond}, core.NewTask{Agent: "ann", ID: "silent", Kind: "ok"})
	f.get("/ui/task?agent=ann&id=p").lacks(t, "Output")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = f.scheduler.RunDue(context.WithoutCancel(t.Context()), core.Scope{})
	}()
	page := func() answer { return f.get("/ui/task?agent=ann&id=p") }
	require.Eventually(t, func() bool { return strings.Contains(page().body, "reading &lt;page&gt; 1") }, time.Minute, 10*time.Millisecond)
	a := page()
	a.says(t, "as it comes")
	a.says(t, `hx-trigger="every 2s"`)
	a.lacks(t, "[31m")
	close(end)
	<-done
	require.Eventually(t, func() bool {
		f.run()
		return strings.Contains(page().body, "line 2999")
	}, time.Minute, 10*time.Millisecond)
	a = page()
	a.says(t, "Output of the run before, attempt 1")
	a.says(t, "reading &lt;page&gt; 1")
	a.says(t, "<code>line ")
	a.says(t, "Attempt 2, ")
	a.lacks(t, "line 2\n")
	a.lacks(t, "as it comes")
	assert.LessOrEqual(t, len(a.body), 60<<10)
	f.get("/ui/task?agent=ann&id=silent").lacks(t, "Output")
	before := f.calls.Load()
	page()
	assert.LessOrEqual(t, f.calls.Load()-before, int64(12))
}
