package core

// Figures: the input of policies. None are kept without a policy.

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/decide"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Figures are what is known when a policy is called: the store and the kind as of the last second or the last answer, the agent as this
// process has seen it.
type Figures struct {
	Store store.Counters
	Kind  store.KindCounters // of the task's kind, over all processes; its Depth says how many tasks of it wait
	Agent AgentFigures
}

// AgentFigures are what this process has lately submitted for an agent and run of it. Counts fade by half each minute, so that they
// say how busy the agent is now.
type AgentFigures struct {
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

// figures are those of one process.
type figures struct {
	reading sync.Mutex // held by the one that asks the store

	mu     sync.Mutex
	asked  time.Time
	store  store.Counters
	kinds  map[string]store.KindCounters
	agents map[string]*agentLoad
}

// agentLoad is how busy an agent is.
type agentLoad struct {
	AgentFigures

	at time.Time // the time of the counts
}

// refresh reads the figures of the store if they are old. One caller does it at a time, and others do not wait; a store that
// does not answer in time leaves those that are known.
func (f *figures) refresh(ctx context.Context, s *Scheduler) {
	if !f.reading.TryLock() {
		return
	}
	defer f.reading.Unlock()
	now := s.config.Clock.Now()
	f.mu.Lock()
	fresh := !f.asked.IsZero() && now.Sub(f.asked) < figuresAge
	f.mu.Unlock()
	if fresh {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), figuresWait)
	st, err := s.store.Stats(ctx)
	cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = now
	if err != nil {
		return
	}
	f.store, f.kinds = st.Counters, make(map[string]store.KindCounters, len(st.Kinds))
	for i := range st.Kinds {
		f.kinds[st.Kinds[i].Kind] = st.Kinds[i].KindCounters
	}
}

// of are the figures of an agent and a kind now.
func (f *figures) of(now time.Time, agent, kind string) Figures {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := Figures{Store: f.store, Kind: f.kinds[kind]}
	out.Kind.Kind = kind
	if h := f.agents[agent]; h != nil {
		h.decay(now)
		out.Agent = h.AgentFigures
	}
	return out
}

// submitted counts a submit.
func (f *figures) submitted(now time.Time, agent string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.load(now, agent).Submitted++
}

// ran counts a run with the verdict on it, which was claimed so late.
func (f *figures) ran(now time.Time, agent string, v *decide.Verdict, lag time.Duration) {
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
func (f *figures) load(now time.Time, agent string) *agentLoad {
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
func (f *figures) makeRoom(now time.Time) {
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
