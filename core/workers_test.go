package core_test

// The workers: each handler runs at once, whatever those before it do.

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core"
)

// Each of a hundred handlers waits for all others: none may be behind another that has not returned.
func TestNoHandlerWaitsForAnother(t *testing.T) {
	const n = 100
	virtual(t, core.Config{Concurrency: n, Urgent: -1}, func(w *world) {
		var all sync.WaitGroup
		all.Add(n)
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[int]) error {
			all.Done()
			all.Wait()
			switch task.Payload % 3 {
			case 0:
				panic("it takes its goroutine along")
			case 1:
				runtime.Goexit()
			}
			return nil
		})
		for i := range n {
			w.submit(core.NewTask{Agent: "a" + strconv.Itoa(i), Kind: "k", Payload: i})
		}
		r, _ := w.s.RunDue(w.Context(), core.Scope{MaxTasks: n})
		assert.Equal(w, n, r.Ran)
		assert.Equal(w, n/3, r.Completed)
	})
}

// A handler that ends its goroutine leaves the tasks behind it theirs.
func TestEndedGoroutinesAreReplaced(t *testing.T) {
	virtual(t, core.Config{Concurrency: 1, Urgent: -1}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			runtime.Goexit()
			return nil
		})
		for i := range 20 {
			w.submit(core.NewTask{Agent: "a" + strconv.Itoa(i), Kind: "k", MaxAttempts: 1})
		}
		assert.Equal(w, 20, w.runFailing().Failed)
	})
}
