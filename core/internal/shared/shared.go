// Package shared lets callers that want the same pull at the same time share one.
package shared

import (
	"context"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// Pulls lets callers that ask for the same pull share one.
type Pulls struct {
	mu   sync.Mutex
	open map[string]*pull // those that may still claim, or are about to
}

// pull is one pull and the callers that share its report. Its fields are guarded by Pulls.mu until it is done.
type pull struct {
	after   <-chan struct{} // closed when the one before claims no more and this may start; nil if none comes before
	next    *pull           // of the callers that came while this one claimed
	waiting int             // callers that would start it
	started bool

	claimed chan struct{} // closed when it claims no more
	done    chan struct{} // closed when its handlers have ended too
	report  model.Report
	err     error
	whole   bool // it was not cut off by its own caller, or by a panic
}

// Do runs a pull, which calls claimed when it claims no more. While one with the same key may still claim, Do waits: that one may already
// have passed what fell due since, so waiting callers share the next one. If that is cut off, because its caller went away, one
// of the others runs it again.
func (f *Pulls) Do(ctx context.Context, key string, pull func(claimed func()) (model.Report, error)) (model.Report, error) {
	for {
		one := f.join(key)
		if one.after != nil {
			select {
			case <-one.after:
			case <-ctx.Done():
				f.leave(key, one)
				return model.Report{More: true}, nil // as in RunDue: the caller asked to end, and nothing is known
			}
		}
		if f.start(one) {
			return f.lead(ctx, key, one, pull)
		}
		select {
		case <-one.done:
			if one.whole {
				return one.report, one.err
			}
		case <-ctx.Done():
			return model.Report{More: true}, nil
		}
	}
}

// join is the pull that may answer a call that comes now: one that has not started.
func (f *Pulls) join(key string) *pull {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.open[key]
	switch {
	case one == nil:
		if f.open == nil {
			f.open = map[string]*pull{}
		}
		one = newPull(nil)
		f.open[key] = one
	case one.started:
		if one.next == nil {
			one.next = newPull(one.claimed)
		}
		one = one.next
	}
	one.waiting++
	return one
}

// newPull is a pull that begins after another one, if after is not nil.
func newPull(after <-chan struct{}) *pull {
	return &pull{after: after, claimed: make(chan struct{}), done: make(chan struct{})}
}

// leave removes a pull that no caller is left to start: keys are made of what callers send, and must not pile up.
func (f *Pulls) leave(key string, one *pull) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.waiting--
	if one.waiting > 0 || one.started {
		return
	}
	switch before := f.open[key]; {
	case before == one:
		delete(f.open, key)
	case before != nil && before.next == one:
		before.next = nil
	}
}

// start reports whether the caller has to run the pull.
func (f *Pulls) start(one *pull) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !one.started
	one.started = true
	return first
}

// lead runs the pull for all callers that wait for it.
func (f *Pulls) lead(
	ctx context.Context, key string, one *pull, pull func(claimed func()) (model.Report, error),
) (model.Report, error) {
	claimed := sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if one.next == nil {
			delete(f.open, key)
		} else {
			f.open[key] = one.next
		}
		close(one.claimed)
	})
	defer func() { // also if a store panics: otherwise callers would wait forever
		claimed()
		close(one.done)
	}()
	one.report, one.err = pull(claimed)
	one.whole = ctx.Err() == nil
	return one.report, one.err
}
