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
	open map[string]*flight
}

type flight struct {
	done   chan struct{}
	report core.Report
	err    error
	whole  bool // it was not cut off by its own caller
}

// do runs a pull. While the same one is under way it waits: that may be past what fell due since, so those who wait share
// the next one. If that is cut off, because its caller went away, it is done anew.
func (f *flights) do(ctx context.Context, key string, pull func() (core.Report, error)) (core.Report, error) {
	var before *flight // the one that was under way at first
	for first := true; ; first = false {
		f.mu.Lock()
		if f.open == nil {
			f.open = map[string]*flight{}
		}
		one := f.open[key]
		if one == nil {
			one = &flight{done: make(chan struct{})}
			f.open[key] = one
			f.mu.Unlock()
			return f.lead(ctx, key, one, pull)
		}
		f.mu.Unlock()
		if first {
			before = one
		}
		select {
		case <-one.done:
			if one.whole && one != before {
				return one.report, one.err
			}
		case <-ctx.Done():
			return core.Report{}, nil // the caller is gone: nothing was run for it
		}
	}
}

func (f *flights) lead(ctx context.Context, key string, one *flight, pull func() (core.Report, error)) (core.Report, error) {
	defer func() {
		f.mu.Lock()
		delete(f.open, key)
		f.mu.Unlock()
		close(one.done)
	}()
	one.report, one.err = pull()
	one.whole = ctx.Err() == nil
	return one.report, one.err
}

// flightKey is the same for scopes that ask for the same.
func flightKey(s core.Scope) string {
	agents := slices.Clone(s.Agents)
	slices.Sort(agents)
	return fmt.Sprintf("%t %d %d %q", s.Agents == nil, s.MaxTasks, s.MaxDuration, strings.Join(agents, "\x00"))
}
