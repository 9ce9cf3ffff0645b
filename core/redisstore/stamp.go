package redisstore

// Stamps: which definitions are stored. A Redis that comes back empty has lost them with everything else.

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// Stamp notes that definitions are stored; see [store.Bounds]. It restores the layout of the prefix first, which is lost with the rest: a
// process that starts later must not choose another number of partitions.
func (s *Store) Stamp(ctx context.Context, stamp string) error {
	if err := s.key.keep(ctx, len(s.db.Parts), s.layout); err != nil {
		return err
	}
	calls := make([]call.Call, len(s.db.Parts))
	for p := range calls {
		calls[p] = call.Call{Script: &s.db.Scripts.Stamp, Partition: p, Args: []any{stamp, bound.MostStamps}}
	}
	_, err := s.db.Run(ctx, call.VerbControl, calls)
	return err
}

// Stamped reports whether a partition has a stamp; see [store.Bounds].
func (s *Store) Stamped(ctx context.Context, partition int, stamp string) (bool, error) {
	ctx, cancel := s.db.Patience(ctx, call.VerbLook)
	defer cancel()
	known, err := s.db.Client.Do(ctx, "HGET", s.db.Parts[partition].Key("counters"), "stamps").Text()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, call.Wrap(call.VerbLook, err)
	}
	return slices.Contains(strings.Fields(known), stamp), nil
}
