package world

// A store that is given an older past, as after a failover to a replica that lacked the last writes.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// deed is something that the store and the model have seen, so that both can be made again.
// It keeps the time of then, at which the new store has to see it: due times and leases depend on it.
type deed struct {
	at   time.Duration
	full bool
	do   func()
}

// remember keeps what happens now, for a plan that restores the store.
// Histories without a restore keep nothing, as that would only cost memory.
func (w *World) remember(do func()) {
	if w.restores {
		w.deeds = append(w.deeds, deed{w.elapsed(), w.full, do})
	}
}

// restore makes a new store and a new model, and replays to both what happened up to back before now. Processes and clients
// remember the rest.
// What was acknowledged in the seconds that are lost is gone by design: assertions about what processes
// and clients remember ask World.restored first. All others hold as before.
func (w *World) restore(back time.Duration) {
	until := w.elapsed() - back
	w.trace("the store has its past of %s ago", back)
	st, err := w.open(&w.plan.Settings, w.clock)
	if err != nil {
		panic(err) // the test cannot go on
	}
	story := w.story
	w.store, w.story, w.silent = st, nil, true
	w.audit.model, w.reader = w.audit.watch(newModel(w)), w.newReader()
	n := 0
	for ; n < len(w.deeds) && w.deeds[n].at <= until; n++ {
		then := draw.Begin.Add(w.deeds[n].at)
		w.clock.then, w.full = &then, w.deeds[n].full
		w.deeds[n].do()
	}
	now := draw.Begin.Add(until)
	w.clock.then = &now
	for _, r := range w.runs { // what was claimed before, and began since, goes on
		if t := w.audit.model.live(ref{r.info.Agent, r.info.ID}); !r.fresh && t != nil && t.phase == claimed && t.lease.fence == r.info.Fence && t.lease.began == nil {
			w.audit.runs.began(r)
		}
	}
	// What was forgotten must not come back with a second restore.
	w.deeds, w.clock.then = w.deeds[:n], nil
	w.story, w.silent, w.restored = story, false, true
}

// newReader asks the store without the bus.
func (w *World) newReader() *core.Scheduler {
	s, err := core.New(w.store, core.Config{Name: "auditor", Clock: w.clock})
	if err != nil {
		panic(err)
	}
	return s
}
