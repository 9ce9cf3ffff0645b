package core

// How the profiles of agents change tasks that are submitted.

import (
	"context"
	"log/slog"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// plannedWith are the profiles that some submissions were planned with; nil for all of them without one.
type plannedWith []*plan.Profile

func (f plannedWith) of(i int) *plan.Profile {
	if f == nil {
		return nil
	}
	return f[i]
}

// planByProfiles plans submissions with the profiles that their agents had when this process last submitted for them, as most still have them. It
// returns the profile that each was planned with.
func (s *Scheduler) planByProfiles(subs []store.Submission) plannedWith {
	var with plannedWith
	for i := range subs {
		sub := &subs[i]
		h := s.base.Profiles.LastOf(sub.Agent)
		if h == nil || sub.Conflict == store.ConflictReplace {
			continue
		}
		if with == nil {
			with = make(plannedWith, len(subs))
		}
		with[i] = h
		now := s.base.StoreNow()
		due := max(sub.Due.At, now)
		if sub.Due.At == 0 {
			due = now.Add(sub.Due.After)
		}
		t := store.Stored{Agent: sub.Agent, ID: sub.ID, Level: sub.Level, Due: due, Body: sub.Body, State: sub.State}
		if r, moves := s.base.Planned(&t, h, now); moves {
			sub.Due, sub.State = store.When{At: r.Due}, r.State
		}
	}
	return with
}

// replanSubmitted plans tasks that were just stored by the profiles that their agents turned out to have. The tasks stay stored if that fails,
// and no claim starts one in quiet hours, so the submit does not fail.
func (s *Scheduler) replanSubmitted(ctx context.Context, subs []store.Submission, placed []store.Submitted, with plannedWith) {
	ids := map[string][]string(nil)
	for i := range placed {
		p := &placed[i]
		used := with.of(i)
		if !p.Created && !p.Replaced || len(p.Profile) == 0 && used == nil {
			continue
		}
		if due, moves := s.adapted(&subs[i], p, used); moves {
			if ids == nil {
				ids = map[string][]string{}
			}
			ids[subs[i].Agent] = append(ids[subs[i].Agent], subs[i].ID)
			p.Due = due
		}
	}
	for agent, some := range ids {
		if err := s.base.ReplanSome(ctx, agent, some, s.base.Profiles.LastOf(agent)); err != nil {
			s.config.Logger.WarnContext(ctx, "new tasks could not be planned around quiet hours: the first claim does it",
				slog.String("agent", agent), slog.Any("err", err))
		}
	}
}

// adapted is when a task that was stored is to be due by the profile that its agent turned out to have; false if it was planned by that.
func (s *Scheduler) adapted(sub *store.Submission, p *store.Submitted, used *plan.Profile) (store.Millis, bool) {
	h := s.base.Profiles.Of(p.Profile, s.config.Zone)
	s.base.Profiles.SetLast(sub.Agent, h)
	if h == used {
		return 0, false
	}
	t := store.Stored{Agent: sub.Agent, ID: sub.ID, Level: sub.Level, Due: p.Due, Body: sub.Body, State: sub.State}
	r, moves := s.base.Planned(&t, h, s.base.StoreNow())
	return r.Due, moves
}

// checkReplanning notes what the profile of a claimed task shows of others: that a process has begun to plan them and has not finished.
func (p *pull) checkReplanning(h *plan.Profile, agent string) {
	if h == nil || h.Stored.Replanning == 0 || p.s.base.StoreNow().Sub(h.Stored.Replanning) < base.ReplanAfter {
		return
	}
	p.toReplanMu.Lock()
	defer p.toReplanMu.Unlock()
	p.markReplan(agent, nil)
}

// checkSettledDue notes a task whose due time follows from a profile that may have changed while it ran. The call that changed it has planned the
// tasks that waited then.
func (p *pull) checkSettledDue(r *run) {
	if r.verdict.Settlement.Verb != store.VerbAgain || r.state.PutOff == nil && r.body.Zone != ZoneOfAgent {
		return
	}
	p.toReplanMu.Lock()
	defer p.toReplanMu.Unlock()
	if ids, known := p.toReplan[r.claimed.Agent]; !known || ids != nil {
		p.markReplan(r.claimed.Agent, append(ids, r.claimed.ID))
	}
}

func (p *pull) markReplan(agent string, ids []string) {
	if p.toReplan == nil {
		p.toReplan = base.ReplanSet{}
	}
	p.toReplan[agent] = ids
}

// replan plans the tasks again that a pull has marked, when it ends. Tasks that it fails for are found again by the next claim.
func (p *pull) replan() {
	p.toReplanMu.Lock()
	all := p.toReplan
	p.toReplan = nil
	p.toReplanMu.Unlock()
	for agent, ids := range all {
		if p.ctx.Err() != nil {
			return
		}
		h, err := p.s.base.ProfileOf(p.ctx, agent)
		switch {
		case err != nil:
		case ids == nil && h != nil && h.Stored.Replanning != 0:
			err = p.s.base.Replan(p.ctx, agent, []byte(h.Data))
		default:
			slices.Sort(ids)
			err = p.s.base.ReplanSome(p.ctx, agent, slices.Compact(ids), h)
		}
		if err != nil {
			p.s.config.Logger.WarnContext(p.ctx, "the tasks of an agent could not be planned by its profile", slog.String("agent", agent), slog.Any("err", err))
		}
	}
}
