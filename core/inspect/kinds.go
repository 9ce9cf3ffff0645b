package inspect

// What is known about each kind.

import (
	"context"
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/count"
)

// KindInfo is what is known about a kind: what this process has for it, and what the store counts for all processes.
type KindInfo struct {
	Kind     string
	Handled  bool             // this process has its handler
	Batches  bool             // its handler runs batches
	Gated    bool             // this process asks a gate before its runs
	Known    bool             // this process has its handler, or its own settings: else its Settings are the defaults
	Settings model.KindConfig // in force in this process; zero is none, which in KindConfig is negative
	Slots    model.KindSlots  // of this process; zero if the kind has no bound
	// Processes is how many have recently reported that they handle it, this one included; zero also if Config.Presence is not set.
	Processes int
	Counters  count.KindCounters // of the whole store
	Pause     *model.PauseInfo   // of the kind itself; nil if it is not paused
	Limits    []bound.LimitUse   // about the kind itself
}

// KindList are all kinds, by name.
type KindList struct {
	Kinds []KindInfo
	// Cut reports that there are too many pauses to read all: a kind without a Pause may be paused.
	Cut bool
}

// mostHolds is how many pauses are read to find those of kinds: the store has them in no order.
const mostHolds = 5000

// DescribeKinds returns each kind that has a handler or settings in this process, or tasks, a limit or a pause in the store. Its cost does not
// depend on how many tasks there are.
func (s *View) DescribeKinds(ctx context.Context) (KindList, error) {
	stats, err := s.base.Store.Stats(ctx)
	if err != nil {
		return KindList{}, err
	}
	limits, err := s.base.Store.Limits(ctx)
	if err != nil {
		return KindList{}, err
	}
	pauses, cut, err := s.kindPauses(ctx)
	if err != nil {
		return KindList{}, err
	}
	all := s.engine.OwnKinds()
	of := func(kind string) *KindInfo {
		if all[kind] == nil {
			all[kind] = s.engine.OwnKind(kind)
		}
		return all[kind]
	}
	for i := range stats.Kinds {
		of(stats.Kinds[i].Kind).Counters = stats.Kinds[i].KindCounters
	}
	for i := range limits {
		if kind := limits[i].About.Kind; kind != "" {
			of(kind).Limits = append(of(kind).Limits, limits[i])
		}
	}
	for i := range pauses {
		of(pauses[i].Target.Kind).Pause = &pauses[i]
	}
	countHandling(s.base.Processes(ctx), all, of)
	list := KindList{Cut: cut}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		list.Kinds = append(list.Kinds, *all[kind])
	}
	return list, nil
}

// countHandling counts the processes that handle each kind.
func countHandling(processes map[string]model.Process, all map[string]*KindInfo, of func(kind string) *KindInfo) {
	for name := range processes {
		for _, kind := range processes[name].Kinds {
			of(kind).Processes++
		}
		for _, kind := range check.Everywhere {
			if own := all[kind]; own != nil && len(processes[name].Kinds) > 0 { // each process that runs anything handles it
				own.Processes++
			}
		}
	}
}

// kindPauses are the pauses of kinds, and whether there may be more.
func (s *View) kindPauses(ctx context.Context) (pauses []model.PauseInfo, cut bool, err error) {
	q := store.PageOf{Limit: MaxPage}
	for seen := 0; seen < mostHolds; {
		page, err := s.base.Store.Holds(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for i := range page.Holds {
			if page.Holds[i].Target.Kind != "" {
				pauses = append(pauses, codec.PauseInfo(&page.Holds[i]))
			}
		}
		if page.Next == "" {
			return pauses, false, nil
		}
		seen, q.After = seen+max(len(page.Holds), 1), page.Next
	}
	return pauses, true, nil
}
