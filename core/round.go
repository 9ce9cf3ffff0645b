package core

import (
	"context"
	"crypto/rand"
	"log/slog"
	"math"
	mathrand "math/rand/v2"
	"time"
)

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
	p.tally.forget(requests) // what is known by now the claim sees too; what is learned while it is under way is kept
	ctx, cancel := p.call()
	claims, err := p.s.store.Claim(ctx, requests)
	cancel()
	if err != nil {
		p.s.slots.give(n)
		return false, err
	}
	before := n
	for i := range claims {
		n -= len(claims[i].Tasks)
		p.claimed = p.claimed || len(claims[i].Tasks)+claims[i].Recovered > 0
	}
	p.dry = n == before
	p.s.slots.give(max(n, 0))
	for i := range claims {
		if claims[i].Err != nil { // the others have claimed
			due[i].spent, err = true, claims[i].Err
			continue
		}
		p.took(due[i], &claims[i], sent.Add(lease), lease)
	}
	if err != nil && p.failed == nil {
		p.failed = err
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
		next := earlier(t.next, p.tally.next[t.partition])
		if !t.spent && (t.fresh || t.known && next != 0 && next <= now) {
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
	few := max(n/smallestShare, (n+MaxClaim-1)/MaxClaim)
	if p.dry { // the ones asked before had nothing for us: the rest is asked at once
		few = n
	}
	due = due[:min(len(due), few)]
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
	for _, kind := range p.s.Kinds() {
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
	t.next, t.known, t.fresh = c.NextDue, true, false
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
		agent := c.Tasks[start].Agent
		p.enter(agent, end-start)
		if p.asked == nil || p.asked[agent] {
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

// tick runs tasks of one agent, which are entered and for each of which a slot is held. They start in order and run side by
// side.
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
			p.start(h, []*run{r})
			continue
		}
		if batches[h.kind] == nil {
			order = append(order, h)
		}
		batches[h.kind] = append(batches[h.kind], r)
	}
	for _, h := range order {
		p.start(h, batches[h.kind])
	}
}

// releaseAll gives back tasks that are entered, were never started and hold no slot.
func (p *pull) releaseAll(tasks []Claimed) {
	for i := range tasks {
		r := &run{claimed: &tasks[i], pull: p}
		r.describe()
		p.settler.add(r, release(&tasks[i]), verdict{released: true})
	}
}
