package core

// The rounds of a pull: claim, start what was claimed, and decide whether there is more to have.

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/decide"
	"github.com/seed-6f6f2c11/duly/core/internal/horizon"
	"github.com/seed-6f6f2c11/duly/core/internal/leases"
	"github.com/seed-6f6f2c11/duly/core/internal/notices"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// rounds claims and starts tasks until none is left for now: nothing is due, or nothing that this pull
// takes.
func (p *pull) rounds() error {
	defer p.batches.startAll()
	for more := true; more; {
		var err error
		if more, err = p.round(); err != nil {
			return err
		}
	}
	return nil
}

// round fills free slots once. It reports whether more may be left to do. It waits for a slot first and asks which tasks have
// waited longest then: that includes everything that fell due meanwhile, in any partition.
func (p *pull) round() (bool, error) {
	// The budget counts claims, not ends: claimed tasks are going to run.
	if p.left == 0 || p.over() || p.gaveBack.Load() {
		return false, nil
	}
	age := p.maxAge() // read before this round takes the free slots
	if err := p.refresh(age); err != nil {
		return false, err
	}
	due, again := p.outlook.Ready(p.slots.Newest())
	switch {
	case len(due) == 0 && again.IsZero():
		return p.waitsForDue() || p.awaitsDue() || p.batches.gathers() || p.awaitsNotice(), nil
	case len(due) == 0: // due tasks wait for slots
		p.slots.Await(p.claiming, p.slots.Newest(), again)
		return true, nil
	}
	p.paced()
	if p.slots.Full() {
		p.Announce(base.AnnounceEvery, base.AnnounceFor) // so that callers can learn why a task waits
	}
	g := p.slots.Take(p.claiming, min(p.left, len(due)*store.MaxClaim), p.outlook.UrgentAt(p.scope.Series.horizon(), due, p.full))
	if g.Err != nil {
		p.Announce(base.AnnounceEvery, base.LeftTold) // that it claims nothing is to be visible to others
	}
	if g.N == 0 {
		return false, g.Err
	}
	p.full = g.Urgent
	// Looked up again with the slots in hand: the wait for them may have been long, and others may have
	// taken the due tasks.
	err := p.refresh(age)
	if err == nil {
		due, _ = p.outlook.Ready(g.News)
		if g.Urgent {
			due = horizon.UrgentDue(p.scope.Series.horizon(), due, p.s.config.Clock.Now())
		}
	}
	// Nothing to fill them with: the slots go back at once, as another pull may be waiting for them.
	if err != nil || len(due) == 0 {
		p.slots.Keep(g, nil)
		return err == nil, err
	}
	p.alarm.Guard(p.ctx)
	return true, p.claim(due, g)
}

// longestCall bounds a claim.
const longestCall = 5 * time.Second

// claim asks targets for as many tasks as the grant has slots, and starts what it gets.
func (p *pull) claim(due []*horizon.Target, g slots.Grant) error {
	// The leases count from before the call: the store starts them later, so this process takes them
	// for over too early rather than too late.
	all := len(due)
	requests, due := p.requests(due, g)
	sent := p.s.config.Clock.Now()
	// Before the call, not after it: its answer may not include
	// settlements that arrive while it is under way.
	p.outlook.Asking(due)
	if p.scope.Series != nil {
		p.scope.Series.known.Begins(sent)
	}
	ctx, cancel := p.Call(p.ctx, longestCall)
	claims, err := p.claimWith(ctx, requests)
	received := p.s.config.Clock.Now()
	cancel()
	if err != nil {
		p.slots.Keep(g, nil)
		return p.outlook.AllAway(p.ctx, due, err)
	}
	noteAhead(requests, claims)
	tasks := dueOf(&claims[0]) // nearly always all there are
	more := len(due) < all
	for i := range claims {
		if i > 0 {
			tasks = append(slices.Clip(tasks), dueOf(&claims[i])...)
		}
		p.claimed = p.claimed || len(claims[i].Tasks)+claims[i].Recovered > 0
		more = more || len(dueOf(&claims[i])) == requests[i].Limit
	}
	if p.scope.Series != nil && more {
		p.scope.Series.known.Filled()
	}
	p.dry = len(tasks) == 0
	p.s.base.Observe(base.LatestOf(claims, func(c *store.Claim) *store.Look { return &c.Look }))
	// The slots are settled for the whole answer before any run starts, as a run that ends at once
	// gives its slot back.
	p.slots.Keep(g, tasks)
	for i := range claims {
		due[i].ObserveClock(&claims[i], sent, received)
		if c := &claims[i]; c.Err == nil && !c.Unstamped && c.Noticed > 0 {
			p.noticed = sent.Add(requests[i].Notice)
		}
		answer := horizon.Answer{Request: &requests[i], Claim: &claims[i], Sent: sent, Grant: g, Slots: p.slots, Patience: p.SortPatience()}
		p.outlook.Observe(p.ctx, due[i], &answer)
		p.took(due[i], &claims[i], sent)
	}
	p.batches.startUnwaited() // after all of the answer, each task of which had a slot
	return p.s.declared.Check(p.ctx, claims)
}

// claimWith claims. In a series the outcomes that wait for others travel with the claim, from any of its pulls.
func (p *pull) claimWith(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	batch := p.settler.takeForClaim()
	if len(batch) == 0 {
		return p.s.store.Claim(ctx, requests)
	}
	runs := settlements(batch)
	if q := p.settler.series; q != nil {
		q.known.Sends()
	}
	settled, claims, err := p.s.store.Turn(ctx, runs, requests)
	// Before anything that was claimed starts: it may be the next run of what has just been settled.
	p.settler.settledWithClaim(batch, runs, settled, err)
	return claims, err
}

// smallestShare is how few tasks a partition is asked for while others have work too and claims follow one another
// closely: asking few partitions for many tasks each costs Redis less than asking all of them for a few, and the others,
// which have waited longest then, have the next turn. If slots free up slowly or claims are paced, every due partition is asked in
// one claim.
const smallestShare = 16

// requests asks the first of the targets, which have waited longest, for an equal share each of the tasks that a grant
// has slots for. It returns the targets that are asked.
func (p *pull) requests(due []*horizon.Target, g slots.Grant) ([]store.ClaimRequest, []*horizon.Target) {
	take, leave := p.kinds()
	lease, others, notice := p.leases(take)
	n, few := g.N, max(g.N/smallestShare, (g.N+store.MaxClaim-1)/store.MaxClaim)
	now, storeNow := p.s.config.Clock.Now(), p.s.base.StoreNow()
	// Dry: the ones asked before had nothing for us.
	if p.dry || g.Urgent || p.outlook.InTurns(due) || now.Sub(p.lastClaim) > lookEvery || p.scope.Series != nil && !p.scope.Series.known.Hurries() {
		few = n
	}
	p.lastClaim = now
	due = due[:min(len(due), few)]
	passing := g.Passing(leave)
	requests := make([]store.ClaimRequest, len(due))
	ahead := p.scope.Series.aheadFor(p)
	p.outlook.Each(due, func(i int, t *horizon.Target) {
		// The remainder goes to the later ones, so that every slot is offered to
		// a partition.
		share := min(n/(len(due)-i), store.MaxClaim)
		n -= share
		requests[i] = store.ClaimRequest{
			Partition: t.Partition, Nonce: nonceOf(p), Agents: t.AgentsNow(storeNow), Kinds: take,
			// guard: suspects
			Most: g.Share(i, len(due), p.turn), Leave: leave, Urgent: g.Urgent, Serial: p.Serial(), Limit: share, PerAgent: p.scope.PerAgent, Lease: lease, Leases: others, Notice: notice, Suspects: g.SuspectsFor(p.turn+i, len(due)),
			MaxCrashes: p.s.config.MaxCrashes,
			Fence:      p.s.partitions.Fences.Last(t.Partition), Tell: p.s.base.HasListeners(), Stamp: p.s.declared.Stamp(), Expect: p.s.expected,
		}
		if ahead > 0 && !g.Urgent {
			requests[i].Ahead, requests[i].AheadMost, requests[i].AheadLease = ahead, min(aheadOfSlot*share, store.MaxClaim), leases.Stored(aheadLease)
		}
		after := t.After(p.scope.Series.horizon(), &g, passing, now)
		requests[i].After, requests[i].AfterName = after.Since, after.Name
	})
	p.turn++
	return requests, due
}

// Serial reports whether runs of an agent come one after the other.
func (p *pull) Serial() bool { return p.s.config.Serial == SerialAgent }

// kinds are the kinds to claim, and those to leave because a run would usually not fit into the remaining time.
func (p *pull) kinds() (take, leave []string) {
	now := p.s.config.Clock.Now()
	for _, kind := range kindsOf(p) {
		if p.fits(kind, now) {
			take = append(take, kind)
		} else {
			leave = append(leave, kind)
		}
	}
	return take, leave
}

// leases are how long claims hold tasks of some kinds: as long as the lease of the first, except for kinds that have another lease. The
// notice of leases that are over is that of the shortest.
func (p *pull) leases(kinds []string) (lease time.Duration, others map[string]time.Duration, notice time.Duration) {
	whole := p.s.config.Default.Lease
	if len(kinds) > 0 {
		whole = leaseFor(p, kinds[0])
	}
	shortest := whole
	for _, kind := range kinds {
		own := leaseFor(p, kind)
		if shortest = min(shortest, own); own != whole {
			if others == nil {
				others = map[string]time.Duration{}
			}
			others[kind] = leases.Stored(own)
		}
	}
	// guard: notice-given
	return leases.Stored(whole), others, leases.Notice(shortest)
}

// took starts the tasks of a claim.
func (p *pull) took(t *horizon.Target, c *store.Claim, sent time.Time) {
	p.tally.add(func(r *Report) {
		r.Parked += c.Parked
		r.Recovered += c.Recovered
	})
	notices.Crossed(p.s.base, c.Crossed)
	if c.Parked > 0 && p.s.base.HasListeners() {
		notices.Parked(p.s.base, c)
	}
	if c.Recovered > 0 {
		ctx, cancel := p.Call(p.ctx, base.LongestLook)
		known := p.s.base.Processes(ctx)
		cancel()
		p.s.runCounters.TakenBack(p.ctx, c.From, known)
	}
	if len(c.Tasks) == 0 {
		return
	}
	p.left -= len(c.Tasks)
	// Under the heartbeat before anything starts: a handler could outlast the lease before its first
	// heartbeat.
	lease := leaseFor(p, c.Tasks[0].Kind) // of all of them
	if c.Ahead != 0 && c.Tasks[len(c.Tasks)-1].Due > c.Now {
		lease = min(lease, aheadLease)
	}
	p.heartbeat.Add(c, leases.HeldUntil(sent, lease), lease)
	if q := p.scope.Series; q != nil && c.Ahead != 0 {
		q.known.Brought(len(c.Tasks))
	}
	for agent, tasks := range byAgent(c.Tasks) {
		p.open.Enter(agent, len(tasks))
		if p.outlook.AsksFor(agent, c.Partition) {
			if tasks = p.scope.Series.await(p, c, t, tasks, sent); len(tasks) > 0 {
				p.tick(agent, tasks, delayOf(c))
			}
		} else {
			p.refuse(agent, tasks)
		}
	}
}

// byAgent are the tasks of a claim, agent by agent. Those of an agent are next to each other, and start together: so are they a batch where
// their kind takes batches.
func byAgent(tasks []Claimed) iter.Seq2[string, []Claimed] {
	return func(yield func(string, []Claimed) bool) {
		for start, end := 0, 0; start < len(tasks); start = end {
			for end = start + 1; end < len(tasks) && tasks[end].Agent == tasks[start].Agent; {
				end++
			}
			if !yield(tasks[start].Agent, tasks[start:end]) {
				return
			}
		}
	}
}

// refuse releases tasks of an agent that was not asked for: a tenant's tasks never run in another's name, even if the store
// returns them.
func (p *pull) refuse(agent string, tasks []Claimed) {
	p.s.config.Logger.ErrorContext(p.ctx, "the store returned tasks of an agent that was not asked for", slog.String("agent", agent))
	for i := range tasks {
		p.slots.Give(&tasks[i])
	}
	p.releaseAll(tasks)
}

// tick runs tasks of one agent, which are entered and for each of which a slot is held. They start in order and run side by
// side.
func (p *pull) tick(agent string, tasks []Claimed, waits delay) {
	p.tally.mu.Lock()
	p.tally.agents[agent] = struct{}{}
	p.tally.mu.Unlock()
	var batches map[string][]*run
	var order []*handler
	for i := range tasks {
		r, h := p.prepare(&tasks[i])
		if r == nil {
			continue
		}
		r.waits = waits
		// One that may have ended its last process takes no batch with it.
		if !h.batch || r.claimed.Crashes > 0 {
			r.self[0] = r
			p.start(h, r.self[:])
			continue
		}
		if p.s.base.Kind(h.kind).Batch > 0 {
			p.batches.add(h, r)
			continue
		}
		if batches[h.kind] == nil {
			if batches == nil {
				batches = map[string][]*run{}
			}
			order = append(order, h)
		}
		batches[h.kind] = append(batches[h.kind], r)
	}
	// Batches start last, when all that belongs to them is known, and in the order in which their first
	// tasks came.
	for _, h := range order {
		p.start(h, batches[h.kind])
	}
}

// releaseAll gives back tasks that are entered, were never started and hold no slot.
func (p *pull) releaseAll(tasks []Claimed) {
	for i := range tasks {
		r := &run{claimed: &tasks[i], pull: p}
		// An unreadable body is released unchanged: the process that starts it reports what is wrong with it.
		r.body, _ = codec.DecodeBody(tasks[i].Body)
		r.state, _ = record.DecodeState(tasks[i].State)
		r.describe()
		p.release(r)
	}
}

// release gives a run back that has not begun.
func (p *pull) release(r *run) { giveBack(p, r, true) }

// giveBack gives a run back, as if its task had not been claimed if it has not begun.
func giveBack(p *pull, r *run, unrun bool) {
	r.verdict.Settlement, r.verdict.Released = decide.Release(r.claimed), true
	r.verdict.Settlement.Unrun = unrun
	p.settler.add(r)
}
