package inspect

// The processes of a store.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Processes are the processes that have reported within the last minute what they run, and this one if it handles anything, by name. A process
// reports while its handlers run, and a host that calls Announce while it lives. Without Config.Presence only this process
// is known.
func (s *View) Processes(ctx context.Context) ([]model.Process, error) {
	var said map[string][]byte
	if s.base.Config.Presence != nil {
		var err error
		if said, err = s.base.Config.Presence.Processes(ctx); err != nil {
			return nil, err
		}
	}
	all := slices.Collect(maps.Values(s.base.Decoded(said)))
	store.Sort(all, func(a, b *model.Process) int { return cmp.Or(cmp.Compare(a.Name, b.Name), a.At.Compare(b.At)) })
	return all, nil
}

// lastWorker says which worker outside has asked for a kind last, unless it or another still does.
func (e *Explanation) lastWorker(kind string) string {
	for _, p := range e.processes {
		if p.Handles(kind) {
			return ""
		}
	}
	p, found := base.LastWorker(e.said, kind)
	if !found {
		return ""
	}
	return fmt.Sprintf("; the last one, %s, was seen %s ago, at %s", p.Name, store.ShortDuration(e.Now.Sub(p.At).Round(time.Second)), ClockTime(p.At))
}
