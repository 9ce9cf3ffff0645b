package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
)

// Pulls that several callers share: who leads one, who waits for it, and what waiting costs them.

// shortestPull is the least time that a pull gets whose caller has waited for others. With less it could start nothing, and the
// wait would have been for nothing too.
const shortestPull = time.Second

// RunShared is [Scheduler.RunDue] for hosts that are asked by many callers at once, such as a server that answers a request with
// each pull. While a pull for the same scope is claiming, all further calls for it wait and share one pull after that: it claims
// what has fallen due meanwhile, so that a hundred callers cost the store no more than two. Handlers that still run hold nobody
// up. Callers of another scope share nothing.
//
// The time that a call waits is taken from the scope's MaxDuration, down to a second. A call whose context ends while it waits
// returns a report that says More and nothing else, as that of a pull that was cut off before it ran anything. If the call that
// leads a pull is cut off, those who wait for it do not get its report: one of them starts over.
//
// A scope with Idle, Join, OnDue, OnTick or Series is invalid: they would be called for the work of others.
func (s *Scheduler) RunShared(ctx context.Context, scope Scope) (Report, error) {
	if err := s.checkShared(scope); err != nil {
		return Report{}, err
	}
	if scope.Agents != nil && len(scope.Agents) == 0 {
		return Report{}, nil
	}
	clock := s.config.Clock
	begun, whole := clock.Now(), scope.MaxDuration
	return s.shared.do(ctx, shareKey(scope), func(claimed func()) (Report, error) {
		scope.Idle = func(time.Time) bool { claimed(); return false }
		defer context.AfterFunc(ctx, claimed)() // its handlers have their grace then, and nobody else has to wait for that
		if waited := clock.Now().Sub(begun); waited > 0 && whole > 0 {
			scope.MaxDuration = max(whole-waited, min(whole, shortestPull))
		}
		return s.RunDue(ctx, scope)
	})
}

// checkShared refuses a scope with functions in it: they would be called for one caller only.
func (s *Scheduler) checkShared(scope Scope) error {
	if scope.Idle != nil || scope.Join != nil || scope.OnDue != nil || scope.OnTick != nil || scope.Series != nil {
		return check.Invalid("scope", "must have no Idle, Join, OnDue, OnTick or Series: a shared pull works for several callers")
	}
	return s.check(scope)
}

// shareKey is the same for scopes that ask for the same, in whatever order they name it. Agents are quoted one by one: no name
// can be made to look like two.
func shareKey(s Scope) string {
	agents, partitions := slices.Clone(s.Agents), slices.Clone(s.Partitions)
	slices.Sort(agents)
	slices.Sort(partitions)
	var b strings.Builder
	fmt.Fprint(&b, s.Agents == nil, partitions, s.MaxTasks, s.MaxDuration, s.PerAgent, s.Grace)
	for _, agent := range agents {
		fmt.Fprintf(&b, "%q", agent)
	}
	return b.String()
}

// sharedPulls lets callers that ask for the same pull share one.
type sharedPulls struct {
	mu   sync.Mutex
	open map[string]*sharedPull // those that may still claim, or are about to
}

// sharedPull is one pull and those who are answered by it. Its fields are guarded by sharedPulls.mu until it is done.
type sharedPull struct {
	after   <-chan struct{} // closed when the one before claims no more and this may start; nil if none comes before
	next    *sharedPull     // of those who came while this one claimed
	waiting int             // those who would start it
	started bool

	claimed chan struct{} // closed when it claims no more
	done    chan struct{} // closed when its handlers have ended too
	report  Report
	err     error
	whole   bool // it was not cut off by its own caller, or by a panic
}

// do runs a pull, which calls claimed when it claims no more. While the same one may still claim it waits: that one may already
// have passed what fell due since, so those who wait share the next one. If that is cut off, because its caller went away, one
// of the others runs it again.
func (f *sharedPulls) do(ctx context.Context, key string, pull func(claimed func()) (Report, error)) (Report, error) {
	for {
		one := f.join(key)
		if one.after != nil {
			select {
			case <-one.after:
			case <-ctx.Done():
				f.leave(key, one)
				return Report{More: true}, nil // as RunDue has it: the end was asked for, and nothing is known
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
			return Report{More: true}, nil
		}
	}
}

// join is the pull that may answer a call that comes now: one that has not started.
func (f *sharedPulls) join(key string) *sharedPull {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.open[key]
	switch {
	case one == nil:
		if f.open == nil {
			f.open = map[string]*sharedPull{}
		}
		one = newSharedPull(nil)
		f.open[key] = one
	case one.started:
		if one.next == nil {
			one.next = newSharedPull(one.claimed)
		}
		one = one.next
	}
	one.waiting++
	return one
}

// newSharedPull is a pull that begins after another one, if after is not nil.
func newSharedPull(after <-chan struct{}) *sharedPull {
	return &sharedPull{after: after, claimed: make(chan struct{}), done: make(chan struct{})}
}

// leave forgets a pull that nobody is left to start: keys are made of what callers send, and must not pile up.
func (f *sharedPulls) leave(key string, one *sharedPull) {
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

// start reports whether it is the caller who has to run the pull.
func (f *sharedPulls) start(one *sharedPull) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !one.started
	one.started = true
	return first
}

// lead runs the pull for all who wait for it.
func (f *sharedPulls) lead(
	ctx context.Context, key string, one *sharedPull, pull func(claimed func()) (Report, error),
) (Report, error) {
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
	defer func() { // also when a store panics: nobody waits for a pull that is no more
		claimed()
		close(one.done)
	}()
	one.report, one.err = pull(claimed)
	one.whole = ctx.Err() == nil
	return one.report, one.err
}
