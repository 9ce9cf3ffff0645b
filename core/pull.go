package core

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// pull is one call of RunDue: what it claims it runs and settles before it returns.
type pull struct {
	s     *Scheduler
	scope Scope
	begun time.Time
	end   time.Time // when handlers are cancelled at the latest; zero for no limit

	ctx      context.Context //nolint:containedctx // the caller's; a pull lives as long as its call
	claiming context.Context //nolint:containedctx // done when nothing more may be claimed
	running  context.Context //nolint:containedctx // what handlers get; done when they have to end
	cancel   context.CancelCauseFunc
	timers   []func() bool

	targets []*target
	asked   map[string]bool // the agents of the scope; nil for all
	left    int             // tasks that the budget still allows
	claimed bool            // whether anything was claimed, so that what the first look said is old
	dry     bool            // the last round brought nothing
	failed  error           // of a partition, while others went on
	tally   tally
	open    sync.WaitGroup // runs that are not settled, released or given up
	ticks   ticks
	spawned atomic.Bool // an occurrence has become a task of its own, which is due
	settler settler
	heart   heart
}

// target is a partition that the pull takes tasks from.
type target struct {
	partition int
	agents    []string // nil for all
	next      Millis   // when it is due next
	known     bool     // whether next is known
	fresh     bool     // it is to be asked in any case
	spent     bool     // it has due tasks that this pull does not take
}

func newPull(ctx context.Context, s *Scheduler, scope Scope) *pull {
	p := &pull{s: s, scope: scope, ctx: ctx, begun: s.config.Clock.Now(), left: math.MaxInt}
	p.tally = tally{agents: map[string]struct{}{}, next: map[int]Millis{}}
	if scope.MaxTasks > 0 {
		p.left = scope.MaxTasks
	}
	p.settler.pull, p.heart.pull = p, p
	p.bound()
	p.aim()
	return p
}

// bound sets up when claiming stops and when handlers are cancelled.
func (p *pull) bound() {
	clock := p.s.config.Clock
	claiming, stop := context.WithCancel(p.ctx)
	p.claiming = claiming
	p.running, p.cancel = context.WithCancelCause(context.WithoutCancel(p.ctx))
	if deadline, ok := p.ctx.Deadline(); ok {
		// The context's deadline is by the machine's clock, ours may be another one.
		p.end = p.begun.Add(time.Until(deadline) - p.s.config.Margin) //nolint:forbidigo // see above
	}
	if d := p.scope.MaxDuration; d > 0 && (p.end.IsZero() || p.begun.Add(d).Before(p.end)) {
		p.end = p.begun.Add(d)
	}
	if !p.end.IsZero() {
		p.timers = append(p.timers, clock.AfterFunc(max(p.end.Sub(p.begun), 0), func() {
			stop()
			p.cancel(ErrStopping)
		}))
	}
	p.timers = append(p.timers,
		context.AfterFunc(p.ctx, func() {
			if p.scope.Grace <= 0 {
				p.cancel(ErrStopping)
				return
			}
			clock.AfterFunc(p.scope.Grace, func() { p.cancel(ErrStopping) })
		}),
		func() bool { stop(); return true },
	)
}

// aim finds the partitions to take from.
func (p *pull) aim() {
	if p.scope.Agents == nil {
		all := p.scope.Partitions
		if all == nil {
			all = make([]int, p.s.store.Partitions())
			for i := range all {
				all[i] = i
			}
		}
		for _, i := range all {
			p.targets = append(p.targets, &target{partition: i})
		}
		return
	}
	byPartition := map[int]*target{}
	p.asked = map[string]bool{}
	for _, agent := range p.scope.Agents {
		if p.asked[agent] {
			continue
		}
		p.asked[agent] = true
		i := PartitionOf(agent, p.s.store.Partitions())
		t := byPartition[i]
		if t == nil {
			t = &target{partition: i, fresh: true} // named agents are worth a claim at once
			byPartition[i] = t
			p.targets = append(p.targets, t)
		}
		t.agents = append(t.agents, agent)
	}
}

func (p *pull) close() {
	for _, stop := range p.timers {
		stop()
	}
	p.cancel(ErrStopping)
}

func (p *pull) run() (Report, error) {
	err := p.rounds(p.look(p.claiming))
	follows := p.idle()
	p.open.Wait()
	// Occurrences that became tasks of their own are for this pull too, unless another follows it anyway.
	for err == nil && !follows && p.spawned.Swap(false) {
		err = p.rounds(nil)
		p.open.Wait()
	}
	p.heart.stop()
	ended := p.claiming.Err() != nil
	if ended && (p.ctx.Err() != nil || !p.all(func(t *target) bool { return !t.known })) {
		err = nil // the end was asked for, whatever it cut off; but a store that has not answered once is a failure
	}
	if err == nil && (p.claimed || ended) && p.scope.Agents == nil && p.ctx.Err() == nil {
		err = p.lookAgain(ended)
	}
	return p.finish(err)
}

// lookAgain finds out what is left. When the pull had to end there is little time for that: what is not known then may be due.
func (p *pull) lookAgain(ended bool) error {
	p.tally.forgetAll()
	ctx, cancel := p.call()
	defer cancel()
	err := p.look(ctx)
	if err != nil && ended {
		for _, t := range p.targets {
			t.known = false
		}
		err = nil
	}
	return err
}

func (p *pull) all(is func(*target) bool) bool {
	return !slices.ContainsFunc(p.targets, func(t *target) bool { return !is(t) })
}

// idle tells that the pull claims no more for now, and reports whether another pull follows it.
func (p *pull) idle() bool {
	return p.scope.Idle != nil && p.claiming.Err() == nil && p.scope.Idle(p.next().Time())
}

// rounds claims until nothing is due, unless there was an error before.
func (p *pull) rounds(err error) error {
	for more := true; err == nil && more; {
		more, err = p.round()
	}
	if err == nil {
		err = p.failed
	}
	return err
}

func (p *pull) runTick(agent string, claimed []Claimed) (Report, error) {
	n := 0
	p.targets = nil // nothing is asked, so nothing is left to ask
	p.heart.holdAll(claimed)
	p.enter(agent, len(claimed))
	for n < len(claimed) {
		got := p.s.slots.take(p.claiming, len(claimed)-n)
		if got == 0 {
			p.releaseAll(claimed[n:])
			break
		}
		p.tick(agent, claimed[n:n+got])
		n += got
	}
	p.open.Wait()
	p.heart.stop()
	return p.finish(nil)
}

// finish makes the report. An error of the caller's context is no error of the pull: it asked for the end.
func (p *pull) finish(err error) (Report, error) {
	p.tally.mu.Lock()
	defer p.tally.mu.Unlock()
	r := p.tally.report
	r.Agents = len(p.tally.agents)
	r.Duration = p.s.config.Clock.Now().Sub(p.begun)
	next := p.nextLocked()
	r.NextDueAt = next.Time()
	r.More = next != 0 && next <= p.s.storeNow() || !p.all(func(t *target) bool { return t.known })
	if p.targets != nil && p.ctx.Err() != nil { // cut off by its caller, it did not look what is left
		r.More = true
	}
	if err != nil && p.ctx.Err() != nil {
		err = nil
	}
	if err == nil && p.tally.failed.Count > 0 {
		err = &p.tally.failed
	}
	return r, err
}

// next is when something within the scope is due next, as far as is known.
func (p *pull) next() Millis {
	p.tally.mu.Lock()
	defer p.tally.mu.Unlock()
	return p.nextLocked()
}

func (p *pull) nextLocked() Millis {
	var next Millis
	for _, t := range p.targets {
		if t.known {
			next = earlier(next, earlier(t.next, p.tally.next[t.partition]))
		}
	}
	return next
}

// look asks, if all agents are in the scope, which partitions have something due: cheaply, as most often none has.
func (p *pull) look(ctx context.Context) error {
	if p.scope.Agents != nil {
		return nil
	}
	requests := make([]ClaimRequest, len(p.targets))
	kinds := p.s.Kinds()
	for i, t := range p.targets {
		requests[i] = ClaimRequest{Partition: t.partition, Kinds: kinds}
	}
	claims, err := p.s.store.Claim(ctx, requests)
	if err != nil {
		return err
	}
	for i, t := range p.targets {
		p.s.observe(claims[i].Now)
		t.next, t.known = earlier(claims[i].NextDue, claims[i].NextLease), true
	}
	return nil
}
