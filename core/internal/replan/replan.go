// Package replan plans tasks by the profiles of their agents: those that are submitted, and those of which a pull finds that their plan is not the last one.
package replan

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// With are the profiles that some submissions were planned with; nil for all of them without one.
type With []*plan.Profile

func (f With) of(i int) *plan.Profile {
	if f == nil {
		return nil
	}
	return f[i]
}

// Submissions plans submissions with the profiles that their agents had when this process last submitted for them, as most still have them. It
// returns the profile that each was planned with.
func Submissions(b *base.Base, subs []store.Submission) With {
	var with With
	for i := range subs {
		sub := &subs[i]
		h := b.Profiles.LastOf(sub.Agent)
		if h == nil || sub.Conflict == store.ConflictReplace {
			continue
		}
		if with == nil {
			with = make(With, len(subs))
		}
		with[i] = h
		now := b.StoreNow()
		due := max(sub.Due.At, now)
		if sub.Due.At == 0 {
			due = now.Add(sub.Due.After)
		}
		t := store.Stored{Agent: sub.Agent, ID: sub.ID, Level: sub.Level, Due: due, Body: sub.Body, State: sub.State}
		if r, moves := planned(b, &t, h, now); moves {
			sub.Due, sub.State = moment.When{At: r.Due}, r.State
		}
	}
	return with
}

// Submitted plans tasks that were just stored by the profiles that their agents turned out to have. The tasks stay stored if that fails,
// and no claim starts one in quiet hours, so the submit does not fail.
func Submitted(ctx context.Context, b *base.Base, subs []store.Submission, placed []store.Submitted, with With) {
	ids := map[string][]string(nil)
	for i := range placed {
		p := &placed[i]
		used := with.of(i)
		if !p.Created && !p.Replaced || len(p.Profile) == 0 && used == nil {
			continue
		}
		if due, moves := adapted(b, &subs[i], p, used); moves {
			if ids == nil {
				ids = map[string][]string{}
			}
			ids[subs[i].Agent] = append(ids[subs[i].Agent], subs[i].ID)
			p.Due = due
		}
	}
	for agent, these := range ids {
		if err := some(ctx, b, agent, these, b.Profiles.LastOf(agent)); err != nil {
			b.Config.Logger.WarnContext(ctx, "new tasks could not be planned around quiet hours: the first claim does it",
				slog.String("agent", agent), slog.Any("err", err))
		}
	}
}

// adapted is when a task that was stored is to be due by the profile that its agent turned out to have; false if it was planned by that.
func adapted(b *base.Base, sub *store.Submission, p *store.Submitted, used *plan.Profile) (moment.Millis, bool) {
	h := b.Profiles.Of(p.Profile, b.Config.Zone)
	b.Profiles.SetLast(sub.Agent, h)
	if h == used {
		return 0, false
	}
	t := store.Stored{Agent: sub.Agent, ID: sub.ID, Level: sub.Level, Due: p.Due, Body: sub.Body, State: sub.State}
	r, moves := planned(b, &t, h, b.StoreNow())
	return r.Due, moves
}

// Marks are the tasks that a pull finds and that are planned again when it ends. Its base is set before it is used.
type Marks struct {
	Base *base.Base

	mu  sync.Mutex
	set replanSet
}

// CheckProfile notes what the profile of a claimed task shows of others: that a process has begun to plan them and has not finished.
func (m *Marks) CheckProfile(h *plan.Profile, agent string) {
	if h == nil || h.Stored.Replanning == 0 || m.Base.StoreNow().Sub(h.Stored.Replanning) < replanAfter {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mark(agent, nil)
}

// Add notes a task whose due time follows from a profile that may have changed while it ran. The call that changed it has planned the
// tasks that waited then.
func (m *Marks) Add(agent, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ids, known := m.set[agent]; !known || ids != nil {
		m.mark(agent, append(ids, id))
	}
}

// mark notes tasks of an agent; nil for all. The mutex is held.
func (m *Marks) mark(agent string, ids []string) {
	if m.set == nil {
		m.set = replanSet{}
	}
	m.set[agent] = ids
}

// CarryOut plans the tasks again that are marked. Tasks that it fails for are found again by the next claim.
func (m *Marks) CarryOut(ctx context.Context) {
	m.mu.Lock()
	marked := m.set
	m.set = nil
	m.mu.Unlock()
	for agent, ids := range marked {
		if ctx.Err() != nil {
			return
		}
		h, err := m.Base.ProfileOf(ctx, agent)
		switch {
		case err != nil:
		case ids == nil && h != nil && h.Stored.Replanning != 0:
			err = Agent(ctx, m.Base, agent, []byte(h.Data))
		default:
			slices.Sort(ids)
			err = some(ctx, m.Base, agent, slices.Compact(ids), h)
		}
		if err != nil {
			m.Base.Config.Logger.WarnContext(ctx, "the tasks of an agent could not be planned by its profile", slog.String("agent", agent), slog.Any("err", err))
		}
	}
}

// replanSet are the tasks of a pull that may have been planned by an old profile: by agent, their ids, or none if all tasks of the agent are to be
// planned.
type replanSet map[string][]string
