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

// runCounters are the counts of this process that were not added yet.
type runCounters struct {
	adding sync.Mutex // held by the one that calls the store

	mu      sync.Mutex
	kinds   map[string]*store.KindWindow
	dead    map[string]int64 // runs that were taken back, by the names of the processes that had died
	levels  store.Levels     // what was measured for all
	slot    int64            // in which this process has last seen to it that they are measured
	added   time.Time
	unknown *store.Tally // was sent, and not acknowledged: it is sent again before anything else
	seq     int64
}

// countRun counts a run whose end is stored, if it counts and Config.Recent is set.
func (s *Scheduler) countRun(r *store.RunStat) {
	if r == nil || s.config.Recent == nil {
		return
	}
	t := &s.runCounters
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
func (t *runCounters) next(process string, now time.Time, every time.Duration) *store.Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.added) < every && !t.added.IsZero() || t.unknown == nil && len(t.kinds)+len(t.dead)+len(t.levels.Depth)+len(t.levels.Used) == 0 {
		return nil
	}
	t.added = now
	if t.unknown == nil {
		t.seq++
		t.unknown = &store.Tally{Process: process, Seq: t.seq}
		for _, k := range t.kinds {
			t.unknown.Kinds = append(t.unknown.Kinds, *k)
		}
		t.unknown.Recovered, t.unknown.Levels = t.dead, t.levels
		t.kinds, t.dead, t.levels = nil, nil, store.Levels{}
	}
	return t.unknown
}

// flushRunCounters adds the counts, unless it did so a moment ago. Without Config.Recent it does nothing.
func (s *Scheduler) flushRunCounters(ctx context.Context, every time.Duration) {
	if s.config.Recent == nil || !s.runCounters.adding.TryLock() {
		return
	}
	defer s.runCounters.adding.Unlock()
	tally := s.runCounters.next(s.nonce, s.config.Clock.Now(), every)
	if tally == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestLook)
	defer cancel()
	if err := s.config.Recent.Tally(ctx, *tally); err != nil {
		s.config.Logger.DebugContext(ctx, "cannot add to the counters of the last hours", slog.Any("err", err))
		return
	}
	s.runCounters.mu.Lock()
	s.runCounters.unknown = nil
	s.runCounters.mu.Unlock()
}

// measure measures what waits and what of budgets is used, in each slot that no process has done so yet. It asks once in a slot whether one has.
func measure(ctx context.Context, s *Scheduler) {
	if s.config.Recent == nil {
		return
	}
	slot := store.SlotOf(store.MillisOf(s.config.Clock.Now()), store.SlotTime)
	t := &s.runCounters
	t.mu.Lock()
	seen := t.slot == slot
	t.slot = slot
	t.mu.Unlock()
	if seen {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	levels, err := levelsNow(ctx, s)
	if err != nil {
		s.config.Logger.DebugContext(ctx, "cannot measure what waits and what is used", slog.Any("err", err))
		return
	}
	t.mu.Lock()
	t.levels = levels
	t.mu.Unlock()
	s.flushRunCounters(ctx, 0)
}

// levelsNow are what to add to the slot of now; empty if that has some.
func levelsNow(ctx context.Context, s *Scheduler) (store.Levels, error) {
	var out store.Levels
	slots, _, err := s.config.Recent.Slots(ctx, store.SlotTime, 1)
	if err != nil || len(slots) == 1 && (slots[0].Depth != nil || slots[0].Used != nil) {
		return out, err
	}
	stats, err := s.base.Store.Stats(ctx)
	if err != nil {
		return out, err
	}
	budgets, err := s.base.Store.Budgets(ctx)
	if err != nil {
		return out, err
	}
	out = store.Levels{Depth: map[string]int64{}, Used: map[string]int64{}}
	for i := range stats.Kinds {
		out.Depth[stats.Kinds[i].Kind] = stats.Kinds[i].Depth()
	}
	for i := range budgets {
		out.Used[budgets[i].About.String()] = int64(1000 * budgets[i].Share())
	}
	return out, nil
}

// reportRecovered counts, logs and reports the runs that a claim has taken back, with the processes that they were of. Their names are known
// as long as their announcements are kept.
func (p *pull) reportRecovered(c *store.Claim) {
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
			s.runCounters.mu.Lock()
			if s.runCounters.dead == nil {
				s.runCounters.dead = map[string]int64{}
			}
			s.runCounters.dead[name] += int64(n)
			s.runCounters.mu.Unlock()
		}
		s.config.Logger.WarnContext(p.ctx, "runs of a process that died, or that left them behind, wait to be run again",
			slog.Int("runs", n), slog.String("process", name))
		s.base.Emit(Event{Type: model.EventRecover, From: StatusInProgress, Status: StatusWaiting, By: check.ByDuly, Count: n, Reason: "of process " + name})
	}
	s.flushRunCounters(p.ctx, 0) // its runs may take long: who looks meanwhile is to see it
}
