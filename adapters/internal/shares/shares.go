// Package shares bounds how much of the store's time each credential takes with calls that go through many tasks.
package shares

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Default is the share of the store's time that a credential may take for long, of one second a second.
const Default = 0.25

const (
	// saved is how much time a credential has that took none for a while: most lists, exports and profile changes are done within it.
	saved = time.Second
	// longest is what one call is charged at most: a client is not charged for a store that was away, or busy with others.
	longest = 250 * time.Millisecond
	// most is how many buckets there are before those are looked for that have filled since.
	most = 1000
)

// Shares are the buckets of store time of all credentials of a process.
type Shares struct {
	part  float64
	clock core.Clock

	mu   sync.Mutex
	each map[[sha256.Size]byte]*share
}

// New makes buckets that fill by a part of the time. Default is used if that is zero; nothing is bounded if it is negative.
func New(part float64, clock core.Clock) *Shares {
	if part == 0 {
		part = Default
	}
	return &Shares{part: part, clock: clock, each: map[[sha256.Size]byte]*share{}}
}

// share is the bucket of one credential, and whose turn it is: one call of it is under way at a time, however many connections it has.
type share struct {
	turn  chan struct{}
	full  time.Time // when the bucket is full again
	users int       // requests under way
}

// Of is the pace of one request of a credential, until it ends; nil where nothing is bounded.
func (s *Shares) Of(credential [sha256.Size]byte) (pace model.Pace, end func()) {
	if s == nil || s.part < 0 {
		return nil, func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.each[credential]
	if own == nil && len(s.each) >= most {
		maps.DeleteFunc(s.each, func(_ [sha256.Size]byte, idle *share) bool { return idle.users == 0 && !idle.full.After(s.clock.Now()) })
	}
	if own == nil {
		own = &share{turn: make(chan struct{}, 1)}
		s.each[credential] = own
	}
	own.users++
	return &request{shares: s, own: own}, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if own.users--; own.users == 0 && !own.full.After(s.clock.Now()) { // as one that is not known
			delete(s.each, credential)
		}
	}
}

// lacks is how long it is until a bucket has something; zero if it has.
func (s *Shares) lacks(own *share) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.clock.Now(); own.full.After(now) {
		return max(0, own.full.Sub(now)-time.Duration(float64(saved)/s.part))
	}
	return 0
}

// charge takes from a bucket.
func (s *Shares) charge(own *share, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.clock.Now(); own.full.Before(now) {
		own.full = now
	}
	own.full = own.full.Add(time.Duration(float64(min(took, longest)) / s.part))
}

// errWaited ends a request whose time was over before its turn.
var errWaited = problem.New(core.CodeUnavailable, "the request ended while it waited for its credential's share of the store's time; what it had done stays done, and it can be sent again")

// request is what a request takes. One that has begun is slowed down, and no longer refused.
type request struct {
	shares *Shares
	own    *share

	mu    sync.Mutex
	begun bool
}

// Take waits for the turn of a call and for what the bucket lacks; see [model.Pace].
func (r *request) Take(ctx context.Context) (done func(), err error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	select {
	case r.own.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, errWaited
	}
	for lacks := r.shares.lacks(r.own); lacks > 0; lacks = r.shares.lacks(r.own) {
		if err = r.enter(); err == nil {
			err = r.rest(ctx, lacks)
		}
		if err != nil {
			<-r.own.turn
			return nil, err
		}
	}
	r.mu.Lock()
	r.begun = true
	r.mu.Unlock()
	from := r.shares.clock.Now()
	return func() {
		r.shares.charge(r.own, r.shares.clock.Now().Sub(from))
		<-r.own.turn
	}, nil
}

// enter refuses a request that has not begun, while the bucket is empty.
func (r *request) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	lacks := r.shares.lacks(r.own)
	if r.begun || lacks == 0 {
		return nil
	}
	return problem.TooMany(fmt.Sprintf("this credential has taken its share of the store's time, %.0f %% of it for long; retry in %s",
		100*r.shares.part, lacks.Truncate(time.Second)+time.Second), lacks+time.Second)
}

// rest waits by the clock.
func (r *request) rest(ctx context.Context, d time.Duration) error {
	over := make(chan struct{})
	stop := r.shares.clock.AfterFunc(d, func() { close(over) })
	defer stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return errWaited
	}
}
