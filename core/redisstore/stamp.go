package redisstore

// Stamps: which definitions are stored. A Redis that comes back empty has lost them with everything else.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Stamp notes that definitions are stored; see [store.Bounds]. It restores the layout of the prefix first, which is lost with the rest: a
// process that starts later must not choose another number of partitions.
func (s *Store) Stamp(ctx context.Context, stamp string) error {
	if err := s.keepLayout(ctx); err != nil {
		return err
	}
	calls := make([]call.Call, len(s.db.Parts))
	for p := range calls {
		calls[p] = call.Call{Script: &s.db.Scripts.Stamp, Partition: p, Args: []any{stamp, store.MostStamps}}
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

// keepLayout stores the layout that this process works with if none is stored, and refuses another one.
func (s *Store) keepLayout(ctx context.Context) error {
	key := s.config.Prefix + "layout"
	n, err := s.db.Client.Do(ctx, "HGET", key, "partitions").Int()
	switch {
	case errors.Is(err, redis.Nil):
		return s.newLayout(ctx, key, len(s.db.Parts), s.layout)
	case err != nil:
		return call.Wrap(call.VerbControl, err)
	case n != len(s.db.Parts):
		return call.Wrap(call.VerbControl, fmt.Errorf("the prefix %q was lost and has been created again with %d partitions, where this process has %d: restart this process",
			s.config.Prefix, n, len(s.db.Parts)))
	}
	return nil
}

// newLayout stores the layout of a new prefix, and an id by which stores can be distinguished. Of two processes that do so at the same time one
// sets the numbers.
func (s *Store) newLayout(ctx context.Context, key string, partitions, version int) error {
	pipe := s.db.Client.Pipeline()
	pipe.Do(ctx, "HSETNX", key, "version", strconv.Itoa(version))
	pipe.Do(ctx, "HSETNX", key, "partitions", strconv.Itoa(partitions))
	pipe.Do(ctx, "HSETNX", key, "id", rand.Text())
	_, err := pipe.Exec(ctx)
	if err != nil {
		return call.Wrap("open", err)
	}
	return nil
}
