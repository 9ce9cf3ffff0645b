// Package load is how busy the store, its kinds and its agents are, as policies get it. None of it is kept without a policy.
package load

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/decide"
	"github.com/seed-6f6f2c11/duly/core/store/count"
)

// Agent is what this process has lately submitted for an agent and run of it. Counts fade by half each minute, so that they
// say how busy the agent is now.
type Agent struct {
	Submitted, Runs, Failures float64
	Took, Lag                 time.Duration // of its runs, on average over the last ones: how long they ran, and how late they were claimed
}

// Bounds of figures.
const (
	figuresAge     = time.Second // of those of the store
	figuresWait    = 500 * time.Millisecond
	loadHalfLife   = time.Minute
	mostAgentLoads = 10_000 // agents
	idleLoad       = 0.05   // runs and submits: such an agent is forgotten when there are too many
	newest         = 0.25   // the share of the last run in an average
)

// Figures are those of one process.
type Figures struct {
	Base *base.Base

	reading sync.Mutex // held by the one that asks the store

	mu     sync.Mutex
	asked  time.Time
	store  count.Counters
	kinds  map[string]count.KindCounters
	agents map[string]*agentLoad
}

// agentLoad is how busy an agent is.
type agentLoad struct {
	Agent

	at time.Time // the time of the counts
}

// Refresh reads the figures of the store if they are old. One caller does it at a time, and others do not wait; a store that
// does not answer in time leaves those that are known.
func (f *Figures) Refresh(ctx context.Context) {
	if !f.reading.TryLock() {
		return
	}
	defer f.reading.Unlock()
	now := f.Base.Config.Clock.Now()
	f.mu.Lock()
	fresh := !f.asked.IsZero() && now.Sub(f.asked) < figuresAge
	f.mu.Unlock()
	if fresh {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), figuresWait)
	st, err := f.Base.Store.Stats(ctx)
	cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = now
	if err != nil {
		return
	}
	f.store, f.kinds = st.Counters, make(map[string]count.KindCounters, len(st.Kinds))
	for i := range st.Kinds {
		f.kinds[st.Kinds[i].Kind] = st.Kinds[i].KindCounters
	}
}

// Of are the figures of the store, of a kind over all processes, and of an agent now.
func (f *Figures) Of(now time.Time, agent, kind string) (st count.Counters, of count.KindCounters, own Agent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st, of = f.store, f.kinds[kind]
	of.Kind = kind
	if h := f.agents[agent]; h != nil {
		h.decay(now)
		own = h.Agent
	}
	return st, of, own
}

// Submitted counts a submit.
func (f *Figures) Submitted(now time.Time, agent string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.load(now, agent).Submitted++
}

// Ran counts a run with the verdict on it, which was claimed so late.
func (f *Figures) Ran(now time.Time, agent string, v *decide.Verdict, lag time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.load(now, agent)
	share := newest
	if h.Took == 0 && h.Lag == 0 {
		share = 1
	}
	h.Took += time.Duration(share * float64(v.Took-h.Took))
	h.Lag += time.Duration(share * float64(max(lag, 0)-h.Lag))
	h.Runs++
	if v.Err != nil {
		h.Failures++
	}
}

// load is the current heat of an agent. The mutex is held.
func (f *Figures) load(now time.Time, agent string) *agentLoad {
	h := f.agents[agent]
	if h == nil {
		f.makeRoom(now)
		h = &agentLoad{at: now}
		f.agents[agent] = h
	}
	h.decay(now)
	return h
}

// makeRoom forgets the cold agents when too many are known; any one if none is cold. The mutex is held.
func (f *Figures) makeRoom(now time.Time) {
	if f.agents == nil {
		f.agents = map[string]*agentLoad{}
	}
	if len(f.agents) < mostAgentLoads {
		return
	}
	for agent, h := range f.agents {
		if h.decay(now); h.Submitted+h.Runs < idleLoad {
			delete(f.agents, agent)
		}
	}
	for agent := range f.agents {
		if len(f.agents) < mostAgentLoads*9/10 { // so that not each new agent looks at all others
			return
		}
		delete(f.agents, agent)
	}
}

// decay lets the counts fade until now.
func (h *agentLoad) decay(now time.Time) {
	if left := math.Exp2(-float64(now.Sub(h.at)) / float64(loadHalfLife)); left < 1 {
		h.Submitted, h.Runs, h.Failures, h.at = h.Submitted*left, h.Runs*left, h.Failures*left, now
	}
}
