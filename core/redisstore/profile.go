package redisstore

// Profiles of agents, and the due times that they change.

import (
	"cmp"
	"context"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Profile sets and deletes profiles; see [store.Tenants].
func (s *Store) Profile(ctx context.Context, changes []store.ProfileChange) ([]store.Effect, error) {
	calls := make([]call, len(changes))
	for i, c := range changes {
		calls[i] = call{script: &s.scripts.profile, partition: s.partitionOf(c.Agent), args: []any{encode(c.Agent), c.Was, c.Now, s.boundsText(&c)}}
	}
	return s.effects(ctx, calls, parseEffect)
}

// boundsText is the bounds of a profile, as bounded.lua reads them.
func (s *Store) boundsText(c *store.ProfileChange) string {
	text := ""
	add := func(name, allows string) { text += fmt.Sprintf("%d:%s\t%s", len(name)+1+len(allows), name, allows) }
	for i := range c.Limits {
		add(limitName(c.Limits[i].About), s.limitText(&c.Limits[i]))
	}
	for i := range c.Budgets {
		add(budgetName(c.Budgets[i].About), s.budgetText(&c.Budgets[i]))
	}
	return text
}

// Replan gives waiting tasks other due times; see [store.Tenants].
func (s *Store) Replan(ctx context.Context, tasks []store.Replan) ([]store.Effect, error) {
	calls := make([]call, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		calls[i] = call{script: &s.scripts.replan, partition: s.partitionOf(t.Agent), args: []any{
			encode(t.Agent), t.ID, t.Version, int64(t.Was), int64(t.Due), t.State,
		}}
	}
	return s.effects(ctx, calls, parseEffect)
}

// ProfileOf is the profile of an agent; see [store.Tenants].
func (s *Store) ProfileOf(ctx context.Context, agent string) ([]byte, error) {
	ctx, cancel := s.patience(ctx, "read")
	defer cancel()
	reply, err := s.client.Do(ctx, "HMGET", s.parts[s.partitionOf(agent)].key("profiles"), encode(agent)).Slice()
	if err != nil {
		return nil, wrap("read", err)
	}
	if len(reply) != 1 {
		return nil, wrap("read", errMalformed)
	}
	return data(text(reply[0])), nil
}

// Profiles returns a page of profiles; see [store.Tenants]. A cursor is that of [Store.Agents]; a page ends where one of HSCAN does.
func (s *Store) Profiles(ctx context.Context, q store.PageOf) (store.ProfilePage, error) {
	at, cursor, ok := parseCursor(q.After, len(s.parts))
	if !ok {
		return store.ProfilePage{}, errCursor
	}
	ctx, cancel := s.patience(ctx, "read")
	defer cancel()
	var page store.ProfilePage
	for at < len(s.parts) && len(page.Profiles) < max(q.Limit, 1) {
		reply, err := s.client.Do(ctx, "HSCAN", s.parts[at].key("profiles"), cursor, "COUNT", min(max(q.Limit-len(page.Profiles), 1), mostPaged)).Slice()
		if err != nil {
			return store.ProfilePage{}, wrap("read", err)
		}
		if len(reply) != 2 {
			return store.ProfilePage{}, wrap("read", errMalformed)
		}
		fields, _ := reply[1].([]any)
		found, err := profilesIn(fields)
		if err != nil {
			return store.ProfilePage{}, wrap("read", err)
		}
		for agent, profile := range found {
			page.Profiles = append(page.Profiles, store.Profiled{Agent: agent, Profile: profile})
		}
		if cursor = text(reply[0]); cursor == "0" {
			at++
		}
	}
	if at < len(s.parts) {
		page.Next = fmt.Sprintf("%d.%s", at, cursor)
	}
	return page, nil
}

// addProfiles gives the tasks of a claim the profiles in a list.
func addProfiles(c *store.Claim, list any) error {
	profiles, err := profilesIn(list)
	for i := range c.Tasks {
		c.Tasks[i].Profile = profiles[c.Tasks[i].Agent]
	}
	return err
}

// profilesIn are the profiles in a list of agents and profiles in turn.
func profilesIn(list any) (map[string][]byte, error) {
	fields, _ := list.([]any)
	var out map[string][]byte // nil for none, which is nearly always
	if len(fields) > 0 {
		out = make(map[string][]byte, len(fields)/2)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		agent, err := decode(text(fields[i]))
		if err != nil {
			return nil, err
		}
		out[agent] = data(text(fields[i+1]))
	}
	return out, nil
}

// Forget drops a page of an agent's remains; see [store.Tenants].
func (s *Store) Forget(ctx context.Context, r store.Remains) (string, error) {
	args := []any{encode(r.Agent), cmp.Or(r.Cursor, "0")}
	for _, group := range r.Groups {
		args = append(args, groupKey(r.Agent, group))
	}
	replies, err := s.eval(ctx, verbControl, []call{{script: &s.scripts.forget, partition: s.partitionOf(r.Agent), args: args}})
	if err != nil {
		return "", err
	}
	if len(replies[0]) != 2 {
		return "", wrap(verbControl, errMalformed)
	}
	if next := text(replies[0][1]); next != "0" {
		return next, nil
	}
	return "", nil
}
