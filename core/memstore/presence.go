package memstore

// What processes report about themselves, and which definitions they have stored.

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// store.Presence is optional; this line has the compiler check it.
var _ store.Presence = (*Store)(nil)

// said is the report of a process, and until when it counts.
type said struct {
	info  []byte
	until moment.Millis
}

// Announce keeps the report of a process; see [store.Presence].
func (s *Store) Announce(ctx context.Context, tag string, info []byte, ttl time.Duration) (others int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, &store.Error{Verb: "presence", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	// The process that announces cleans up, so that nothing has to wake for it.
	maps.DeleteFunc(s.processes, func(_ string, p said) bool { return p.until <= now })
	// An unknown process does not push another out: those that run already matter more.
	if _, known := s.processes[tag]; known || len(s.processes) < store.MaxProcesses {
		s.processes[tag] = said{slices.Clone(info), now.Add(ttl)}
	}
	for other := range s.processes {
		if other != tag && !strings.HasPrefix(other, "-") {
			others++
		}
	}
	return others, nil
}

// Processes returns the reports of processes; see [store.Presence].
func (s *Store) Processes(ctx context.Context) (map[string][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "presence", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, out := s.now(), map[string][]byte{}
	for tag, p := range s.processes {
		if p.until > now {
			out[tag] = slices.Clone(p.info)
		}
	}
	return out, nil
}

// Stamp notes that definitions are stored; see [store.Bounds].
func (s *Store) Stamp(ctx context.Context, stamp string, of ...bound.BudgetTarget) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, &store.Error{Verb: "control", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := true
	for _, p := range s.parts {
		// guard: stamp-in-memory
		if !areSet(p.limits, of) {
			all = false
			continue
		}
		p.stamps = append(slices.DeleteFunc(p.stamps, func(known string) bool { return known == stamp }), stamp)
		p.stamps = p.stamps[max(0, len(p.stamps)-bound.MostStamps):]
	}
	return all, nil
}

// Stamped reports whether a partition has a stamp; see [store.Bounds].
func (s *Store) Stamped(ctx context.Context, partition int, stamp string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, &store.Error{Verb: "read", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.parts[partition].stamps, stamp), nil
}
