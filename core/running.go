package core

// What a process runs at a moment: the calls of its pulls, oldest first.

import (
	"cmp"
	"slices"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// mostRunning is how many of its runs a process tells of: the oldest, as those are what somebody looks for.
const mostRunning = 10

// openPulls are the pulls under way. They cost a pull two steps, and a task nothing.
type openPulls struct {
	mu  sync.Mutex
	all map[*pull]struct{}
}

func (o *openPulls) add(p *pull) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[*pull]struct{}{}
	}
	o.all[p] = struct{}{}
}

func (o *openPulls) remove(p *pull) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, p)
}

// running are the oldest runs under way.
func (o *openPulls) running() []model.RunningTask {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []model.RunningTask
	for p := range o.all {
		p.openCalls.mu.Lock()
		for _, c := range p.openCalls.all {
			for _, r := range c.runs {
				all = append(all, model.RunningTask{Agent: r.claimed.Agent, ID: r.claimed.ID, Kind: r.claimed.Kind, Since: c.begun})
			}
		}
		p.openCalls.mu.Unlock()
	}
	store.Sort(all, func(a, b *model.RunningTask) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.ID, b.ID))
	})
	return slices.Clip(all[:min(len(all), mostRunning)])
}
