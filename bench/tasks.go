package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// kind is the kind of all tasks.
const kind = "note"

// producers is how many goroutines submit.
const producers = 8

// payload is what each task carries: about 130 bytes as JSON.
type payload struct {
	N    int    `json:"n"`
	Text string `json:"text"`
	User string `json:"user"`
	More string `json:"more,omitempty"`
}

// newPayload is the payload of task n, with so many bytes more.
func newPayload(n, extra int) payload {
	return payload{
		N: n, More: string(filler(extra)), User: fmt.Sprintf("user-%07d", n),
		Text: "Remind them of the review they asked for, and summarise what has changed since.",
	}
}

// agentName is the agent that task i belongs to.
func agentName(i, agents int) string { return fmt.Sprintf("agent-%07d", i%agents) }

// newTask is task i, due after a delay.
func newTask(i, agents int, delay time.Duration) core.NewTask {
	return core.NewTask{Agent: agentName(i, agents), Kind: kind, Payload: newPayload(i, 0), Delay: delay}
}

// ledger counts the runs of each task.
type ledger []atomic.Int32

func (l ledger) mark(n int) {
	if n >= 0 && n < len(l) {
		l[n].Add(1)
	}
}

// check fails unless each task ran exactly once.
func (l ledger) check() error {
	var never, again int
	for i := range l {
		switch runs := l[i].Load(); {
		case runs == 0:
			never++
		case runs > 1:
			again++
		}
	}
	if never+again > 0 {
		return fmt.Errorf("of %d tasks %d never ran and %d ran more than once", len(l), never, again)
	}
	return nil
}

// spread calls work with 0 to n-1 from several goroutines, and stops at the first error.
func spread(ctx context.Context, goroutines, n int, work func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range goroutines {
		wait.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := work(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wait.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}

// pause waits; false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
