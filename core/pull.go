package core

import (
	"context"
	"crypto/rand"
	"log/slog"
	"math"
	mathrand "math/rand/v2"
	"sync"
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
	tally   tally
	open    sync.WaitGroup // runs that are not settled, released or given up
	settler settler
	heart   heart
}

// target is a partition that the pull takes tasks from.
type target struct {
	partition int
	agents    []string // nil for all
	next      Millis   // when it is due next
	known     bool     // whether next is known
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
			t = &target{partition: i, known: true, next: 1} // named agents are worth a claim at once
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
	err := p.look(p.claiming)
	for err == nil {
		var more bool
		if more, err = p.round(); !more {
			break
		}
	}
	if p.scope.Idle != nil && p.claiming.Err() == nil {
		p.scope.Idle(p.next().Time())
	}
	p.open.Wait()
	p.heart.stop()
	if p.claiming.Err() != nil {
		err = nil // the end was asked for, whatever it cut off
	}
	if err == nil && (p.claimed || p.claiming.Err() != nil) && p.scope.Agents == nil && p.ctx.Err() == nil {
		p.tally.forget()
		err = p.look(p.ctx)
	}
	return p.finish(err)
}

func (p *pull) runTick(agent string, claimed []Claimed) (Report, error) {
	n := 0
	p.heart.holdAll(claimed)
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
	r.More = next != 0 && next <= p.s.storeNow()
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
	kinds := p.s.handled()
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

// round claims once from the partitions that have something due, and starts what it got. It reports whether there may
// be more.
func (p *pull) round() (bool, error) {
	due := p.due()
	if len(due) == 0 || p.left == 0 {
		return false, nil
	}
	n := p.s.slots.take(p.claiming, min(p.left, len(due)*MaxClaim))
	if n == 0 {
		return false, nil
	}
	if due = p.due(); len(due) == 0 { // it took a while
		p.s.slots.give(n)
		return true, nil
	}
	requests := p.requests(due, n)
	lease, sent := requests[0].Lease, p.s.config.Clock.Now()
	p.claimed = true
	ctx, cancel := p.call()
	claims, err := p.s.store.Claim(ctx, requests)
	cancel()
	if err != nil {
		p.s.slots.give(n)
		return false, err
	}
	for i := range claims {
		n -= len(claims[i].Tasks)
	}
	p.s.slots.give(max(n, 0))
	for i := range claims {
		p.took(due[i], &claims[i], sent.Add(lease), lease)
	}
	return true, nil
}

// longestCall bounds one claim: a claim that is under way when the pull has to end is not cut off, as its tasks would
// stay under lease; they are released instead.
const longestCall = 5 * time.Second

func (p *pull) call() (context.Context, context.CancelFunc) {
	limit := longestCall
	if !p.end.IsZero() {
		limit = min(limit, max(p.end.Sub(p.s.config.Clock.Now()), 0)+p.s.config.Margin/2)
	}
	return context.WithTimeout(context.WithoutCancel(p.ctx), limit)
}

// due are the targets that have something due, in an order that favours none.
func (p *pull) due() []*target {
	now := p.s.storeNow()
	var due []*target
	p.tally.mu.Lock()
	for _, t := range p.targets {
		if next := earlier(t.next, p.tally.next[t.partition]); t.known && !t.spent && next != 0 && next <= now {
			due = append(due, t)
		}
	}
	p.tally.mu.Unlock()
	if len(due) > 1 {
		first := mathrand.IntN(len(due)) //nolint:gosec // fairness, not a secret
		due = append(due[first:], due[:first]...)
	}
	return due
}

// smallestShare is how few tasks a partition is asked for while others have work too: asking few partitions for many
// tasks each costs Redis less than asking all of them for a few.
const smallestShare = 16

// requests asks n tasks of as many targets as get a fair share, an equal one from each.
func (p *pull) requests(due []*target, n int) []ClaimRequest {
	kinds, leave, lease := p.kinds()
	due = due[:min(len(due), max(n/smallestShare, (n+MaxClaim-1)/MaxClaim))]
	requests := make([]ClaimRequest, len(due))
	for i, t := range due {
		share := min(n/(len(due)-i), MaxClaim)
		n -= share
		requests[i] = ClaimRequest{
			Partition: t.partition, Nonce: rand.Text()[:NonceLen], Agents: t.agents, Kinds: kinds, Leave: leave,
			Limit: share, PerAgent: p.scope.PerAgent, Lease: lease,
		}
	}
	return requests
}

// kinds are the kinds to claim, those to leave because their longest run would not fit into what is left of the time,
// and the shortest of their leases: the first heartbeat gives each claim the one that its tasks have.
func (p *pull) kinds() (take, leave []string, lease time.Duration) {
	left := time.Duration(math.MaxInt64)
	if !p.end.IsZero() {
		left = p.end.Sub(p.s.config.Clock.Now())
	}
	for _, kind := range p.s.handled() {
		if own := p.s.kind(kind).Lease; lease == 0 || own < lease {
			lease = own
		}
		p.s.mu.RLock()
		longest := p.s.longest[kind]
		p.s.mu.RUnlock()
		if longest > left {
			leave = append(leave, kind)
		} else {
			take = append(take, kind)
		}
	}
	if lease == 0 {
		lease = p.s.config.Default.Lease
	}
	return take, leave, lease
}

// took starts what a claim brought.
func (p *pull) took(t *target, c *Claim, deadline time.Time, lease time.Duration) {
	p.s.observe(c.Now)
	p.tally.mu.Lock()
	p.tally.report.Parked += c.Parked
	p.tally.report.Recovered += c.Recovered
	delete(p.tally.next, t.partition)
	t.next = c.NextDue
	if t.agents == nil || c.NextLease != 0 && c.NextLease <= c.Now { // expired leases may hold tasks of these agents
		t.next = earlier(t.next, c.NextLease)
	}
	// Due tasks that are neither taken nor parked are of kinds that are left: asking again would not help.
	t.spent = len(c.Tasks) == 0 && c.Parked == 0 && c.Recovered == 0
	p.tally.mu.Unlock()
	if len(c.Tasks) == 0 {
		return
	}
	p.left -= len(c.Tasks)
	p.heart.hold(c, deadline, lease)
	for start := 0; start < len(c.Tasks); {
		end := start + 1
		for end < len(c.Tasks) && c.Tasks[end].Agent == c.Tasks[start].Agent {
			end++
		}
		if agent := c.Tasks[start].Agent; p.asked == nil || p.asked[agent] {
			p.tick(agent, c.Tasks[start:end])
		} else {
			p.refuse(agent, c.Tasks[start:end])
		}
		start = end
	}
}

// refuse gives back tasks of an agent that was not asked for: a tenant's tasks never run in another's name, whatever the
// store says.
func (p *pull) refuse(agent string, tasks []Claimed) {
	p.s.config.Logger.ErrorContext(p.ctx, "the store returned tasks of an agent that was not asked for", slog.String("agent", agent))
	p.s.slots.give(len(tasks))
	p.releaseAll(tasks)
}

// tick runs tasks of one agent, for each of which a slot is held. They start in order and run side by side.
func (p *pull) tick(agent string, tasks []Claimed) {
	p.tally.mu.Lock()
	p.tally.agents[agent] = struct{}{}
	p.tally.mu.Unlock()
	batches := map[string][]*run{}
	var order []*handler
	for i := range tasks {
		r, h := p.prepare(&tasks[i])
		if r == nil {
			continue
		}
		if !h.batch {
			p.open.Add(1)
			p.start(h, []*run{r})
			continue
		}
		if batches[h.kind] == nil {
			order = append(order, h)
		}
		batches[h.kind] = append(batches[h.kind], r)
	}
	for _, h := range order {
		p.open.Add(len(batches[h.kind]))
		p.start(h, batches[h.kind])
	}
}

// releaseAll gives back tasks that were never started and hold no slot.
func (p *pull) releaseAll(tasks []Claimed) {
	for i := range tasks {
		p.open.Add(1)
		r := &run{claimed: &tasks[i], pull: p}
		r.describe()
		p.settler.add(r, release(&tasks[i]), verdict{released: true})
	}
}
