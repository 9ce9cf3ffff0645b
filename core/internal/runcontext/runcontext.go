// Package runcontext is the context of a run: a cancellable one, which is only made once a handler waits for it.
package runcontext

import (
	"context"
	"sync"
	"time"
)

// Context is the context that a handler gets: that of its pull, and ended by itself when its run is. It is what
// context.WithCancelCause returns, but made at the first call of Done, or when it is cancelled: until then it cannot be distinguished
// from its parent, and most handlers never look.
type Context struct {
	Parent context.Context //nolint:containedctx // that of its pull, set before the first use

	mu   sync.Mutex
	real context.Context //nolint:containedctx // the same; nil until somebody needs it
	stop context.CancelCauseFunc
	over bool
}

// made is the real context. The mutex is held.
func (c *Context) made() context.Context {
	if c.real == nil {
		parent := c.Parent
		if c.over { // its parent's end comes later, and is not its own
			parent = context.WithoutCancel(parent)
		}
		c.real, c.stop = context.WithCancelCause(parent)
		if c.over {
			c.stop(nil)
		}
	}
	return c.real
}

// Cancel ends the context, for a cause; nil when its run has ended. Only the first end counts.
func (c *Context) Cancel(cause error) {
	c.mu.Lock()
	if cause != nil {
		_ = c.made() // it keeps the cause
	}
	c.over = true
	stop := c.stop
	c.mu.Unlock()
	if stop != nil {
		stop(cause)
	}
}

// Deadline is the parent's: a run is cancelled, and has no deadline of its own.
func (c *Context) Deadline() (time.Time, bool) { return c.Parent.Deadline() }

// Done is closed when the run is to end.
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made().Done()
}

// Err reports that the run is to end.
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.real != nil:
		return c.real.Err()
	case c.over:
		return context.Canceled
	default:
		return c.Parent.Err()
	}
}

// Value is the parent's. The real context is asked where it may have been cancelled otherwise than its parent, as
// [context.Cause] finds the cause so.
func (c *Context) Value(key any) any {
	c.mu.Lock()
	from := c.Parent
	if c.real != nil || c.over {
		from = c.made()
	}
	c.mu.Unlock()
	return from.Value(key)
}

// String names the context, as it would be printed with its lock otherwise.
func (*Context) String() string { return "duly.run" }
