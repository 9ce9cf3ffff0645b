package core

// Profiles of agents: their zone, their quiet hours and what passes them; how they are set, read and deleted.

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// QuietHours are a stretch of each of some days in which no task of an agent starts; see [schedule.QuietHours].
type QuietHours = schedule.QuietHours

// Profile is what counts for all tasks of an agent, on every host.
type Profile struct {
	Agent string
	// Zone is the IANA zone of the quiet hours, and of the cron expressions whose zone is ZoneOfAgent; Config.Zone if empty.
	Zone string
	// Quiet are the hours in which no task starts. What would be due then is due when they end, and what it would have run for
	// meanwhile is one run. What runs already is not disturbed, and what an operator runs now starts all the same.
	Quiet []QuietHours
	// Urgent lets tasks of level 1, and those that are urgent themselves, start in quiet hours too.
	Urgent bool
	Labels map[string]string // the platform's own, at most 32
	// Limits and Budgets bound the tasks of this agent, besides those of the store: by kind and key, together [store.MostBounds] at most, and each without
	// Each. Only whoever may act for all agents changes them; profiles that others set keep those that there are.
	Limits  []Limit
	Budgets []Budget
	// Revision grows with each change. It is set by the store. One that is set, other than zero, has to be that of the profile that it replaces, if there is one.
	Revision int64
}

// ZoneOfAgent is what a cron expression has in place of a zone to be read in that of the agent's profile, whatever that becomes; in
// Config.Zone without one.
const ZoneOfAgent = "agent"

// SetProfile sets the profile of an agent, whatever it was before, and returns it as it is stored. The agent need not have tasks. Its
// waiting tasks get the due times that follow, and the call returns when all of them have: if it fails in between, or its process dies,
// whoever next claims a task of the agent completes that. No task starts in quiet hours meanwhile. Fails with an *[InvalidError], and with a
// *[ForbiddenError] if it has other limits or budgets than its caller may set.
func (s *Scheduler) SetProfile(ctx context.Context, p Profile) (Profile, error) {
	if p.Zone == "" {
		p.Zone = s.config.Zone
	}
	if err := p.check(); err != nil {
		return Profile{}, err
	}
	next := p.record()
	next.Limits, next.Budgets = p.bounds()
	return s.changeProfile(ctx, p.Agent, next)
}

// DeleteProfile deletes the profile of an agent: its tasks start at any time again. Limits and budgets stay that its caller may not change. Fails
// with ErrNotFound if it has none.
func (s *Scheduler) DeleteProfile(ctx context.Context, agent string) error {
	if err := validID("agent_id", agent); err != nil {
		return err
	}
	_, err := s.changeProfile(ctx, agent, record.Profile{Deleted: true})
	return err
}

// Profile is that of an agent. Fails with ErrNotFound if it has none.
func (s *Scheduler) Profile(ctx context.Context, agent string) (Profile, error) {
	if err := validID("agent_id", agent); err != nil {
		return Profile{}, err
	}
	h, err := s.habitsOf(ctx, agent)
	switch {
	case err != nil:
		return Profile{}, err
	case h == nil || h.stored.Deleted:
		return Profile{}, ErrNotFound
	default:
		return h.profile(agent), nil
	}
}

// Profiles returns a page of all profiles, in no order, and the cursor of the next page: empty on the last one. A page has about as many
// as the limit, DefaultPage if it is zero.
func (s *Scheduler) Profiles(ctx context.Context, cursor string, limit int) ([]Profile, string, error) {
	l := List{Agent: "a", Limit: limit, Cursor: cursor} // for its bounds
	if err := l.check(); err != nil {
		return nil, "", err
	}
	page, err := s.store.Profiles(ctx, store.PageOf{After: cursor, Limit: l.Limit})
	if err != nil {
		return nil, "", err
	}
	var out []Profile
	for i := range page.Profiles {
		if h := s.habits.of(page.Profiles[i].Profile, s.config.Zone); h != nil && !h.stored.Deleted {
			out = append(out, h.profile(page.Profiles[i].Agent))
		}
	}
	return out, page.Next, nil
}

// check refuses a profile that makes no sense.
func (p *Profile) check() error {
	if err := validID("agent_id", p.Agent); err != nil {
		return err
	}
	if _, err := schedule.ParseQuiet(p.Quiet, p.Zone); err != nil {
		if wrong, ok := errors.AsType[*schedule.ParseError](err); ok {
			err = &InvalidError{Field: wrong.Field, Reason: wrong.Reason}
		}
		return err
	}
	if err := p.checkBounds(); err != nil {
		return err
	}
	return checkLabels(p.Labels)
}

// record is the profile as it is stored.
func (p *Profile) record() record.Profile {
	r := record.Profile{Zone: p.Zone, Urgent: p.Urgent, Revision: p.Revision}
	for _, h := range p.Quiet {
		r.Quiet = append(r.Quiet, strings.Join([]string{h.From, h.To, strings.ToLower(strings.Join(h.Days, ","))}, "\x00"))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Labels)) {
		r.Labels = append(r.Labels, name+"\x00"+p.Labels[name])
	}
	return r
}

// changeProfile stores a profile in place of the one that there is, and plans the agent's tasks by it.
func (s *Scheduler) changeProfile(ctx context.Context, agent string, next record.Profile) (Profile, error) {
	// Asked before anything is stored: planning the tasks goes through all of them, and a change must not be refused half way.
	begin, err := take(ctx)
	if err != nil {
		return Profile{}, err
	}
	begin()
	now, err := s.askedNow(ctx)
	if err != nil {
		return Profile{}, err
	}
	for range mostTries {
		data, err := s.tryProfile(ctx, agent, next, now)
		switch {
		case errors.Is(err, store.ErrChanged):
			continue
		case err != nil:
			return Profile{}, err
		}
		h := s.habits.of(data, s.config.Zone)
		if h.stored.Replanning != 0 {
			err = s.replan(ctx, agent, data)
		}
		return h.profile(agent), err
	}
	return Profile{}, store.ErrChanged
}

// tryProfile stores a profile in place of the one that it reads, and returns it as it is stored: with a mark if tasks are to be planned by it.
// ErrChanged says that somebody else has changed it in between.
func (s *Scheduler) tryProfile(ctx context.Context, agent string, next record.Profile, now store.Millis) ([]byte, error) {
	was, err := s.store.ProfileOf(ctx, agent)
	if err != nil {
		return nil, err
	}
	if next.Deleted && len(was) == 0 {
		return nil, ErrNotFound
	}
	old, _ := record.DecodeProfile(was) // one that cannot be read is replaced
	if err := s.withBounds(ctx, &next, &old); err != nil {
		return nil, err
	}
	seen := next.Revision
	next.Revision, next.Replanning = old.Revision, old.Replanning
	if len(was) == 0 || !reflect.DeepEqual(next, old) {
		if seen != 0 && old.Revision != 0 && seen != old.Revision { // what is the same as it is may be sent again
			return nil, ErrStale
		}
		next.Revision, next.Replanning = old.Revision+1, max(now, 1)
	}
	c := s.profileChange(agent, was, &next)
	effects, err := s.store.Profile(ctx, []store.ProfileChange{c})
	if err == nil && effects[0].Code == store.EffectChanged {
		err = store.ErrChanged
	}
	return c.Now, err
}

// habitsOf reads the profile of an agent; nil if it has none.
func (s *Scheduler) habitsOf(ctx context.Context, agent string) (*habits, error) {
	data, err := s.store.ProfileOf(ctx, agent)
	if err != nil {
		return nil, err
	}
	return s.habits.of(data, s.config.Zone), nil
}
