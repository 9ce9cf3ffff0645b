package core

// Batches: which runs share a call of their handler, and how long a call waits for more of them.

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// gatherEvery is how often a pull that waits for more of a batch looks whether something has fallen due: its wait is no
// reason to keep others waiting.
const gatherEvery = 5 * time.Millisecond

// batchKey is what the runs of a batch share.
type batchKey struct{ agent, kind, labels string }

// batch are runs that start in one call. It holds the slot of the first of them; the others have given theirs back.
type batch struct {
	key     batchKey
	handler *handler
	runs    []*run
	stop    func() bool // stops the timer of its wait
}

// batches are those of a pull that wait for more runs, in the order in which they began.
type batches struct {
	pull *pull

	mu   sync.Mutex
	open []*batch
}

// keyOf is the batch that a run belongs to.
func keyOf(k model.KindConfig, r *run) batchKey {
	key := batchKey{agent: r.info.Agent, kind: r.info.Kind}
	var b strings.Builder
	for _, name := range k.BatchBy {
		if name != BatchByAgent {
			value, has := r.info.Labels[name]
			fmt.Fprintf(&b, "%t%d:%s", has, len(value), value) // an empty label differs from a missing one
		}
	}
	key.labels = b.String()
	return key
}

// add puts a run into the batch that it belongs to. One that is full starts.
func (q *batches) add(h *handler, r *run) {
	p := q.pull
	k := p.s.base.Kind(h.kind)
	key := keyOf(*k, r)
	q.mu.Lock()
	i := slices.IndexFunc(q.open, func(b *batch) bool { return b.key == key })
	if i < 0 {
		i = len(q.open)
		b := &batch{key: key, handler: h}
		if k.BatchWait > 0 {
			b.stop = p.s.config.Clock.AfterFunc(q.wait(k), func() { q.start(func(other *batch) bool { return other == b }) })
		}
		q.open = append(q.open, b)
	}
	b := q.open[i]
	b.runs = append(b.runs, r)
	// guard: batch
	full := len(b.runs) >= k.Batch
	r.sharesSlot = len(b.runs) > 1
	rides := r.sharesSlot // read here, as the batch may start once the mutex is free
	q.mu.Unlock()
	if rides {
		p.slots.Give(r.claimed)
	}
	if full {
		q.start(func(other *batch) bool { return other == b })
	}
}

// wait is how long a batch of a kind waits for more: a small part of the pull's time if that is limited, as the batch has to run in it.
func (q *batches) wait(k *KindConfig) time.Duration {
	if q.pull.End.IsZero() {
		return k.BatchWait
	}
	return min(k.BatchWait, max(q.pull.End.Sub(q.pull.s.config.Clock.Now()), 0)/4)
}

// start starts those batches that wait no longer, or releases them if nothing may start any longer.
func (q *batches) start(which func(*batch) bool) {
	p := q.pull
	q.mu.Lock()
	var ready []*batch
	q.open = slices.DeleteFunc(q.open, func(b *batch) bool {
		if which(b) {
			ready = append(ready, b)
			return true
		}
		return false
	})
	q.mu.Unlock()
	for _, b := range ready {
		if b.stop != nil {
			b.stop()
		}
		if p.claiming.Err() == nil {
			p.start(b.handler, b.runs)
			continue
		}
		p.slots.Give(b.runs[0].claimed)
		for _, r := range b.runs {
			p.release(r)
		}
	}
}

// startUnwaited starts the batches whose kind waits for no more than a claim brings, those with a task of level 1, and, where no
// slot is free, all: nothing could join them.
func (q *batches) startUnwaited() {
	full := q.pull.slots.Full()
	q.start(func(b *batch) bool {
		return full || b.stop == nil || slices.ContainsFunc(b.runs, func(r *run) bool { return r.info.Level == LevelHigh })
	})
}

// startAll starts all batches, as nothing more is claimed for them.
func (q *batches) startAll() { q.start(func(*batch) bool { return true }) }

// gathers waits a little for more of the batches that wait, and reports whether the pull is to look for it. Only one that others
// follow does: any other ends when nothing is due.
func (q *batches) gathers() bool {
	p := q.pull
	if p.scope.Series == nil || p.left == 0 || p.over() {
		return false
	}
	q.mu.Lock()
	waits := len(q.open) > 0
	q.mu.Unlock()
	if !waits {
		return false
	}
	lingerFor(p, gatherEvery, nil)
	return !p.over()
}
