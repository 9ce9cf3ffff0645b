package http

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-6f6f2c11/duly/core"
)

// flights lets requests that ask for the same pull share one.
type flights struct {
	mu   sync.Mutex
	open map[string]*flight // those that may still claim, or are about to
}

// flight is one pull and those who are answered by it. What it holds is guarded by flights.mu until it is done.
type flight struct {
	after   <-chan struct{} // closed when the one before claims no more and this may start; nil if there is none
	next    *flight         // of those who came while this one claimed
	waiting int             // those who would start it
	started bool

	claimed chan struct{} // closed when it claims no more
	done    chan struct{} // closed when its handlers have ended too
	report  core.Report
	err     error
	whole   bool // it was not cut off by its own caller
}

// do runs a pull, which calls claimed when it claims no more. While the same one may still claim it waits: that may be past
// what fell due since, so those who wait share the next one. If that is cut off, because its caller went away, it is done
// anew.
func (f *flights) do(ctx context.Context, key string, pull func(claimed func()) (core.Report, error)) (core.Report, error) {
	for {
		one := f.join(key)
		if one.after != nil {
			select {
			case <-one.after:
			case <-ctx.Done():
				f.leave(key, one)
				return core.Report{}, errCutOff // nothing was run for it
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
			return core.Report{}, errCutOff
		}
	}
}

// join is the flight that may answer a request that comes now: one that has not started.
func (f *flights) join(key string) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.open[key]
	switch {
	case one == nil:
		if f.open == nil {
			f.open = map[string]*flight{}
		}
		one = newFlight(nil)
		f.open[key] = one
	case one.started:
		if one.next == nil {
			one.next = newFlight(one.claimed)
		}
		one = one.next
	}
	one.waiting++
	return one
}

func newFlight(after <-chan struct{}) *flight {
	return &flight{after: after, claimed: make(chan struct{}), done: make(chan struct{})}
}

// leave forgets a flight that nobody is left to start.
func (f *flights) leave(key string, one *flight) {
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
func (f *flights) start(one *flight) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !one.started
	one.started = true
	return first
}

func (f *flights) lead(
	ctx context.Context, key string, one *flight, pull func(claimed func()) (core.Report, error),
) (core.Report, error) {
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
	defer func() {
		claimed()
		close(one.done)
	}()
	one.report, one.err = pull(claimed)
	one.whole = ctx.Err() == nil
	return one.report, one.err
}

// flightKey is the same for scopes that ask for the same.
func flightKey(s core.Scope) string {
	agents := slices.Clone(s.Agents)
	slices.Sort(agents)
	return fmt.Sprintf("%t %d %d %q", s.Agents == nil, s.MaxTasks, s.MaxDuration, strings.Join(agents, "\x00"))
}
