package operate

// Profiles of agents: their zone, their quiet hours and what passes them; how they are set, read and deleted.

import (
	"context"
	"errors"
	"reflect"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/replan"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// ProfileDesk sets, deletes and reads profiles of agents. It is safe for concurrent use.
type ProfileDesk struct {
	base   *base.Base
	bounds *BoundDesk
}

// SetProfile sets the profile of an agent, replacing any previous one, and returns it as it is stored. The agent need not have tasks. Its
// waiting tasks get the due times that follow, and the call returns when all of them have: if it fails in between, or its process dies,
// the next process that claims a task of the agent completes that. No task starts in quiet hours meanwhile. Fails with an *[store.InvalidError], and with a
// *[model.ForbiddenError] if it has other limits, budgets, another quota or tenant than its caller may set.
func (s *ProfileDesk) SetProfile(ctx context.Context, p model.Profile) (model.Profile, error) {
	if p.Zone == "" {
		p.Zone = s.base.Config.Zone
	}
	if err := p.Check(); err != nil {
		return model.Profile{}, err
	}
	next := codec.ProfileRecord(&p)
	codec.ProfileBounds(&next, &p)
	return s.changeProfile(ctx, p.Agent, next)
}

// DeleteProfile deletes the profile of an agent: its tasks start at any time again. Limits and budgets that its caller may not change stay. Fails
// with ErrNotFound if it has none.
func (s *ProfileDesk) DeleteProfile(ctx context.Context, agent string) error {
	if err := check.ValidID("agent_id", agent); err != nil {
		return err
	}
	_, err := s.changeProfile(ctx, agent, record.Profile{Deleted: true})
	return err
}

// Profile returns the profile of an agent, and how much of its quota is used. Fails with ErrNotFound if it has none.
func (s *ProfileDesk) Profile(ctx context.Context, agent string) (model.Profile, error) {
	if err := check.ValidID("agent_id", agent); err != nil {
		return model.Profile{}, err
	}
	page, err := s.base.Store.Profiles(ctx, store.PageOf{Agent: agent, Limit: 1})
	if err != nil {
		return model.Profile{}, err
	}
	for i := range page.Profiles {
		if h := s.base.Profiles.Of(page.Profiles[i].Profile, s.base.Config.Zone); h != nil && !h.Stored.Deleted {
			p := h.Model(agent)
			p.Used = page.Profiles[i].Use
			return p, nil
		}
	}
	return model.Profile{}, model.ErrNotFound
}

// Profiles returns a page of all profiles, in no order, and the cursor of the next page: empty on the last one. A page has about as many
// as the limit, DefaultPage if it is zero.
func (s *ProfileDesk) Profiles(ctx context.Context, cursor string, limit int) ([]model.Profile, string, error) {
	l := inspect.List{Agent: "a", Limit: limit, Cursor: cursor} // for its bounds
	if err := l.Check(); err != nil {
		return nil, "", err
	}
	page, err := s.base.Store.Profiles(ctx, store.PageOf{After: cursor, Limit: l.Limit})
	if err != nil {
		return nil, "", err
	}
	var out []model.Profile
	for i := range page.Profiles {
		if h := s.base.Profiles.Of(page.Profiles[i].Profile, s.base.Config.Zone); h != nil && !h.Stored.Deleted {
			p := h.Model(page.Profiles[i].Agent)
			p.Used = page.Profiles[i].Use
			out = append(out, p)
		}
	}
	return out, page.Next, nil
}

// changeProfile stores a profile in place of the existing one, and plans the agent's tasks by it.
func (s *ProfileDesk) changeProfile(ctx context.Context, agent string, next record.Profile) (model.Profile, error) {
	// Asked before anything is stored: planning the tasks goes through all of them, and a change must not be refused half way.
	begin, err := base.Take(ctx)
	if err != nil {
		return model.Profile{}, err
	}
	begin()
	now, err := s.base.AskedNow(ctx)
	if err != nil {
		return model.Profile{}, err
	}
	for range base.MostTries {
		data, err := s.tryProfile(ctx, agent, next, now)
		switch {
		case errors.Is(err, store.ErrChanged):
			continue
		case err != nil:
			return model.Profile{}, err
		}
		h := s.base.Profiles.Of(data, s.base.Config.Zone)
		if h.Stored.Replanning != 0 {
			err = replan.Agent(ctx, s.base, agent, data)
		}
		return h.Model(agent), err
	}
	return model.Profile{}, store.ErrChanged
}

// tryProfile stores a profile in place of the one that it reads, and returns it as it is stored: with a mark if tasks are to be planned by it.
// ErrChanged says that another caller has changed it in between.
func (s *ProfileDesk) tryProfile(ctx context.Context, agent string, next record.Profile, now moment.Millis) ([]byte, error) {
	was, err := s.base.Store.ProfileOf(ctx, agent)
	if err != nil {
		return nil, err
	}
	if next.Deleted && len(was) == 0 {
		return nil, model.ErrNotFound
	}
	old, _ := record.DecodeProfile(was) // one that cannot be read is replaced
	if err := s.bounds.withBounds(ctx, &next, &old); err != nil {
		return nil, err
	}
	seen := next.Revision
	next.Revision, next.Replanning = old.Revision, old.Replanning
	if len(was) == 0 || !reflect.DeepEqual(next, old) {
		if seen != 0 && old.Revision != 0 && seen != old.Revision { // the stored profile may be sent again
			return nil, model.ErrStale
		}
		next.Revision, next.Replanning = old.Revision+1, max(now, 1)
	}
	c := s.base.ProfileChange(agent, was, &next)
	effects, err := s.base.Store.Profile(ctx, []store.ProfileChange{c})
	if err == nil && effects[0].Code == store.EffectChanged {
		err = store.ErrChanged
	}
	return c.Now, err
}
