package memstore

// The events of all processes that share the store, for subscribers.

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// feed.Feed is optional; this line has the compiler check it.
var _ feed.Feed = (*Store)(nil)

// events has the published events, as Redis has them.
type events struct {
	until   atomic.Int64  // ms; the feed has subscribers until then. It is read without the lock, as each event reads it
	epoch   moment.Millis // since when
	n       int64         // of the last event of the epoch
	entries []feed.Item
	secret  []byte
}

// Listened reports whether the feed has subscribers; see [feed.Feed].
func (s *Store) Listened() bool {
	until := s.feed.until.Load()
	return until > 0 && moment.Millis(until) > s.now()
}

// Publish keeps events while the feed has subscribers; see [feed.Feed].
func (s *Store) Publish(ctx context.Context, lost int, events [][]byte) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, &store.Error{Verb: "publish", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.feed
	if !s.Listened() {
		return false, nil
	}
	keep := func(k int, data []byte) {
		f.n += int64(k)
		f.entries = append(f.entries, feed.Item{ID: fmt.Sprintf("%d-%d", f.epoch, f.n), Data: bytes.Clone(data)})
	}
	if lost > 0 {
		keep(lost, nil)
	}
	for _, e := range events {
		keep(1, e)
	}
	// Twice as many may be there before the older half goes, so that not each call moves all of them.
	if len(f.entries) > 2*feed.Kept {
		f.entries = append([]feed.Item(nil), f.entries[len(f.entries)-feed.Kept:]...)
	}
	return true, nil
}

// Follow returns the published events; see [feed.Feed].
func (s *Store) Follow(ctx context.Context, q feed.Follow) (feed.Page, error) {
	if err := ctx.Err(); err != nil {
		return feed.Page{}, &store.Error{Verb: "follow", Err: err}
	}
	after, err := feed.ID(q.After)
	if err != nil {
		return feed.Page{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f, now := &s.feed, s.now()
	if !s.Listened() {
		f.epoch, f.n = max(now, f.epoch+1), 0
	}
	f.until.Store(int64(now.Add(q.For)))
	last := ""
	if n := len(f.entries); n > 0 {
		last = f.entries[n-1].ID
	}
	return feed.NewPage(q, int64(f.epoch), last, f.behind(after, q.Limit))
}

// FeedSecret is made at the first call; see [feed.Feed].
func (s *Store) FeedSecret(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "follow", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feed.secret == nil {
		s.feed.secret = make([]byte, feed.SecretLen)
		_, _ = rand.Read(s.feed.secret) // it never fails
	}
	return bytes.Clone(s.feed.secret), nil
}

// behind are the first entries after an id.
func (f *events) behind(id string, limit int) []feed.Item {
	if id == "" {
		return nil
	}
	at := len(f.entries)
	for at > 0 && feed.Before(id, f.entries[at-1].ID) {
		at--
	}
	return f.entries[at:min(len(f.entries), at+limit)]
}
