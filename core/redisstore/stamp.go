package redisstore

// Stamps: which definitions are stored. A Redis that comes back empty has lost them with everything else.

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/bounds"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// Stamp notes that definitions are stored; see [store.Bounds]. It restores the layout of the prefix first, which is lost with the rest: a
// process that starts later must not choose another number of partitions.
func (s *Store) Stamp(ctx context.Context, stamp string, of ...bound.BudgetTarget) (bool, error) {
	if err := s.key.keep(ctx, len(s.db.Parts), s.layout); err != nil {
		return false, err
	}
	args := []any{stamp, bound.MostStamps}
	for _, about := range of {
		args = append(args, bounds.Name(about))
	}
	calls := make([]call.Call, len(s.db.Parts))
	for p := range calls {
		calls[p] = call.Call{Script: &s.db.Scripts.Stamp, Partition: p, Args: args}
	}
	replies, err := s.db.Run(ctx, call.VerbControl, calls)
	if err != nil {
		return false, err
	}
	for _, reply := range replies {
		if len(reply) != 2 {
			return false, call.Wrap(call.VerbControl, layout.ErrMalformed)
		}
		if layout.Number(reply[1]) == 0 {
			return false, nil
		}
	}
	return true, nil
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
