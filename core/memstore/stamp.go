package memstore

// Stamps: which definitions are stored.

import (
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Stamp notes that definitions are stored; see [store.Bounds].
func (s *Store) Stamp(ctx context.Context, stamp string) error {
	if err := ctx.Err(); err != nil {
		return &store.Error{Verb: "control", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		p.stamps = append(slices.DeleteFunc(p.stamps, func(known string) bool { return known == stamp }), stamp)
		p.stamps = p.stamps[max(0, len(p.stamps)-store.MostStamps):]
	}
	return nil
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
