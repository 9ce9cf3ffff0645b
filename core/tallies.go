package core

// Runs of this process, and runs taken back from other processes, counted for the window of all.

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// tallies are the counts of this process that were not added yet.
type tallies struct {
	adding sync.Mutex // held by the one that calls the store

	mu      sync.Mutex
	kinds   map[string]*store.KindWindow
	dead    map[string]int64 // runs that were taken back, by the names of the processes that had died
	added   time.Time
	unknown *store.Tally // was sent, and not acknowledged: it is sent again before anything else
	seq     int64
}

// countRun counts a run whose end is stored, if it counts and Config.Recent is set.
func (s *Scheduler) countRun(r *store.RunStat) {
	if r == nil || s.config.Recent == nil {
		return
	}
	t := &s.tallies
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[r.Kind]
	if k == nil {
		if t.kinds == nil {
			t.kinds = map[string]*store.KindWindow{}
		}
		k = &store.KindWindow{Kind: r.Kind}
		t.kinds[r.Kind] = k
	}
	k.Runs++
	if r.Failed {
		k.Failures++
	}
	k.Lags[store.LagStep(r.Lag)]++
}

// next is the tally to add now; nil if it is empty, or it is too early.
func (t *tallies) next(process string, now time.Time, every time.Duration) *store.Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.added) < every && !t.added.IsZero() || t.unknown == nil && len(t.kinds)+len(t.dead) == 0 {
		return nil
	}
	t.added = now
	if t.unknown == nil {
		t.seq++
		t.unknown = &store.Tally{Process: process, Seq: t.seq}
		for _, k := range t.kinds {
			t.unknown.Kinds = append(t.unknown.Kinds, *k)
		}
		t.unknown.Recovered = t.dead
		t.kinds, t.dead = nil, nil
	}
	return t.unknown
}

// addTallies adds the counts, unless it did so a moment ago. Without Config.Recent it does nothing.
func (s *Scheduler) addTallies(ctx context.Context, every time.Duration) {
	if s.config.Recent == nil || !s.tallies.adding.TryLock() {
		return
	}
	defer s.tallies.adding.Unlock()
	tally := s.tallies.next(s.nonce, s.config.Clock.Now(), every)
	if tally == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestLook)
	defer cancel()
	if err := s.config.Recent.Tally(ctx, *tally); err != nil {
		s.config.Logger.DebugContext(ctx, "cannot add to the counters of the last hours", slog.Any("err", err))
		return
	}
	s.tallies.mu.Lock()
	s.tallies.unknown = nil
	s.tallies.mu.Unlock()
}

// tellRecovered counts, logs and reports the runs that a claim has taken back, with the processes that they were of. Their names are known
// as long as their announcements are kept.
func (p *pull) tellRecovered(c *store.Claim) {
	s := p.s
	ctx, cancel := p.call(longestLook)
	known := s.base.Processes(ctx)
	cancel()
	for _, tag := range slices.Sorted(maps.Keys(c.From)) {
		name := tag
		if process, is := known[tag]; is {
			name = process.Name
		}
		n := c.From[tag]
		if s.config.Recent != nil {
			s.tallies.mu.Lock()
			if s.tallies.dead == nil {
				s.tallies.dead = map[string]int64{}
			}
			s.tallies.dead[name] += int64(n)
			s.tallies.mu.Unlock()
		}
		s.config.Logger.WarnContext(p.ctx, "runs of a process that died, or that left them behind, wait to be run again",
			slog.Int("runs", n), slog.String("process", name))
		s.base.Emit(Event{Type: model.EventRecover, From: StatusInProgress, Status: StatusWaiting, By: check.ByDuly, Count: n, Reason: "of process " + name})
	}
	s.addTallies(p.ctx, 0) // its runs may take long: who looks meanwhile is to see it
}
