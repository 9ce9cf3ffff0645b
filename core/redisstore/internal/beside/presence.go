package beside

// What processes report about themselves: kept for a while, and nothing depends on it.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Announce keeps the report of a process; see [store.Presence].
// It has one script in common with Processes: a call that writes also drops expired reports.
func (s *Store) Announce(ctx context.Context, tag string, info []byte, ttl time.Duration) (others int, err error) {
	reply, err := s.present(ctx, tag, info, ttl)
	if err != nil || len(reply) < 2 {
		return 0, err
	}
	return int(layout.Number(reply[1])), nil
}

// Processes returns the reports of processes; see [store.Presence].
func (s *Store) Processes(ctx context.Context) (map[string][]byte, error) {
	reply, err := s.present(ctx, "", nil, 0)
	if err != nil {
		return nil, err
	}
	said := make(map[string][]byte, len(reply)/2)
	for i := 1; i+1 < len(reply); i += 2 {
		said[layout.Text(reply[i])] = []byte(layout.Text(reply[i+1]))
	}
	return said, nil
}

// present runs presence.lua, in partition 0, which every layout has. An empty tag writes nothing.
func (s *Store) present(ctx context.Context, tag string, info []byte, ttl time.Duration) ([]any, error) {
	args := []any{tag, info, ttl.Milliseconds(), store.MaxProcesses}
	replies, err := s.db.Run(ctx, "presence", []call.Call{{Script: &s.db.Scripts.Presence, Args: args}})
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}
