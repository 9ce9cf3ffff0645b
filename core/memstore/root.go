package memstore

// Roots: how many tasks the runs below a task have submitted within an hour.

import (
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// rootName names a root in a partition, as each of them counts by itself.
type rootName struct {
	partition int
	agent, id string
}

// rootOf is the root that a submission counts for in this partition; the zero value if it has none.
func (p *partition) rootOf(t *store.Submission) rootName {
	if t.Root == nil {
		return rootName{}
	}
	return rootName{p.index, t.Root.Agent, t.Root.ID}
}

// roots are the counts of a partition.
type roots struct {
	counts map[[2]string]map[int64]int // by agent and id of the root, and span
	swept  int64                       // the span in which they were last looked through for those to forget
}

// of are the counts of a root that have not been forgotten yet.
func (r *roots) of(root *breaker.Root, now moment.Millis) map[int64]int {
	counts := r.counts[[2]string{root.Agent, root.ID}]
	maps.DeleteFunc(counts, func(slot int64, _ int) bool { return breaker.SlotEnds(slot) <= now })
	return counts
}

// refuses is an error if a root has no room for another task in addition to those that the same call has for it.
func (r *roots) refuses(root *breaker.Root, also int, now moment.Millis) error {
	if root == nil {
		return nil
	}
	counts := maps.Clone(r.of(root, now))
	if counts == nil {
		counts = map[int64]int{}
	}
	counts[breaker.Slot(now)] += also
	have := 0
	for _, n := range counts {
		have += n
	}
	// guard: breaker-number
	if have < root.Most {
		return nil
	}
	// There is room once enough of the oldest spans are forgotten.
	for _, slot := range slices.Sorted(maps.Keys(counts)) {
		if have -= counts[slot]; have < root.Most {
			return &breaker.Error{Agent: root.Agent, ID: root.ID, Limit: root.Most, Until: breaker.SlotEnds(slot), Quota: root.Quota}
		}
	}
	return &breaker.Error{Agent: root.Agent, ID: root.ID, Limit: root.Most, Quota: root.Quota} // nothing is allowed at all
}

// count counts a task that is stored.
func (r *roots) count(root *breaker.Root, now moment.Millis) {
	if root == nil {
		return
	}
	r.sweep(now)
	name := [2]string{root.Agent, root.ID}
	if r.counts[name] == nil {
		r.counts[name] = map[int64]int{}
	}
	r.counts[name][breaker.Slot(now)]++
}

// sweep forgets roots for which nothing was submitted for long, once in a span.
func (r *roots) sweep(now moment.Millis) {
	if slot := breaker.Slot(now); slot != r.swept {
		r.swept = slot
		maps.DeleteFunc(r.counts, func(_ [2]string, counts map[int64]int) bool {
			maps.DeleteFunc(counts, func(slot int64, _ int) bool { return breaker.SlotEnds(slot) <= now })
			return len(counts) == 0
		})
	}
}
