package world

// What the auditor makes of looks, claims and heartbeats.

import (
	"bytes"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// claimAudit is the part of the auditor that looks at looks and claims.
type claimAudit struct{ *auditor }

// claimed is called with claims that reached the store.
func (a claimAudit) claimed(p *process, requests []store.ClaimRequest, claims []store.Claim) {
	for i := range requests {
		r, c := &requests[i], &claims[i]
		if c.Err != nil {
			continue
		}
		if old := a.model.nonces[r.Nonce]; old != nil {
			a.repeated(old, c)
			continue
		}
		for _, kind := range r.Leave {
			a.must(leaveIsEarned, kind == model.KindCallback || kind == tellKind || kind == watchKind || p.completed[kind] || p.late(), "%s leaves %s", p.name, kind)
		}
		a.leasesOver(r)
		a.newClaim(p, r, c)
		a.model.each(func(w *watcher) {
			if w.claimed != nil {
				w.claimed(c)
			}
		})
	}
}

// leasesOver notes that the store has looked for leases that are over.
// Any claim, also one that takes nothing, may put back what it finds expired: from here on the store
// may show such tasks as waiting.
// The first claim that finds a lease over gives notice, as its holder may only now be able to extend it.
func (a claimAudit) leasesOver(r *store.ClaimRequest) {
	now := a.now()
	for _, t := range a.model.tasks {
		if t.phase != claimed || t.lease.end > now || a.model.partition(t.agent) != r.Partition {
			continue
		}
		if t.lease.noticed || r.Notice == 0 {
			t.lease.over = true
		} else {
			t.lease.noticed, t.lease.end = true, now.Add(noticeOf(r.Notice, t.lease.end.Sub(max(t.lease.from, t.lease.back))))
		}
	}
}

// noticeOf is what the holder of a lease is given that has lasted for so long: half of that at most, and half a second at least.
func noticeOf(given, lasted time.Duration) time.Duration {
	return min(given, max(500*time.Millisecond, (lasted/2).Truncate(time.Millisecond)))
}

// repeated is a claim with a nonce that was seen before.
// It may have fewer tasks than the first answer: those that were settled, deleted or taken back since
// may be missing. It may never have others, as the process would then run tasks that it holds no
// lease on.
func (a claimAudit) repeated(old *claimRecord, c *store.Claim) {
	a.must(nonceRepeats, c.Fence == old.fence, "fence %s for a claim that got %s", a.w.fence(c.Fence), a.w.fence(old.fence))
	got := map[ref]bool{}
	for i := range c.Tasks {
		r := ref{c.Tasks[i].Agent, c.Tasks[i].ID}
		got[r] = true
		a.must(nonceRepeats, slices.Contains(old.refs, r), "%s was no part of the claim", r)
	}
	for _, r := range old.refs {
		t := a.model.live(r)
		if t == nil || t.phase != claimed || t.lease.fence != old.fence || t.lease.over {
			continue
		}
		if t.renewed != nil { // its run has not begun
			if !got[r] {
				a.model.renew(t)
			}
			continue
		}
		a.must(nonceRepeats, got[r], "%s is missing", r)
	}
}

// A claim that took nothing has no fence, and its nonce is not remembered: the same request may find
// something later. The tasks that it left are still compared.
func (a claimAudit) newClaim(p *process, r *store.ClaimRequest, c *store.Claim) {
	if len(c.Tasks) == 0 {
		a.leftOver(p, r, c, nil)
		return
	}
	m := a.model
	// A claim that was sent before the process was asked to end may still arrive after that.
	a.must(noClaimStopped, !p.stopping || a.w.making.sent <= p.stopped, "%s was asked to end", p.name)
	a.must(fencesGrow, c.Fence > m.fences[r.Partition], "%s after %s", a.w.fence(c.Fence), a.w.fence(m.fences[r.Partition]))
	a.must(fencesGrowForAll, c.Fence > r.Fence, "%s, and %s has seen %s", a.w.fence(c.Fence), p.name, a.w.fence(r.Fence))
	a.must(fenceUnused, m.claims[claimName{r.Partition, c.Fence}] == nil, "%s", a.w.fence(c.Fence))
	m.fences[r.Partition] = max(m.fences[r.Partition], c.Fence)
	record := &claimRecord{fence: c.Fence, holder: p, end: a.now().Add(leaseOf(r, c)), over: map[ref]time.Duration{}}
	m.claims[claimName{r.Partition, c.Fence}], m.nonces[r.Nonce] = record, record
	due := dueIn(c)
	a.must(claimLimit, due <= r.Limit && len(c.Tasks)-due <= r.AheadMost, "%d tasks, %d of them due, and %d and %d were asked for", len(c.Tasks), due, r.Limit, r.AheadMost)
	ofAgent, ofKind := map[string]int{}, map[string]int{}
	taken := map[ref]bool{}
	for i := range c.Tasks {
		t := &c.Tasks[i]
		ofAgent[t.Agent]++
		ofKind[t.Kind]++
		name := ref{t.Agent, t.ID}
		a.must(claimOnce, !taken[name], "%s", name)
		taken[name] = true
		a.fits(p, r, t)
	}
	for agent, n := range ofAgent {
		a.must(claimPerAgent, r.PerAgent == 0 || n <= r.PerAgent, "%d tasks of %s", n, agent)
		a.must(serialAgents, !r.Serial || n == 1, "%d tasks of %s", n, agent)
	}
	for kind, n := range ofKind {
		most, bounded := r.Most[kind]
		a.must(claimMost, !bounded || n <= most, "%d tasks of %s", n, kind)
	}
	// These compare with the model as it was in front of the claim, so that they come before take
	// changes it.
	a.inOrder(c)
	a.overtaken(r, c, taken)
	a.leftOver(p, r, c, taken)
	m.each(func(w *watcher) {
		if w.chose != nil {
			w.chose(r, c)
		}
	})
	for i := range c.Tasks {
		record.refs = append(record.refs, ref{c.Tasks[i].Agent, c.Tasks[i].ID})
		a.take(p, r, c, &c.Tasks[i])
	}
}

// fits holds what a claimed task has to do with who claims it.
func (a claimAudit) fits(p *process, r *store.ClaimRequest, t *store.Claimed) {
	name := ref{t.Agent, t.ID}
	a.must(ownKinds, slices.Contains(r.Kinds, t.Kind) && p.runs(t.Kind), "%s of the kind %s", name, t.Kind)
	a.must(ownAgents, r.Agents == nil || slices.Contains(r.Agents, t.Agent), "%s", name)
	a.must(ownPartition, a.model.partition(t.Agent) == r.Partition, "%s in %d", name, r.Partition)
	a.must(claimUrgent, !r.Urgent || t.Level == core.LevelHigh, "%s of level %d", name, t.Level)
	if !r.Serial {
		return
	}
	for _, o := range a.model.tasks {
		if o.agent == t.Agent && o.phase == claimed && o.lease.serial && !o.lease.over {
			a.must(serialAgents, false, "%s, and %s runs", name, o.ref)
		}
	}
}

// take claims a task in the model, and checks the promises about that.
// The checks follow the order of causes: a task that does not exist cannot be early, and one
// that another process holds has no due time to compare. The first one that fails names the breach.
func (a claimAudit) take(p *process, r *store.ClaimRequest, claim *store.Claim, c *store.Claimed) {
	m, now := a.model, a.now()
	name := ref{c.Agent, c.ID}
	t := m.live(name)
	if t == nil {
		old := m.tasks[name]
		switch {
		case old != nil && old.status == core.StatusCancelled:
			a.must(cancelIsFinal, false, "%s was cancelled at %s", name, ms(old.at))
		case old != nil:
			a.must(endsAreFinal, false, "%s was %s at %s", name, old.status, ms(old.at))
		default:
			a.must(claimExists, false, "%s", name)
		}
		return
	}
	a.must(claimExists, true, "")
	a.must(endsAreFinal, true, "")
	a.must(cancelIsFinal, true, "")
	if t.phase == claimed {
		if !a.must(oneLease, t.lease.end <= now, "%s is held under %s until %s", name, a.w.fence(t.lease.fence), ms(t.lease.end)) {
			return
		}
		a.must(noticeIsGiven, t.lease.noticed, "%s was held under %s until %s", name, a.w.fence(t.lease.fence), ms(t.lease.end))
		m.crash(t)
	}
	a.must(oneLease, true, "")
	a.must(noticeIsGiven, true, "")
	soon := now.Add(r.Ahead)
	a.must(neverEarly, c.Due <= soon && t.due <= soon, "%s is due at %s, it was said at %s, and it is %s", name, ms(c.Due), ms(t.due), ms(now))
	a.must(dueIsKept, c.Due == t.due, "%s is due at %s, not at %s", name, ms(c.Due), ms(t.due))
	a.must(pausedIsKept, !m.keeps(t, now), "%s is under %v", name, m.held(t, now))
	a.must(cancelledIsTold, c.Cancelled == t.ending, "%s: told %v, and it was %v", name, c.Cancelled, t.ending)
	a.must(claimIsAsStored, bytes.Equal(c.Body, t.body) && c.Kind == t.kind && c.Level == t.level, "%s is number %d, not %d", name, numberOf(c.Body), t.number)
	a.must(stateIsKept, bytes.Equal(c.State, t.state), "%s has the state %x, not %x", name, c.State, t.state)
	a.must(crashIsCounted, c.Crashes == t.crashes, "%s has crashed %d times, not %d", name, c.Crashes, t.crashes)
	a.must(submittedIsKept, c.Submitted == t.submitted, "%s was submitted at %s, not %s", name, ms(c.Submitted), ms(t.submitted))
	a.inTime(t)
	t.phase, t.parked, t.since = claimed, false, true
	t.lease = lease{fence: c.Fence, index: c.Index, due: c.Due, from: now, end: now.Add(leaseOf(r, claim)), holder: p, serial: r.Serial, crashes: c.Crashes, ends: t.ending, key: t.key}
	a.limits.started(t)
	a.model.each(func(w *watcher) {
		if w.took != nil {
			w.took(t, c)
		}
	})
	// An order to run in spite of a pause is used up by one run, and comes back if that is given back
	// or lost.
	if t.byHand != 0 {
		t.byHand, t.inHand = 0, t.byHand
	}
	if a.w.story != nil {
		a.w.trace("%s  claims %s, due at %s, under %s until %s", p.name, name, ms(c.Due), a.w.fence(c.Fence), ms(t.lease.end))
	}
}

// leaseOf is how long a claim holds a task.
func leaseOf(r *store.ClaimRequest, c *store.Claim) time.Duration {
	lease := r.Lease
	if own, has := r.Leases[c.Tasks[0].Kind]; has {
		lease = own
	}
	if dueIn(c) < len(c.Tasks) {
		return min(lease, r.AheadLease)
	}
	return lease
}

// dueIn is how many tasks of a claim were due; the others come ahead of their time.
func dueIn(c *store.Claim) (n int) {
	for i := range c.Tasks {
		if c.Tasks[i].Due <= c.Now {
			n++
		}
	}
	return n
}

// inTime asserts that no due task waits in a kind world.
// The time counts from when the last obstacle went: the due time, the end of a run or of a pause, or
// three leases after the world became kind, by when the claims of dead processes are free.
func (a claimAudit) inTime(t *task) {
	if !a.w.kind || a.w.plan.Settings.Serial == core.SerialAgent || a.model.limited(t) || t.agent == crowdAgent { // then others come first
		return
	}
	now, since := a.now(), max(t.due, t.waits, a.model.freed, moment.Millis(draw.Begin.Add(a.w.kindAt).UnixMilli()).Add(3*a.w.plan.Settings.Lease))
	for _, target := range t.targets() {
		if h, ok := a.model.holds[target]; ok && !h.inForce(now) {
			since = max(since, h.until)
		}
	}
	a.must(nobodyWaits, now.Sub(since) <= soon, "%s was due at %s, and is claimed %s later", t.ref, ms(t.due), now.Sub(since))
}

// rank is the order of the tasks of an agent, but for the submits of one millisecond.
// What has been due for RaiseAfter counts as level 1, so that a busy agent cannot starve its own low
// tasks.
func rank(level store.Level, due, submitted, now moment.Millis) [3]int64 {
	if due <= now.Add(-store.RaiseAfter) {
		level = core.LevelHigh
	}
	return [3]int64{int64(level), int64(due), int64(submitted)}
}

// inOrder checks the order of the tasks that were claimed of each agent.
// Only tasks of one agent are compared: agents take turns, and their order is no promise of
// this kind.
func (a claimAudit) inOrder(c *store.Claim) {
	last := map[string][3]int64{}
	for i := range c.Tasks {
		t := &c.Tasks[i]
		if known := a.model.live(ref{t.Agent, t.ID}); t.Lined || known != nil && a.model.limited(known) {
			continue
		}
		mine := rank(t.Level, t.Due, t.Submitted, c.Now)
		before, ok := last[t.Agent]
		a.must(inOrderOfAgent, !ok || slices.Compare(before[:], mine[:]) <= 0, "%s/%s comes behind one of %v", t.Agent, t.ID, before)
		last[t.Agent] = mine
	}
}

// mayTake reports whether a claim may take a task that waits, as far as the model knows.
// It is cautious. It excludes a task that may be parked, that is to be ended or whose kind is bounded,
// as the store may have a good reason to skip it; for the others it has none.
func (a claimAudit) mayTake(r *store.ClaimRequest, t *task) bool {
	_, bounded := r.Most[t.kind]
	// Suspects are bounded, and tasks that are held for another time come with another claim.
	bounded = bounded || t.crashes > 0 && r.Suspects != nil || len(r.Leases) > 0
	// A search that continues has already passed the place of this task: it begins again soon.
	bounded = bounded || t.due <= r.After
	return t.phase == waiting && t.due <= a.now() && a.model.partition(t.agent) == r.Partition && !t.parked && !t.ending && !bounded && !a.model.limited(t) &&
		slices.Contains(r.Kinds, t.kind) && (r.Agents == nil || slices.Contains(r.Agents, t.agent)) && !a.model.keeps(t, a.now()) &&
		(!r.Urgent || t.level == core.LevelHigh)
}

// overtaken looks for tasks that should have been claimed before others of their agent.
func (a claimAudit) overtaken(r *store.ClaimRequest, c *store.Claim, taken map[ref]bool) {
	for _, t := range a.model.tasks {
		if !a.mayTake(r, t) || taken[t.ref] {
			continue
		}
		mine := rank(t.level, t.due, t.submitted, c.Now)
		for i := range c.Tasks {
			o := &c.Tasks[i]
			if known := a.model.live(ref{o.Agent, o.ID}); o.Agent == t.agent && !o.Lined && (known == nil || !a.model.limited(known)) {
				theirs := rank(o.Level, o.Due, o.Submitted, c.Now)
				a.must(noOvertaking, slices.Compare(theirs[:], mine[:]) <= 0 || o.Cancelled, "%s is left, and %s is claimed", t.ref, o.ID)
			}
		}
	}
}

// leftOver looks for tasks that a claim has left although it had room, and notes what it may have put aside.
func (a claimAudit) leftOver(_ *process, r *store.ClaimRequest, c *store.Claim, taken map[ref]bool) {
	now := a.now()
	// A picky claim, one that is bounded per agent, and one that had to park or recover tasks may stop
	// early: that it has room left proves nothing.
	picky := r.Urgent || r.Serial || len(r.Leave) > 0 || len(r.Most) > 0
	// An agent whose due task has just gone may cost a turn of a claim that has few.
	room := dueIn(c) < r.Limit && r.Limit > len(everybody) && c.Parked == 0 && c.Recovered == 0 && !picky && r.PerAgent == 0 && c.Passed == 0
	for _, t := range a.model.sorted() {
		if t.phase != waiting || taken[t.ref] || a.model.partition(t.agent) != r.Partition {
			continue
		}
		if room && a.mayTake(r, t) {
			a.must(workConserving, false, "%s has been due since %s", t.ref, ms(t.due))
		}
		// Whether the claim came as far as this task is not known. From here on the model demands
		// nothing of it that a parked task could not keep.
		if t.due <= now && (len(a.model.held(t, now)) > 0 || !slices.Contains(r.Kinds, t.kind)) {
			t.parked = true
		}
	}
	if room {
		a.must(workConserving, true, "")
	}
	a.urgentInTime(r, c)
}

// looked is called with looks that reached the store.
// An early answer costs a claim in vain and is allowed; a late one would let a task wait, and is not.
// While everything is paused a look has nothing to say.
func (a claimAudit) looked(requests []store.LookRequest, looks []store.Look) {
	now := a.now()
	for i := range requests {
		r, next := &requests[i], looks[i].NextDue
		if looks[i].Err != nil || a.model.heldAll(now) {
			continue
		}
		if lease := looks[i].NextLease; lease != 0 && lease <= now { // a task that it frees may be theirs
			next = lease
		}
		for _, t := range a.model.tasks {
			if a.model.partition(t.agent) != r.Partition || r.Agents != nil && !slices.Contains(r.Agents, t.agent) {
				continue
			}
			a.lookFor(r, t, next, now)
		}
	}
}

// longestNotice is the longest that a claim gives.
const longestNotice = 5 * time.Second

func (a claimAudit) lookFor(r *store.LookRequest, t *task, next, now moment.Millis) {
	switch {
	case t.phase == claimed && !t.lease.over:
		if r.Agents == nil {
			end := t.lease.end
			if t.lease.noticed { // a claim gives notice of some leases only, and the next ones of the others
				end = max(end, now.Add(longestNotice))
			}
			a.must(lookSeesLeases, next != 0 && next <= max(end, now), "the lease of %s ends at %s, and the look says %s", t.ref, ms(t.lease.end), ms(next))
		}
	case t.phase == waiting && slices.Contains(r.Kinds, t.kind) && !a.model.keeps(t, now) && !a.limits.serialWaits(t) && !a.model.limited(t):
		a.must(lookIsNotLate, next != 0 && next <= max(t.due, now), "%s is due at %s, and the look says %s", t.ref, ms(t.due), ms(next))
	}
}

// knownBy is when a process must know that a run is over whose end was stored: while it has other runs, it asks again and again whose
// answers are lost.
const knownBy = 30 * time.Second

// soon is how long a kind world may take for what is due.
const soon = 5 * time.Second
