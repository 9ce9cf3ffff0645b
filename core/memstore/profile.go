package memstore

// Profiles of agents, and the due times that they change.

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Profile sets and deletes profiles; see [store.Tenants].
func (s *Store) Profile(ctx context.Context, changes []store.ProfileChange) ([]store.Effect, error) {
	return operate(ctx, s, changes, func(c *store.ProfileChange, now moment.Millis) store.Effect {
		p := s.partitionOf(c.Agent)
		switch old := p.profiles[c.Agent]; {
		case bytes.Equal(old, c.Now): // as of a call that is sent again
			p.quotas.enroll(p, c.Agent, c.Recurring)
			return store.Effect{Code: store.EffectDone}
		case !bytes.Equal(old, c.Was):
			return store.Effect{Code: store.EffectChanged}
		case len(c.Now) == 0:
			delete(p.profiles, c.Agent)
		default:
			p.profiles[c.Agent] = slices.Clone(c.Now)
		}
		p.setBounds(c, now)
		p.quotas.set(c)
		p.tenants.set(c.Agent, c.Tenant)
		withdraw(p, now)
		return store.Effect{Code: store.EffectDone}
	})
}

// ProfileOf is the profile of an agent; see [store.Tenants].
func (s *Store) ProfileOf(ctx context.Context, agent string) ([]byte, error) {
	return read(ctx, s, func(moment.Millis) ([]byte, error) { return slices.Clone(s.partitionOf(agent).profiles[agent]), nil })
}

// Profiles returns a page of profiles, by agent; see [store.Tenants].
func (s *Store) Profiles(ctx context.Context, q store.PageOf) (store.ProfilePage, error) {
	return read(ctx, s, func(now moment.Millis) (store.ProfilePage, error) {
		names := profiledAfter(s, q)
		var page store.ProfilePage
		for i, agent := range names[:min(len(names), max(q.Limit, 1))] {
			p := s.partitionOf(agent)
			page.Profiles = append(page.Profiles, store.Profiled{Agent: agent, Profile: slices.Clone(p.profiles[agent]), Use: p.quotas.use(p, agent, now)})
			if i+1 < len(names) {
				page.Next = agent
			} else {
				page.Next = ""
			}
		}
		return page, nil
	})
}

// profiledAfter are the agents of a page of profiles and of those behind it, sorted.
func profiledAfter(s *Store, q store.PageOf) (names []string) {
	for _, p := range s.parts {
		for agent := range p.profiles {
			if agent > q.After && (q.Agent == "" || agent == q.Agent) {
				names = append(names, agent)
			}
		}
	}
	slices.Sort(names)
	return names
}

// Replan gives waiting tasks other due times; see [store.Tenants].
func (s *Store) Replan(ctx context.Context, tasks []store.Replan) ([]store.Effect, error) {
	return operate(ctx, s, tasks, func(r *store.Replan, now moment.Millis) store.Effect {
		return operating{s.partitionOf(r.Agent), now}.replan(r)
	})
}

// replan gives a task another due time. One that is parked is put back, as by any other order: the next claim parks it again.
func (p operating) replan(r *store.Replan) store.Effect {
	t := p.task(r.Agent, r.ID)
	switch {
	case t == nil:
		return store.Effect{}
	case t.claim != nil || t.order != nil:
		return store.Effect{Code: store.EffectRunning}
	case t.version() != r.Version || t.due != r.Was:
		return store.Effect{Code: store.EffectChanged}
	}
	p.lift(t)
	t.state, t.changed = slices.Clone(r.State), p.now
	if len(r.State) == 0 {
		t.state = nil
	}
	p.place(t, r.Due)
	p.store.announce(p.partition, r.Due)
	return store.Effect{Code: store.EffectDone, Due: r.Due}
}

// Forget drops the remains of an agent; see [store.Tenants].
func (s *Store) Forget(ctx context.Context, r store.Remains) (string, error) {
	_, err := operate(ctx, s, []store.Remains{r}, func(r *store.Remains, _ moment.Millis) store.Effect {
		p := s.partitionOf(r.Agent)
		for _, name := range r.Groups {
			if g := p.groups[[2]string{r.Agent, name}]; g != nil && g.Live <= 0 {
				delete(p.groups, [2]string{r.Agent, name})
			}
		}
		maps.DeleteFunc(p.gone, func(ref [2]string, _ finished) bool { return ref[0] == r.Agent })
		return store.Effect{}
	})
	return "", err
}
