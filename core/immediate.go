package core

// At once: tasks of level 1 start in the call that submits them, where the host accepts their runs.

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/leases"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// AtOnce says how tasks start in the call that submits them. Every zero is a good default.
type AtOnce struct {
	// Agents reports whose tasks may start here; those of every agent if nil. It is called by many goroutines.
	Agents func(agent string) bool
	// Alone lets only tasks start that are submitted alone: those of a list come with a pull that follows anyway, as in a daemon.
	Alone bool
	// Grace is how long their handlers may continue once the context is done.
	Grace time.Duration
	// OnDue and OnTick are as those of [Scope].
	OnDue  func(agent string, due time.Time)
	OnTick func(Tick)
	// Done, if set, is called with the report of each run, by the goroutine that it ran in, as for a pull.
	Done func(Report, error)
}

// AtOnce makes Submit start each task of [LevelHigh] that is due now, if this process has its handler and a free
// slot, until ctx is done or end is called; end waits until all that has started has ended, and is stored. One that is submitted alone is
// stored and leased in one step of the store, those of a list in two: if the process dies, it is run elsewhere when its lease has ended. It is stored only, and
// is run by the next pull of any process, where another task of its agent is due before it, where it is paused or behind a limit, where
// no slot is free or where pulls wait for one, and with [SerialAgent]. Handlers that take batches get theirs from pulls alone.
//
// It is for hosts: a daemon calls it while it runs, a function for each request.
func (s *Scheduler) AtOnce(ctx context.Context, o AtOnce) (end func()) {
	h := &immediateHost{s: s, ctx: ctx, AtOnce: o}
	s.atOnce.add(h)
	return h.end
}

// hosts are where tasks may start in the call that submits them.
type hosts struct {
	s *Scheduler

	mu  sync.RWMutex
	all []*immediateHost // never changed in place
}

// add lets tasks start at a host.
func (a *hosts) add(h *immediateHost) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(slices.Clip(a.all), h)
}

// remove lets none start there any more.
func (a *hosts) remove(h *immediateHost) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = slices.DeleteFunc(slices.Clone(a.all), func(other *immediateHost) bool { return other == h })
}

// list are the hosts, not to be changed.
func (a *hosts) list() []*immediateHost {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.all
}

// immediateHost is where tasks start that are submitted in this process.
type immediateHost struct {
	AtOnce

	s   *Scheduler
	ctx context.Context //nolint:containedctx // that of whoever hosts the runs

	mu    sync.Mutex
	ended bool
	runs  sync.WaitGroup
}

// end lets nothing more start, and waits for the runs that have.
func (h *immediateHost) end() {
	h.s.atOnce.remove(h)
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.runs.Wait()
}

// enter makes room for a run; false if the host has ended.
func (h *immediateHost) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended || h.ctx.Err() != nil {
		return false
	}
	h.runs.Add(1) // end waits for it from now on
	return true
}

// hostOf is where a task may start, with room made for its run; nil if it may not start here.
func (a *hosts) hostOf(sub *store.Submission) *immediateHost {
	if sub.Level != LevelHigh || sub.Due != (moment.When{}) || sub.Conflict == store.ConflictReplace || sub.Hold != nil || a.s.config.Serial == SerialAgent {
		return nil
	}
	a.s.mu.RLock()
	handler := a.s.handlers[sub.Kind]
	a.s.mu.RUnlock()
	if handler == nil || handler.batch {
		return nil
	}
	for _, h := range slices.Backward(a.list()) {
		if (h.Agents == nil || h.Agents(sub.Agent)) && h.enter() {
			return h
		}
	}
	return nil
}

// submit stores the only task of a submit and leases it; start runs it. Without an answer the task is to be stored as any other.
func (a *hosts) submit(ctx context.Context, subs []store.Submission) (start func(), placed []store.Submitted, err error) {
	if len(subs) != 1 {
		return nil, nil, nil
	}
	sub := &subs[0]
	h := a.hostOf(sub)
	if h == nil {
		return nil, nil, nil
	}
	defer func() {
		if start == nil {
			h.runs.Done()
		}
	}()
	if a.s.declared.Storing() || a.s.declared.Keep(ctx) != nil { // the next pull reports why
		return nil, nil, nil
	}
	g := a.s.slots.Spare(sub.Kind)
	if g.N == 0 {
		return nil, nil, nil
	}
	partition := store.PartitionOf(sub.Agent, a.s.store.Partitions())
	lease := a.s.base.Kind(sub.Kind).Lease
	r := a.claimOf(partition, sub.Kind)
	r.Limit, r.New = 1, sub
	sent := a.s.config.Clock.Now()
	// A caller that gave up waiting would leave a lease behind that no process keeps.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestCall)
	defer cancel()
	claims, err := a.s.store.Claim(call, []store.ClaimRequest{r})
	if err == nil {
		err = claims[0].Err
	}
	if err != nil {
		a.s.slots.Keep(g, nil)
		return nil, nil, err
	}
	c := &claims[0]
	a.s.base.Observe(c.Now)
	a.s.partitions.Fences.Seen(partition, c.Fence)
	a.s.slots.Keep(g, c.Tasks)
	if len(c.Tasks) > 0 {
		start = func() { h.run(c, leases.HeldUntil(sent, lease), lease) }
	}
	return start, []store.Submitted{*c.Submitted}, nil
}

// run runs the tasks of a start: a pull that claims nothing more.
func (h *immediateHost) run(c *store.Claim, deadline time.Time, lease time.Duration) {
	defer h.runs.Done()
	var agents []string
	for agent := range byAgent(c.Tasks) {
		agents = append(agents, agent)
	}
	p := newPull(h.ctx, h.s, Scope{Agents: agents, Grace: h.Grace, OnDue: h.OnDue, OnTick: h.OnTick})
	defer p.close()
	p.immediate = true
	p.outlook.AimAtNothing() // no partition is asked, so none is left to ask
	p.heartbeat.Add(c, deadline, lease)
	for agent, tasks := range byAgent(c.Tasks) {
		p.open.Enter(agent, len(tasks))
		p.tick(agent, tasks, atOnce)
	}
	p.batches.startAll() // its kind may have a handler of batches since the start was granted
	p.open.Wait()
	p.heartbeat.Stop()
	report, err := p.finish(nil)
	if h.Done != nil {
		h.Done(report, err)
	}
}

// pullNow runs what is due of an agent, if its tasks may start here.
func (a *hosts) pullNow(agent string) {
	for _, h := range slices.Backward(a.list()) {
		if (h.Agents == nil || h.Agents(agent)) && h.enter() {
			go h.pull(agent)
			return
		}
	}
}

// pull is a pull for one agent.
func (h *immediateHost) pull(agent string) {
	defer h.runs.Done()
	report, err := h.s.RunDue(h.ctx, Scope{Agents: []string{agent}, Grace: h.Grace, OnDue: h.OnDue, OnTick: h.OnTick})
	if h.Done != nil {
		h.Done(report, err)
	}
}

// starting are tasks of one kind and partition that a submit has stored and that may start here.
type starting struct {
	host   *immediateHost
	grants []slots.Grant // a slot for each
	claim  store.ClaimRequest
}

// startListed leases the tasks of level 1 that a submit of several tasks has stored, and starts them. It gets tasks of level 1 and of the same
// agents and kinds, in the order in which a pull would take them; those that it does not get are left to the next pull.
func (a *hosts) startListed(ctx context.Context, subs []store.Submission, placed []store.Submitted) {
	if len(subs) < 2 || !a.takesLists() || a.s.declared.Storing() || a.s.declared.Keep(ctx) != nil {
		return
	}
	all := a.startable(subs, placed)
	if len(all) == 0 {
		return
	}
	requests := make([]store.ClaimRequest, len(all))
	for i, st := range all {
		st.claim.Limit = len(st.grants)
		requests[i] = st.claim
	}
	sent := a.s.config.Clock.Now()
	// A caller that gave up waiting would leave leases behind that no process keeps.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestCall)
	defer cancel()
	claims, err := a.s.store.Claim(call, requests)
	for i, st := range all {
		var c *store.Claim
		switch {
		case err == nil && claims[i].Err == nil:
			c = &claims[i]
			a.s.base.Observe(c.Now)
			a.s.partitions.Fences.Seen(c.Partition, c.Fence)
		case err == nil:
			err = claims[i].Err
		}
		st.keep(c)
		if c == nil || len(c.Tasks) == 0 {
			st.host.runs.Done()
			continue
		}
		lease := a.s.base.Kind(st.claim.Kinds[0]).Lease
		go st.host.run(c, sent.Add(leases.Stored(lease)), lease)
	}
	if err != nil { // they are stored, which is all that the submit has to do
		a.s.config.Logger.WarnContext(ctx, "urgent tasks do not start at once: the next pull runs them", slog.Any("err", err))
	}
}

// keep gives the slots back that no task of a claim fills.
func (st *starting) keep(c *store.Claim) {
	for i, g := range st.grants {
		var of []Claimed
		if c != nil && i < len(c.Tasks) {
			of = c.Tasks[i : i+1]
		}
		st.host.s.slots.Keep(g, of)
	}
}

// takesLists reports whether a host has the tasks of lists start at once.
func (a *hosts) takesLists() bool {
	return slices.ContainsFunc(a.list(), func(h *immediateHost) bool { return !h.Alone })
}

// startable are the tasks of a submit that may start here and have a slot, with room made in their host for the runs of each claim.
func (a *hosts) startable(subs []store.Submission, placed []store.Submitted) []*starting {
	var all []*starting
	for i := range subs {
		sub := &subs[i]
		h := a.hostOf(sub)
		if h == nil {
			continue
		}
		partition := store.PartitionOf(sub.Agent, a.s.store.Partitions())
		at := slices.IndexFunc(all, func(st *starting) bool {
			return st.host == h && st.claim.Partition == partition && st.claim.Kinds[0] == sub.Kind
		})
		g := slots.Grant{}
		if placed[i].Created && !h.Alone {
			g = a.s.slots.Spare(sub.Kind)
		}
		switch {
		case g.N == 0:
			h.runs.Done()
			continue
		case at < 0:
			at = len(all)
			// Tasks whose last run may have ended its process are left to pulls, which bound how many of those run.
			claim := a.claimOf(partition, sub.Kind)
			claim.Urgent, claim.Suspects = true, new([store.SuspectSorts]int)
			all = append(all, &starting{host: h, claim: claim})
		default:
			h.runs.Done() // the claim has room already
		}
		st := all[at]
		st.grants = append(st.grants, g)
		if !slices.Contains(st.claim.Agents, sub.Agent) {
			st.claim.Agents = append(st.claim.Agents, sub.Agent)
		}
	}
	return all
}

// claimOf is a claim of tasks of a kind, outside of a pull.
func (a *hosts) claimOf(partition int, kind string) store.ClaimRequest {
	lease := a.s.base.Kind(kind).Lease
	return store.ClaimRequest{
		Partition: partition, Nonce: leases.Nonce(a.s.nonce), Kinds: []string{kind}, Lease: leases.Stored(lease), Notice: leases.Notice(lease),
		Fence: a.s.partitions.Fences.Last(partition), Stamp: a.s.declared.Stamp(), Expect: a.s.expected,
	}
}
