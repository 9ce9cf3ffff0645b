package world

// The row of tallies: the counters of what has run lately.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/window"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var tallyOnce = invariant("tally-once", "16", "The counters of the last hours have no more runs than have ended, whatever was sent again.")

// AskWindow reads the counters.
const AskWindow draw.RequestKind = "window"

var tallies = &feature{
	name:  "tallies",
	verbs: []string{"Tally", "Window", "Slots"},
	holds: []held{{tallyOnce, "tally-twice"}},
	plan: func(g *draw.Generator) {
		if g.In(70) {
			return
		}
		g.Plan.Settings.Tallies = true
		g.Plan.Requests = append(g.Plan.Requests, draw.Request{At: g.Span(0, g.Plan.Horizon), Process: g.IntN(4), Kind: AskWindow})
	},
	config: func(w *World, p *process, c *core.Config) {
		if w.plan.Settings.Tallies {
			c.Recent = &bus{p: p}
		}
	},
	asks: map[draw.RequestKind]asking{AskWindow: func(ctx context.Context, _ *World, p *process, _ *draw.Request) (func(), error) {
		_, err := p.s.Window(ctx, time.Hour)
		if err == nil {
			_, err = p.s.Trend(ctx, time.Hour, 12)
		}
		return func() {}, err
	}},
	watch: watchTallies,
}

func watchTallies(a *auditor, _ *storeModel) watcher {
	ended := int64(0)
	return watcher{
		settled: func(s *store.Settlement, _ *task, _ *store.Settled) {
			if s.Tally != nil {
				ended++
			}
		},
		called: func(_ *call, request, _ any) {
			if _, ok := request.(window.Tally); ok {
				a.tallied(ended)
			}
		},
	}
}

// tallied compares the counters with the runs whose ends were stored.
func (a *auditor) tallied(ended int64) {
	recent, ok := a.w.store.(window.Recent)
	if !ok || a.w.restored {
		return
	}
	kinds, _, err := recent.Window(a.w.ctx, window.KeptSlots)
	runs := int64(0)
	for i := range kinds {
		runs += kinds[i].Runs
	}
	a.must(tallyOnce, err != nil || runs <= ended, "%d runs are counted, and %d have ended", runs, ended)
	hours, _, err := recent.Slots(a.w.ctx, window.LongSlot, window.Kept(window.LongSlot))
	runs = 0
	for i := range hours {
		for k := range hours[i].Kinds {
			runs += hours[i].Kinds[k].Runs
		}
	}
	a.must(tallyOnce, err != nil || runs <= ended, "%d runs are counted by the hour, and %d have ended", runs, ended)
}

// The verbs of the counters, as a process calls them.
var _ window.Recent = (*bus)(nil)

// Tally adds to the counters.
func (b *bus) Tally(ctx context.Context, t window.Tally) error {
	w := b.p.w
	_, err := through(ctx, b, "Tally", func() string { return "" }, func(st store.Store) (struct{}, error) {
		err := st.(window.Recent).Tally(w.free(), t)
		if err == nil {
			w.audit.called(t, nil)
		}
		return struct{}{}, err
	})
	return err
}

// Window are the counters.
func (b *bus) Window(ctx context.Context, slots int) (kinds []window.Kind, now moment.Millis, err error) {
	kinds, err = through(ctx, b, "Window", func() string { return "" }, func(st store.Store) ([]window.Kind, error) {
		kinds, at, err := st.(window.Recent).Window(b.p.w.free(), slots)
		now = at
		return kinds, err
	})
	return kinds, now, err
}

// Slots are the counters of each time.
func (b *bus) Slots(ctx context.Context, each time.Duration, n int) (slots []window.Slot, now moment.Millis, err error) {
	slots, err = through(ctx, b, "Slots", func() string { return "" }, func(st store.Store) ([]window.Slot, error) {
		slots, at, err := st.(window.Recent).Slots(b.p.w.free(), each, n)
		now = at
		return slots, err
	})
	return slots, now, err
}
