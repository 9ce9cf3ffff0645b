package core

// Tasks of level 1 that are submitted together start at once too, where no pull follows by itself.

import (
	"context"
	"log/slog"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// starting are tasks of one kind and partition that a submit has stored and that may start here.
type starting struct {
	host   *immediateHost
	grants []slots.Grant // a slot for each
	claim  store.ClaimRequest
}

// startListed leases the tasks of level 1 that a submit of several tasks has stored, and starts them. It gets tasks of level 1 and of the same
// agents and kinds, in the order in which a pull would take them; those that it does not get are left to the next pull.
func (s *Scheduler) startListed(ctx context.Context, subs []store.Submission, placed []store.Submitted) {
	if len(subs) < 2 || !s.hasHostOfLists() || s.declared.storing.Load() || s.keepDeclared(ctx) != nil {
		return
	}
	all := s.startable(subs, placed)
	if len(all) == 0 {
		return
	}
	requests := make([]store.ClaimRequest, len(all))
	for i, st := range all {
		st.claim.Limit = len(st.grants)
		requests[i] = st.claim
	}
	sent := s.config.Clock.Now()
	// A caller that gave up waiting would leave leases behind that no process keeps.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestCall)
	defer cancel()
	claims, err := s.store.Claim(call, requests)
	for i, st := range all {
		var c *store.Claim
		switch {
		case err == nil && claims[i].Err == nil:
			c = &claims[i]
			s.base.Observe(c.Now)
			s.fences.seen(c.Partition, c.Fence)
		case err == nil:
			err = claims[i].Err
		}
		st.keep(c)
		if c == nil || len(c.Tasks) == 0 {
			st.host.runs.Done()
			continue
		}
		lease := s.base.Kind(st.claim.Kinds[0]).Lease
		go st.host.run(c, sent.Add(stored(lease)), lease)
	}
	if err != nil { // they are stored, which is all that the submit has to do
		s.config.Logger.WarnContext(ctx, "urgent tasks do not start at once: the next pull runs them", slog.Any("err", err))
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

// hasHostOfLists reports whether a host has the tasks of lists start at once.
func (s *Scheduler) hasHostOfLists() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.ContainsFunc(s.hosts, func(h *immediateHost) bool { return !h.Alone })
}

// startable are the tasks of a submit that may start here and have a slot, with room made in their host for the runs of each claim.
func (s *Scheduler) startable(subs []store.Submission, placed []store.Submitted) []*starting {
	var all []*starting
	for i := range subs {
		sub := &subs[i]
		h := s.hostOf(sub)
		if h == nil {
			continue
		}
		partition := store.PartitionOf(sub.Agent, s.store.Partitions())
		at := slices.IndexFunc(all, func(st *starting) bool {
			return st.host == h && st.claim.Partition == partition && st.claim.Kinds[0] == sub.Kind
		})
		g := slots.Grant{}
		if placed[i].Created && !h.Alone {
			g = s.slots.Spare(sub.Kind)
		}
		switch {
		case g.N == 0:
			h.runs.Done()
			continue
		case at < 0:
			at = len(all)
			// Tasks whose last run may have ended its process are left to pulls, which bound how many of those run.
			claim := s.claimOf(partition, sub.Kind)
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
func (s *Scheduler) claimOf(partition int, kind string) store.ClaimRequest {
	lease := s.base.Kind(kind).Lease
	return store.ClaimRequest{
		Partition: partition, Nonce: s.nonceFor(), Kinds: []string{kind}, Lease: stored(lease), Notice: noticeOf(lease),
		Fence: s.fences.last(partition), Stamp: s.stamped(), Expect: s.expected,
	}
}
