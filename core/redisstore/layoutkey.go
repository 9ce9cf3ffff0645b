package redisstore

// The key that says how a prefix is laid out, and who moves it.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
)

// layoutKey is the key that says how a prefix is laid out. It has no hash tag: it belongs to no partition, and in a cluster may be on any node.
type layoutKey struct {
	client redis.UniversalClient
	prefix string
}

// name is the whole key.
func (k layoutKey) name() string { return k.prefix + "layout" }

// stored is the layout that is stored; empty for a new prefix.
func (k layoutKey) stored(ctx context.Context) (map[string]string, error) {
	all := k.client.Do(ctx, "HGETALL", k.name())
	if err := all.Err(); err != nil {
		return nil, call.Wrap("open", err)
	}
	return layout.FieldsOf(all), nil
}

// create stores the layout of a new prefix, and an id by which stores can be distinguished. Of two processes that do so at the same time one
// sets the numbers.
func (k layoutKey) create(ctx context.Context, partitions, version int) error {
	pipe := k.client.Pipeline()
	pipe.Do(ctx, "HSETNX", k.name(), "version", strconv.Itoa(version))
	pipe.Do(ctx, "HSETNX", k.name(), "partitions", strconv.Itoa(partitions))
	pipe.Do(ctx, "HSETNX", k.name(), "id", rand.Text())
	_, err := pipe.Exec(ctx)
	if err != nil {
		return call.Wrap("open", err)
	}
	return nil
}

// keep stores the layout that this process works with if none is stored, and refuses another one.
func (k layoutKey) keep(ctx context.Context, partitions, version int) error {
	n, err := k.client.Do(ctx, "HGET", k.name(), "partitions").Int()
	switch {
	case errors.Is(err, redis.Nil):
		return k.create(ctx, partitions, version)
	case err != nil:
		return call.Wrap(call.VerbControl, err)
	case n != partitions:
		return call.Wrap(call.VerbControl, fmt.Errorf("the prefix %q was lost and has been created again with %d partitions, where this process has %d: restart this process",
			k.prefix, n, partitions))
	}
	return nil
}

// turn stores the next state of a move; errOvertaken if another process has stored one.
func (k layoutKey) turn(ctx context.Context, was, next *moving) error {
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := k.turnTo(ctx, was, string(text), next.closed(), next.From); err != nil {
		return err
	}
	next.stored = string(text)
	return nil
}

// reopen ends a move: the prefix has so many partitions, and may be opened again.
func (k layoutKey) reopen(ctx context.Context, was *moving, partitions int) error {
	return k.turnTo(ctx, was, "", was.Version, partitions)
}

// turnTo runs turnLayout.
func (k layoutKey) turnTo(ctx context.Context, was *moving, next, version string, partitions int) error {
	turned, err := k.client.Do(ctx, "EVAL", turnLayout, 1, k.name(), was.stored, next, version, was.From, partitions).Int()
	if err != nil {
		return call.Wrap(verbRepartition, err)
	}
	if turned == 0 {
		return errOvertaken
	}
	return nil
}
