package model

// Profiles of agents: their zone, their quiet hours and what passes them.

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/bounding"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// checkBounds refuses limits and budgets that are invalid for one agent, and completes the others.
func (p *Profile) checkBounds() error {
	if n := len(p.Limits) + len(p.Budgets); n > bound.MostInProfile {
		return check.Invalid("limits", "and budgets of a profile must be at most %d, not %d", bound.MostInProfile, n)
	}
	p.Limits, p.Budgets = append([]bound.Limit(nil), p.Limits...), append([]bound.Budget(nil), p.Budgets...)
	seen := map[string]bool{}
	for i := range p.Limits {
		l, field := &p.Limits[i], fmt.Sprintf("limits[%d]", i)
		err := p.own(&l.About)
		if err == nil {
			*l, err = bounding.Whole(*l)
		}
		if err != nil {
			return check.Within(field, err)
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
			*b, err = bounding.WholeBudget(*b, p.Zone, time.Unix(0, 0))
			b.About.Agent, b.Clock, b.Note = "", nil, nil
		}
		if err != nil {
			return check.Within(field, err)
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
		return check.Invalid(field, "is about the same as another one of the profile: join them into one")
	}
	seen[about] = true
	return nil
}

// own takes the agent out of a target of a profile, as the profile implies it; another agent is refused.
func (p *Profile) own(t *bound.LimitTarget) error {
	if t.Each != "" {
		return check.Invalid("each", "does not belong to a profile, which is of one agent: leave it out")
	}
	if t.Agent != "" && t.Agent != p.Agent {
		return check.Invalid("agent_id", "is %q, and the profile is of %q: leave it out", t.Agent, p.Agent)
	}
	t.Agent = ""
	return nil
}

// QuietHours are a period, on some or all days, in which no task of an agent starts; see [schedule.QuietHours].
type QuietHours = schedule.QuietHours

// Profile has the settings that apply to all tasks of an agent, on every host.
type Profile struct {
	Agent string
	// Zone is the IANA zone of the quiet hours, and of the cron expressions whose zone is ZoneOfAgent; Config.Zone if empty.
	Zone string
	// Quiet are the hours in which no task starts. A task that would be due then is due when they end, and all its occurrences
	// of that time become one run. Runs under way are not disturbed, and a task that an operator runs now starts all the same.
	Quiet []QuietHours
	// Urgent lets tasks of level 1, and those that are urgent themselves, start in quiet hours too.
	Urgent bool
	Labels map[string]string // the platform's own, at most 32
	// Limits and Budgets bound the tasks of this agent, besides those of the store: by kind and key, together [bound.MostInProfile] at most, and each without
	// Each. Only callers that may act for all agents can change them; a profile set by another caller keeps the existing ones.
	Limits  []bound.Limit
	Budgets []bound.Budget
	// Quota bounds what callers of this agent, and runs, may store for it. Only callers that may act for all agents can change it.
	Quota store.Quota
	// Tenant is whose agent it is: while more is due than there is room for, each tenant gets an equal share of the claims, however many agents it has.
	// Agents without one share one turn. Only callers that may act for all agents can change it.
	Tenant string
	Used   *store.QuotaUse // how much of it is used, where a profile was read; nil without one
	// Revision grows with each change. It is set by the store. If a caller sets one other than zero, it must be that of the profile to be replaced, if one exists.
	Revision int64
}

// ZoneOfAgent as the zone of a cron expression means the zone of the agent's profile, also after that changes; Config.Zone if the profile
// has none.
const ZoneOfAgent = "agent"

// Check refuses an invalid profile.
func (p *Profile) Check() error {
	if err := check.ValidID("agent_id", p.Agent); err != nil {
		return err
	}
	if _, err := schedule.ParseQuiet(p.Quiet, p.Zone); err != nil {
		if wrong, ok := errors.AsType[*schedule.ParseError](err); ok {
			err = &store.InvalidError{Field: wrong.Field, Reason: wrong.Reason}
		}
		return err
	}
	if err := p.checkBounds(); err != nil {
		return err
	}
	if err := bounding.CheckQuota(&p.Quota); err != nil {
		return check.Within("quota", err)
	}
	if p.Tenant != "" {
		if err := check.ValidID("tenant", p.Tenant); err != nil {
			return err
		}
	}
	return check.ValidLabels(p.Labels)
}
