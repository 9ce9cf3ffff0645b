// Package beside is what a store on Redis keeps beside tasks: events for subscribers, booked wake-ups, processes that announce themselves, messages
// of senders, and counters of the last days.
package beside

// The events of all processes, for subscribers.

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
)

// Store keeps what is none of the tasks.
type Store struct {
	db     call.DB
	prefix string
	said   *atomic.Int64 // when this process last announced subscribers in all partitions, Unix ms
}

// New is that of a database whose partitions are known.
func New(db *call.DB, prefix string) Store {
	return Store{db: *db, prefix: prefix, said: new(atomic.Int64)}
}

// Listened reports whether an answer has shown that there are subscribers; see [feed.Feed].
func (s *Store) Listened() bool { return s.db.Listened.Load() == 1 }

// Publish keeps events in partition 0, which every layout has; see [feed.Feed].
func (s *Store) Publish(ctx context.Context, lost int, events [][]byte) (bool, error) {
	args := make([]any, 1+len(events))
	args[0] = lost
	for i, e := range events {
		args[1+i] = e
	}
	replies, err := s.db.Run(ctx, "publish", []call.Call{{Script: &s.db.Scripts.Publish, Args: args}})
	if err != nil {
		return false, err
	}
	if len(replies[0]) != 2 {
		return false, call.Wrap("publish", layout.ErrMalformed)
	}
	listened := layout.Number(replies[0][1])
	s.db.Listened.Store(listened)
	return listened == 1, nil
}

// Follow returns the published events; see [feed.Feed].
func (s *Store) Follow(ctx context.Context, f feed.Follow) (feed.Page, error) {
	after, err := feed.ID(f.After)
	if err != nil {
		return feed.Page{}, err
	}
	begun := time.Now().UnixMilli() //nolint:forbidigo // how long ago this process has said that somebody listens
	calls := make([]call.Call, 1, len(s.db.Parts))
	due := begun-s.said.Load() > f.For.Milliseconds()/4
	// The answer is of partition 0. In the others it lasts longer than there: while events are taken, each process may learn so.
	for p := range s.db.Parts {
		c := call.Call{Script: &s.db.Scripts.Follow, Partition: p, Args: []any{f.For.Milliseconds(), feed.KeptFor.Milliseconds(), after, f.Limit}}
		if p == 0 {
			calls[0] = c
		} else if due {
			c.Args = []any{2 * f.For.Milliseconds(), 1, "", 0}
			calls = append(calls, c)
		}
	}
	replies, errs := s.db.RunAll(ctx, "follow", calls)
	if errs[0] != nil {
		return feed.Page{}, lacking(errs[0])
	}
	if due && cmp.Or(errs...) == nil { // a partition that is away learns it with the next call
		s.said.Store(begun)
	}
	return followed(f, replies[0])
}

// FeedSecret is kept in the first partition; see [feed.Feed]. The first call makes it.
func (s *Store) FeedSecret(ctx context.Context) ([]byte, error) {
	secret := make([]byte, feed.SecretLen)
	_, _ = rand.Read(secret) // it never fails
	key := s.db.Parts[0].Key("seal")
	if err := s.db.Client.Do(ctx, "SET", key, secret, "NX").Err(); err != nil && !errors.Is(err, redis.Nil) {
		return nil, lacking(call.Wrap("follow", err))
	}
	kept, err := s.db.Client.Do(ctx, "GET", key).Text()
	if err != nil {
		return nil, lacking(call.Wrap("follow", err))
	}
	return []byte(kept), nil
}

// lacking names the document where a user lacks a command: Open does not ask for those of events, which tasks do not need.
func lacking(err error) error {
	if call.Denied(err) {
		return fmt.Errorf("the Redis user lacks a permission that events need: %w; see docs/guarantees.md for the ACL", err)
	}
	return err
}

// followed reads the answer of follow.lua.
func followed(f feed.Follow, reply []any) (feed.Page, error) {
	if len(reply) < 3 || len(reply)%2 == 0 {
		return feed.Page{}, call.Wrap("follow", layout.ErrMalformed)
	}
	epoch, err := strconv.ParseInt(layout.Text(reply[1]), 10, 64)
	if err != nil {
		return feed.Page{}, call.Wrap("follow", layout.ErrMalformed)
	}
	var entries []feed.Item
	for i := 3; i < len(reply); i += 2 {
		entries = append(entries, feed.Item{ID: layout.Text(reply[i]), Data: []byte(layout.Text(reply[i+1]))})
	}
	page, err := feed.NewPage(f, epoch, layout.Text(reply[2]), entries)
	if err != nil {
		return page, call.Wrap("follow", layout.ErrMalformed)
	}
	return page, nil
}
