package core

// The tick: one agent's tasks within a pull, in their order.

import (
	"sync"
	"time"
)

// Tick is the work on the due tasks of one agent within one pull: it lasts from the claim of the first of them until no
// run is open.
type Tick struct {
	Agent    string
	Ended    bool          // false: it begins
	Tasks    int           // claimed in it: so far, or in all
	Duration time.Duration // how long it took, once it has ended
}

// ticks are the ticks of a pull that are under way. They are kept only if OnTick is set.
type ticks struct {
	mu   sync.Mutex
	open map[string]*openTick
}

// openTick is a tick whose runs have not all ended.
type openTick struct {
	begun time.Time
	tasks int // claimed so far
	left  int // of those not settled, released or given up
}

// enter opens runs of an agent: each task that was claimed is entered once and left once.
func (p *pull) enter(agent string, n int) {
	p.open.Add(n)
	if !p.ticking() {
		return
	}
	p.ticks.mu.Lock()
	defer p.ticks.mu.Unlock()
	t := p.ticks.open[agent]
	if t == nil {
		t = &openTick{begun: p.s.config.Clock.Now()}
		if p.ticks.open == nil {
			p.ticks.open = map[string]*openTick{}
		}
		p.ticks.open[agent] = t
		p.reportTick(Tick{Agent: agent, Tasks: n})
	}
	t.tasks, t.left = t.tasks+n, t.left+n
}

// leave closes a run of an agent.
func (p *pull) leave(agent string) {
	defer p.open.Done()
	if !p.ticking() {
		return
	}
	p.ticks.mu.Lock()
	defer p.ticks.mu.Unlock()
	t := p.ticks.open[agent]
	if t.left--; t.left == 0 {
		delete(p.ticks.open, agent)
		p.reportTick(Tick{Agent: agent, Ended: true, Tasks: t.tasks, Duration: p.s.config.Clock.Now().Sub(t.begun)})
	}
}

// ticking reports whether OnTick is set.
func (p *pull) ticking() bool { return p.scope.OnTick != nil || p.s.config.OnTick != nil }

// reportTick reports a tick, to the caller of the pull and to the program.
func (p *pull) reportTick(t Tick) {
	if p.scope.OnTick != nil {
		p.scope.OnTick(t)
	}
	if p.s.config.OnTick != nil {
		p.s.config.OnTick(t)
	}
}
