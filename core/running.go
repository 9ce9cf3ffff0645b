package core

// What a process runs at a moment: the calls of its pulls, oldest first.

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// mostRunning is how many of its runs a process tells of: the oldest, as those are what somebody looks for.
const mostRunning = 10

// RunningTask is a run that a process had when it said so.
type RunningTask struct {
	Agent string    `json:"agent_id"`
	ID    string    `json:"id"`
	Kind  string    `json:"kind"`
	Since time.Time `json:"-"` // by the clock of its process
}

type (
	plainRunningTask RunningTask

	runningTaskJSON struct {
		*plainRunningTask

		Since store.Millis `json:"since"`
	}
)

// MarshalJSON writes a run, with milliseconds as Process has them.
func (r RunningTask) MarshalJSON() ([]byte, error) {
	return json.Marshal(runningTaskJSON{(*plainRunningTask)(&r), store.MillisOf(r.Since)})
}

// UnmarshalJSON reads it.
func (r *RunningTask) UnmarshalJSON(data []byte) error {
	in := runningTaskJSON{plainRunningTask: (*plainRunningTask)(r)}
	err := json.Unmarshal(data, &in)
	r.Since = in.Since.Time()
	return err
}

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
func (o *openPulls) running() []RunningTask {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []RunningTask
	for p := range o.all {
		p.openCalls.mu.Lock()
		for _, c := range p.openCalls.all {
			for _, r := range c.runs {
				all = append(all, RunningTask{Agent: r.claimed.Agent, ID: r.claimed.ID, Kind: r.claimed.Kind, Since: c.begun})
			}
		}
		p.openCalls.mu.Unlock()
	}
	store.Sort(all, func(a, b *RunningTask) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.ID, b.ID))
	})
	return slices.Clip(all[:min(len(all), mostRunning)])
}
