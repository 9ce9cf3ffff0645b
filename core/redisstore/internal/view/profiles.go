package view

// Profiles, and what is used of the quotas of their agents.

import (
	"context"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// ProfileOf is the profile of an agent; see [store.Tenants].
func (s *View) ProfileOf(ctx context.Context, agent string) ([]byte, error) {
	ctx, cancel := s.db.Patience(ctx, "read")
	defer cancel()
	reply, err := s.db.Client.Do(ctx, "HMGET", s.db.Parts[s.db.PartitionOf(agent)].Key("profiles"), layout.Encode(agent)).Slice()
	if err != nil {
		return nil, call.Wrap("read", err)
	}
	if len(reply) != 1 {
		return nil, call.Wrap("read", layout.ErrMalformed)
	}
	return layout.Data(layout.Text(reply[0])), nil
}

// Profiles returns a page of profiles; see [store.Tenants]. A cursor is that of [Store.Agents]; a page ends where one of HSCAN does.
func (s *View) Profiles(ctx context.Context, q store.PageOf) (store.ProfilePage, error) {
	at, cursor, ok := parseCursor(q.After, len(s.db.Parts))
	if !ok {
		return store.ProfilePage{}, ErrCursor
	}
	ctx, cancel := s.db.Patience(ctx, "read")
	defer cancel()
	var page store.ProfilePage
	if q.Agent != "" {
		return profileAlone(ctx, s, q.Agent)
	}
	for at < len(s.db.Parts) && len(page.Profiles) < max(q.Limit, 1) {
		reply, err := s.db.Client.Do(ctx, "HSCAN", s.db.Parts[at].Key("profiles"), cursor, "COUNT", min(max(q.Limit-len(page.Profiles), 1), mostPaged)).Slice()
		if err != nil {
			return store.ProfilePage{}, call.Wrap("read", err)
		}
		if len(reply) != 2 {
			return store.ProfilePage{}, call.Wrap("read", layout.ErrMalformed)
		}
		fields, _ := reply[1].([]any)
		found, err := ProfilesIn(fields)
		if err != nil {
			return store.ProfilePage{}, call.Wrap("read", err)
		}
		for agent, profile := range found {
			page.Profiles = append(page.Profiles, store.Profiled{Agent: agent, Profile: profile})
		}
		if cursor = layout.Text(reply[0]); cursor == "0" {
			at++
		}
	}
	if at < len(s.db.Parts) {
		page.Next = fmt.Sprintf("%d.%s", at, cursor)
	}
	return page, addUse(ctx, s, page.Profiles)
}

// profileAlone is a page with the profile of one agent, if it has one.
func profileAlone(ctx context.Context, s *View, agent string) (page store.ProfilePage, err error) {
	profile, err := s.ProfileOf(ctx, agent)
	if err != nil || len(profile) == 0 {
		return page, err
	}
	page.Profiles = []store.Profiled{{Agent: agent, Profile: profile}}
	return page, addUse(ctx, s, page.Profiles)
}

// ProfilesIn are the profiles in a list of agents and profiles in turn.
func ProfilesIn(list any) (map[string][]byte, error) {
	fields, _ := list.([]any)
	var out map[string][]byte // nil for none, which is nearly always
	if len(fields) > 0 {
		out = make(map[string][]byte, len(fields)/2)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		agent, err := layout.Decode(layout.Text(fields[i]))
		if err != nil {
			return nil, err
		}
		out[agent] = layout.Data(layout.Text(fields[i+1]))
	}
	return out, nil
}

// addUse adds how much is used of the quotas of some agents, where they have one.
func addUse(ctx context.Context, s *View, profiles []store.Profiled) error {
	var calls []call.Call
	at := map[string]*store.Profiled{}
	members := map[int]int{} // the call of a partition
	for i := range profiles {
		p := s.db.PartitionOf(profiles[i].Agent)
		if _, some := members[p]; !some {
			members[p] = len(calls)
			calls = append(calls, call.Call{Script: &s.db.Scripts.Quotas, Partition: p})
		}
		c := &calls[members[p]]
		c.Args = append(c.Args, layout.Encode(profiles[i].Agent))
		at[layout.Encode(profiles[i].Agent)] = &profiles[i]
	}
	if len(calls) == 0 {
		return nil
	}
	replies, err := s.db.Run(ctx, "read", calls)
	if err != nil {
		return err
	}
	for _, reply := range replies {
		for i := 1; i+4 < len(reply); i += 5 {
			if p := at[layout.Text(reply[i])]; p != nil {
				n := func(k int) int { return int(layout.Number(reply[i+k])) }
				p.Use = &store.QuotaUse{Live: n(1), Recurring: n(2), Bytes: int64(n(3)) << 10, Submits: n(4)}
			}
		}
	}
	return nil
}
