package core_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core"
)

// blackHole is a receiver that accepts connections, and answers nothing.
type blackHole struct{ receiver }

func (*blackHole) Deliver(ctx context.Context, _, _ string, _ []byte) error {
	<-ctx.Done()
	return ctx.Err()
}

// A receiver that is down takes half of the slots at most: twelve messages to it, each tried for 15 seconds, keep no task waiting.
func TestCallbacksLeaveHalfOfTheSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, core.Config{Concurrency: 5, Callbacks: &blackHole{}})
		var ran atomic.Int64
		core.Handle(w.s, "k", nothing)
		core.Handle(w.s, "tick", func(context.Context, *core.Task[any]) error {
			ran.Add(1)
			return nil
		})
		for i := range 12 {
			w.submit(core.NewTask{Agent: fmt.Sprint(i), Kind: "k", Callback: hook})
		}
		w.submit(core.NewTask{Agent: "z", Kind: "tick", Every: time.Second})
		ctx, stop := context.WithTimeout(w.Context(), 20*time.Second)
		defer stop()
		var pulls sync.WaitGroup
		for ctx.Err() == nil {
			pulls.Go(func() { _, _ = w.s.RunDue(ctx, core.Scope{}) })
			time.Sleep(time.Second)
		}
		pulls.Wait()
		assert.InDelta(w, 20, ran.Load(), 2)
	})
}
