// Package printing collects what the runs of a process print, and sends it to the store: at most once a second while a run goes on, and when it ends,
// for all runs at once. A run that prints nothing costs nothing. No run waits for it and none fails by it: what comes faster than it is sent, or
// cannot be sent, is left out.
package printing

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// Bounds of a sender.
const (
	// Every is how often what a run prints is sent at most while it goes on.
	Every = time.Second
	// Within is how long the store has for an answer.
	Within = 2 * time.Second
	// longestPause is the longest pause between attempts while the store does not answer.
	longestPause = 15 * time.Second
	// mostTries is how often the end of an output is sent, and mostEnded how many of them wait while the store does not answer.
	mostTries = 8
	mostEnded = 256
	// mostBytes is how much is sent in one call: more than that, in several.
	mostBytes = 1 << 20
)

// Sender sends the output of the runs of a process. It has no goroutine of its own, but for the time of a call.
type Sender struct {
	store output.Keeper
	clock model.Clock

	known atomic.Int64 // runs in byKey
	mu    sync.Mutex
	byKey map[any]*Run

	open    []*Run // that go on, and have printed what is not sent
	ended   []*Run // whose last chunk is not sent
	flight  []*Run // whose chunks are being sent
	sending bool
	failed  int // calls in a row
	stop    func() bool
	at      time.Time // when the timer fires; zero without one
}

// New makes a sender for a store; nil if that is nil.
func New(st output.Keeper, clock model.Clock) *Sender {
	if st == nil {
		return nil
	}
	return &Sender{store: st, clock: clock, byKey: map[any]*Run{}}
}

// Of is the output of the run with a key, which is made by its first call. What is made here is ended by End. Nil without a sender.
func (s *Sender) Of(key any, about func() output.Chunk) *Run {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byKey[key]
	if r == nil {
		r = &Run{of: s, about: about(), sent: make(chan struct{})}
		s.byKey[key] = r
		s.known.Add(1)
	}
	return r
}

// End ends the output of the run with a key, if it has any: what it prints from then on is dropped. lost is set if another process has the run:
// then nothing of it is sent any more.
func (s *Sender) End(key any, lost bool) {
	// Nearly no run prints, and this is called for each.
	if s == nil || s.known.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byKey[key]
	if r == nil {
		return
	}
	delete(s.byKey, key)
	s.known.Add(-1)
	s.open = slices.DeleteFunc(s.open, func(o *Run) bool { return o == r })
	if !r.end(lost) {
		r.finish()
		return
	}
	if len(s.ended) >= mostEnded {
		s.ended[0].finish()
		s.ended = slices.Delete(s.ended, 0, 1)
	}
	// guard: output-ends
	s.ended = append(s.ended, r)
	s.plan(s.pause())
}

// news has the output of a run sent that goes on.
func (s *Sender) news(r *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.isEnded() { // meanwhile
		return
	}
	s.open = append(s.open, r)
	s.plan(max(Every, s.pause()))
}

// pause is how long to wait after failures.
func (s *Sender) pause() time.Duration {
	if s.failed == 0 {
		return 0
	}
	return min(Every<<min(s.failed-1, 8), longestPause)
}

// plan makes sure that the next call is made within d. The mutex is held. A call under way plans the next one itself.
func (s *Sender) plan(d time.Duration) {
	at := s.clock.Now().Add(d)
	switch {
	case s.sending, !s.at.IsZero() && !at.Before(s.at):
		return
	case !s.at.IsZero():
		s.stop()
	}
	s.at = at
	s.stop = s.clock.AfterFunc(d, func() {
		s.mu.Lock()
		if s.sending || s.at.IsZero() { // a timer that has fired can no longer be stopped
			s.mu.Unlock()
			return
		}
		s.at, s.sending = time.Time{}, true
		s.mu.Unlock()
		s.send()
	})
}

// send sends what there is, until no output of a run is left that has ended.
func (s *Sender) send() {
	s.mu.Lock()
	for first := true; first || len(s.ended) > 0 && s.failed == 0; first = false {
		s.flight, s.ended = s.ended, nil
		if first { // those that go on have waited for a second
			s.flight, s.open = append(s.flight, s.open...), nil
		}
		runs := s.flight
		s.mu.Unlock()
		again, err := s.sendAll(runs)
		s.mu.Lock()
		s.flight = nil
		if s.failed++; err == nil {
			s.failed = 0
		}
		for _, r := range again {
			if ended := r.isEnded(); ended && !slices.Contains(s.ended, r) {
				s.ended = append(s.ended, r)
			} else if !ended {
				s.open = append(s.open, r)
			}
		}
	}
	s.sending = false
	if len(s.open)+len(s.ended) > 0 {
		s.plan(max(Every, s.pause()))
	}
	s.mu.Unlock()
}

// sendAll sends the output of runs, in calls of a bounded size. It returns those to be sent again, and the last error of the store.
func (s *Sender) sendAll(runs []*Run) (again []*Run, failed error) {
	for len(runs) > 0 {
		turn, chunks := taken(&runs)
		if len(turn) == 0 {
			break
		}
		ctx, cancel := context.WithTimeout(context.Background(), Within) //nolint:forbidigo // the calls that printed have ended, and wait for nothing
		errs, err := s.store.Print(ctx, chunks)
		cancel()
		for i, r := range turn {
			one := err
			if one == nil {
				one = errs[i]
			}
			if !lost(one) {
				failed = cmp.Or(one, failed)
			}
			if r.took(&chunks[i], one) {
				again = append(again, r)
			}
		}
	}
	return again, failed
}

// taken takes the chunks of the first of some runs, as many as one call sends, and leaves the others. A run that has ended while its turn came is passed
// over if its end is sent.
func taken(runs *[]*Run) (turn []*Run, chunks []output.Chunk) {
	size := 0
	for len(*runs) > 0 && size < mostBytes {
		r := (*runs)[0]
		*runs = (*runs)[1:]
		if !r.isDone() {
			turn, chunks = append(turn, r), append(chunks, r.take())
			size += len(chunks[len(chunks)-1].Data)
		}
	}
	return turn, chunks
}

// Flush returns once the output of all runs that have ended so far is sent or given up, or after d. It waits for no store that has not answered lately.
func (s *Sender) Flush(d time.Duration) {
	if s == nil {
		return
	}
	s.mu.Lock()
	var waits []chan struct{}
	if s.failed == 0 {
		for _, r := range slices.Concat(s.flight, s.ended) {
			if r.isEnded() {
				waits = append(waits, r.sent)
			}
		}
	}
	s.mu.Unlock()
	if len(waits) == 0 {
		return
	}
	over := make(chan struct{})
	stop := s.clock.AfterFunc(d, func() { close(over) })
	defer stop()
	for _, sent := range waits {
		select {
		case <-sent:
		case <-over:
			return
		}
	}
}

// lost reports whether an error says that another run has the place of this one.
func lost(err error) bool { return errors.Is(err, store.ErrLeaseLost) }
