// Package ticks knows which runs of a pull are open: the tick of an agent lasts from the claim of its first task until no run of it is open.
package ticks

import (
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// Open are the runs of a pull that are not settled, released or given up. Its exported fields are set before it is used.
type Open struct {
	Clock model.Clock
	// On is called when a tick begins, with the tasks of its first claim, and when it ends, with all its tasks and how long it took. Without it ticks are
	// not kept.
	On func(agent string, ended bool, tasks int, took time.Duration)

	runs  sync.WaitGroup
	mu    sync.Mutex
	ticks map[string]*tick
}

// tick is one whose runs have not all ended.
type tick struct {
	begun time.Time
	tasks int // claimed so far
	left  int // of those not settled, released or given up
}

// Enter opens runs of an agent: each task that was claimed is entered once and left once.
func (o *Open) Enter(agent string, n int) {
	o.runs.Add(n)
	if o.On == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.ticks[agent]
	if t == nil {
		t = &tick{begun: o.Clock.Now()}
		if o.ticks == nil {
			o.ticks = map[string]*tick{}
		}
		o.ticks[agent] = t
		o.On(agent, false, n, 0)
	}
	t.tasks, t.left = t.tasks+n, t.left+n
}

// Leave closes a run of an agent.
func (o *Open) Leave(agent string) {
	defer o.runs.Done()
	if o.On == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.ticks[agent]
	if t.left--; t.left == 0 {
		delete(o.ticks, agent)
		o.On(agent, true, t.tasks, o.Clock.Now().Sub(t.begun))
	}
}

// Wait waits until no run is open.
func (o *Open) Wait() { o.runs.Wait() }
