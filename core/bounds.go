package core

// Bounds of profiles: the limits and budgets of one agent, and who may set them.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// bounded is what a record of a profile bounds, as stores need it; without what cannot be read, as of a later version.
func bounded(agent string, r *record.Profile, now time.Time) (limits []Limit, budgets []Budget) {
	if r.Deleted {
		return nil, nil
	}
	for _, l := range limitsIn(r) {
		l.About.Agent = agent
		limits = append(limits, l)
	}
	for _, text := range r.Budgets {
		if b, err := ReadBudget([]byte(text)); err == nil {
			b.About.Agent = agent
			if b, err = wholeBudget(b, r.Zone, now); err == nil {
				budgets = append(budgets, b)
			}
		}
	}
	return limits, budgets
}

// limitsIn are the limits in a record.
func limitsIn(r *record.Profile) (out []Limit) {
	for _, text := range r.Limits {
		l, err := ReadLimit([]byte(text))
		if err == nil {
			l, err = whole(l)
		}
		if err == nil {
			out = append(out, l)
		}
	}
	return out
}

// profileChange stores a record of a profile with all that it bounds in place of another; nil deletes it.
func (s *Scheduler) profileChange(agent string, was []byte, next *record.Profile) store.ProfileChange {
	c := store.ProfileChange{Agent: agent, Was: was}
	if next != nil {
		c.Now = next.Encode()
		c.Limits, c.Budgets = bounded(agent, next, s.storeNow().Time())
	}
	return c
}

// checkBounds refuses limits and budgets that make no sense for one agent, and completes the others.
func (p *Profile) checkBounds() error {
	if n := len(p.Limits) + len(p.Budgets); n > store.MostBounds {
		return invalid("limits", "and budgets of a profile must be at most %d, not %d", store.MostBounds, n)
	}
	p.Limits, p.Budgets = append([]Limit(nil), p.Limits...), append([]Budget(nil), p.Budgets...)
	seen := map[string]bool{}
	for i := range p.Limits {
		l, field := &p.Limits[i], fmt.Sprintf("limits[%d]", i)
		err := p.own(&l.About)
		if err == nil {
			*l, err = whole(*l)
		}
		if err != nil {
			return within(field, err)
		}
		if err := once(seen, field, l.About.String()); err != nil {
			return err
		}
	}
	for i := range p.Budgets {
		b, field := &p.Budgets[i], fmt.Sprintf("budgets[%d]", i)
		err := p.own(&b.About.LimitTarget)
		if err == nil {
			b.About.Agent = p.Agent // only the whole agent can be paused
			*b, err = wholeBudget(*b, p.Zone, time.Unix(0, 0))
			b.About.Agent, b.Clock, b.Note = "", nil, nil
		}
		if err != nil {
			return within(field, err)
		}
		if err := once(seen, field, b.About.String()); err != nil {
			return err
		}
	}
	return nil
}

// once refuses a second limit or budget about the same.
func once(seen map[string]bool, field, about string) error {
	if seen[about] {
		return invalid(field, "is about the same as another one of the profile: join them into one")
	}
	seen[about] = true
	return nil
}

// own leaves out whose a target of a profile is, which goes without saying.
func (p *Profile) own(t *LimitTarget) error {
	if t.Each != "" {
		return invalid("each", "does not belong to a profile, which is of one agent: leave it out")
	}
	if t.Agent != "" && t.Agent != p.Agent {
		return invalid("agent_id", "is %q, and the profile is of %q: leave it out", t.Agent, p.Agent)
	}
	t.Agent = ""
	return nil
}

// bounds are the limits and budgets of a profile as its record has them: as JSON, which what reads them elsewhere reads.
func (p *Profile) bounds() (limits, budgets []string) {
	for i := range p.Limits {
		limits = append(limits, encodeBound(&p.Limits[i]))
	}
	for i := range p.Budgets {
		budgets = append(budgets, encodeBound(&p.Budgets[i]))
	}
	return limits, budgets
}

func encodeBound(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "" // none of theirs fails
	}
	return string(data)
}

// mayBound reports whether whoever a context is of may act for all agents, and so say how much one of them may do. Others set profiles of
// their agents with the limits and budgets that these have.
func (s *Scheduler) mayBound(ctx context.Context) error {
	return s.Authorize(ctx, Access{Action: ActionControl})
}

// withBounds gives the next profile of an agent the limits and budgets of the old one where its caller may not change them. One that
// asks for others is refused.
func (s *Scheduler) withBounds(ctx context.Context, next, old *record.Profile) error {
	if old.Deleted {
		old = &record.Profile{}
	}
	if slices.Equal(next.Limits, old.Limits) && slices.Equal(next.Budgets, old.Budgets) {
		return nil
	}
	forbidden := s.mayBound(ctx)
	if forbidden == nil {
		return nil
	}
	if len(next.Limits)+len(next.Budgets) > 0 {
		return fmt.Errorf("set limits and budgets of an agent: %w", forbidden)
	}
	next.Limits, next.Budgets, next.Deleted = old.Limits, old.Budgets, false
	return nil
}
