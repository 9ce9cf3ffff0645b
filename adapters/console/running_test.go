package console_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	"github.com/seed-6f6f2c11/duly/core"
)

// A run that is under way is on the page of its task: since when, how far it is, what it has saved, what it has submitted with when each of that ran,
// and a link to its trace.
func TestARunThatIsUnderWay(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{TraceURL: "https://traces.example/t/{trace_id}?view=1"})
	f.elsewhere = "https://traces.example/"
	reported, end := make(chan error, 1), make(chan struct{})
	core.Handle(f.scheduler, "research", func(ctx context.Context, task *core.Task[json.RawMessage]) error {
		_, err := f.scheduler.Submit(ctx, core.NewTask{Agent: "ann", ID: "child-1", Kind: "ok"}, core.NewTask{Agent: "ann", ID: "child-2", Kind: "ok", Delay: time.Hour})
		if err == nil {
			err = task.Save(ctx, map[string]int{"page": 7})
		}
		if err == nil {
			err = task.SetProgress(map[string]any{"done": 3, "of": 12})
		}
		reported <- err
		<-end
		return nil
	})
	f.submit(core.NewTask{Agent: "ann", ID: "root", Kind: "research", TraceID: "a b/c"})
	f.get("/ui/task?agent=ann&id=root").lacks(t, "Under way")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = f.scheduler.RunDue(context.WithoutCancel(t.Context()), core.Scope{})
	}()
	require.NoError(t, <-reported)
	shown := func() answer { return f.get("/ui/task?agent=ann&id=root") }
	require.Eventually(t, func() bool { // progress is stored by the next heartbeat
		task, err := f.scheduler.Task(t.Context(), "ann", "root")
		return err == nil && task.Progress != nil
	}, time.Minute, 5*time.Millisecond)
	a := shown()
	for _, says := range []string{
		"Under way", "Attempt 1 has been running for <strong>", `<progress max="12" value="3"`, "3 of 12, 25 %", "Its runs have saved 10 bytes", "one run is under way",
		"What its runs have submitted", `<li class="d0">`, `<li class="d1">`, ">child-1<", ">child-2<", `class="wait"`, `class="busy"`,
		`href="https://traces.example/t/a&#43;b%2Fc?view=1"`,
	} {
		a.says(t, says)
	}
	close(end)
	<-done
	f.run()
	a = shown()
	a.lacks(t, "Under way")
	a.says(t, ">child-1<")
	a.says(t, `class="good"`)
	f.get("/ui/task?agent=ann&id=child-1").lacks(t, "What its runs have submitted")
	f.get("/ui/task?agent=ann&id=child-1").lacks(t, "Open the trace")
	before := f.calls.Load()
	shown()
	assert.LessOrEqual(t, f.calls.Load()-before, int64(12))
}
