// Package counters counts runs of this process, and runs taken back from other processes, for the window of all.
package counters

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// Runs are the counts of this process that were not added yet. Without Config.Recent of the base none are kept.
type Runs struct {
	Base *base.Base

	adding sync.Mutex // held by the one that calls the store

	mu      sync.Mutex
	kinds   map[string]*window.Kind
	dead    map[string]int64 // runs that were taken back, by the names of the processes that had died
	levels  window.Levels    // what was measured for all
	slot    int64            // in which this process has last seen to it that they are measured
	added   time.Time
	unknown *window.Tally // was sent, and not acknowledged: it is sent again before anything else
	seq     int64
}

// Count counts a run whose end is stored, if it counts.
func (t *Runs) Count(r *store.RunStat) {
	if r == nil || t.Base.Config.Recent == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[r.Kind]
	if k == nil {
		if t.kinds == nil {
			t.kinds = map[string]*window.Kind{}
		}
		k = &window.Kind{Kind: r.Kind}
		t.kinds[r.Kind] = k
	}
	k.Runs++
	if r.Failed {
		k.Failures++
	}
	k.Lags[window.LagStep(r.Lag)]++
}

// next is the tally to add now; nil if it is empty, or it is too early.
func (t *Runs) next(process string, now time.Time, every time.Duration) *window.Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.added) < every && !t.added.IsZero() || t.unknown == nil && len(t.kinds)+len(t.dead)+len(t.levels.Depth)+len(t.levels.Used) == 0 {
		return nil
	}
	t.added = now
	if t.unknown == nil {
		t.seq++
		t.unknown = &window.Tally{Process: process, Seq: t.seq}
		for _, k := range t.kinds {
			t.unknown.Kinds = append(t.unknown.Kinds, *k)
		}
		t.unknown.Recovered, t.unknown.Levels = t.dead, t.levels
		t.kinds, t.dead, t.levels = nil, nil, window.Levels{}
	}
	return t.unknown
}

// Flush adds the counts, unless it did so within a time.
func (t *Runs) Flush(ctx context.Context, every time.Duration) {
	c := &t.Base.Config
	if c.Recent == nil || !t.adding.TryLock() {
		return
	}
	defer t.adding.Unlock()
	tally := t.next(t.Base.Tag, c.Clock.Now(), every)
	if tally == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), base.LongestLook)
	defer cancel()
	if err := c.Recent.Tally(ctx, *tally); err != nil {
		c.Logger.DebugContext(ctx, "cannot add to the counters of the last hours", slog.Any("err", err))
		return
	}
	t.mu.Lock()
	t.unknown = nil
	t.mu.Unlock()
}

// Measure measures what waits and what of budgets is used, in each slot that no process has done so yet. It asks once in a slot whether one has.
func (t *Runs) Measure(ctx context.Context) {
	c := &t.Base.Config
	if c.Recent == nil {
		return
	}
	slot := window.SlotOf(moment.Of(c.Clock.Now()), window.SlotTime)
	t.mu.Lock()
	seen := t.slot == slot
	t.slot = slot
	t.mu.Unlock()
	if seen {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, base.LongestLook)
	defer cancel()
	levels, err := levelsNow(ctx, t.Base)
	if err != nil {
		c.Logger.DebugContext(ctx, "cannot measure what waits and what is used", slog.Any("err", err))
		return
	}
	t.mu.Lock()
	t.levels = levels
	t.mu.Unlock()
	t.Flush(ctx, 0)
}

// levelsNow are what to add to the slot of now; empty if that has some.
func levelsNow(ctx context.Context, b *base.Base) (window.Levels, error) {
	var out window.Levels
	slots, _, err := b.Config.Recent.Slots(ctx, window.SlotTime, 1)
	if err != nil || len(slots) == 1 && (slots[0].Depth != nil || slots[0].Used != nil) {
		return out, err
	}
	stats, err := b.Store.Stats(ctx)
	if err != nil {
		return out, err
	}
	budgets, err := b.Store.Budgets(ctx)
	if err != nil {
		return out, err
	}
	out = window.Levels{Depth: map[string]int64{}, Used: map[string]int64{}}
	for i := range stats.Kinds {
		out.Depth[stats.Kinds[i].Kind] = stats.Kinds[i].Depth()
	}
	for i := range budgets {
		out.Used[budgets[i].About.String()] = int64(1000 * budgets[i].Share())
	}
	return out, nil
}

// TakenBack counts, logs and reports runs that a claim has taken back, by the tags of the processes that they were of. The names of these are known as long as
// their announcements are kept.
func (t *Runs) TakenBack(ctx context.Context, from map[string]int, known map[string]model.Process) {
	for _, tag := range slices.Sorted(maps.Keys(from)) {
		name := tag
		if process, is := known[tag]; is {
			name = process.Name
		}
		n := from[tag]
		if t.Base.Config.Recent != nil {
			t.mu.Lock()
			if t.dead == nil {
				t.dead = map[string]int64{}
			}
			t.dead[name] += int64(n)
			t.mu.Unlock()
		}
		t.Base.Config.Logger.WarnContext(ctx, "runs of a process that died, or that left them behind, wait to be run again",
			slog.Int("runs", n), slog.String("process", name))
		t.Base.Emit(model.Event{
			Type: model.EventRecover, From: store.StatusInProgress, Status: store.StatusWaiting, By: check.ByDuly, Count: n, Reason: "of process " + name,
		})
	}
	t.Flush(ctx, 0) // its runs may take long: who looks meanwhile is to see it
}
