package leases

// What a heartbeat keeps the leases of: claims, and their runs.

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Run is a run under lease.
type Run interface {
	comparable

	// Progress is the state of the run with its number, if it has news that were not sent, or in any case; nil if there are none or it has ended.
	Progress(always bool) (state []byte, number int64)
	// Claimed is its task.
	Claimed() *store.Claimed
	// Ordered notes the order to end its task.
	Ordered(order *[]byte)
}

// Call is a call of a handler, for one run or some.
type Call interface {
	comparable

	// Alone reports whether it is for one run.
	Alone() bool
	// Has reports whether it is for a task of a sort.
	Has(which func(c *store.Claimed) bool) bool
	// Cancel ends its context, for a cause.
	Cancel(cause error)
}

// claimKey names a claim: fences are numbered by partition.
type claimKey struct {
	partition int
	fence     store.Fence
}

func (k claimKey) compare(o claimKey) int {
	return cmp.Or(cmp.Compare(k.partition, o.partition), cmp.Compare(k.fence, o.fence))
}

// heldClaim is a claim whose lease the heartbeat keeps.
type heldClaim[R Run, C Call] struct {
	lease     time.Duration // the longest of its runs'; as claimed until they are known
	known     bool
	lost      bool      // it is lost, and its runs have been notified
	leaveSent bool      // the store knows that the process leaves
	deadline  time.Time // by our clock, counted from before the claim was sent
	next      time.Time // when it is extended at the latest
	runs      []heldRun[R, C]
	open      int // of them, not settled
	asked     int // open when its extension was sent
}

// heldRun is one of its runs, and the call of its handler.
type heldRun[R Run, C Call] struct {
	index   int32
	ended   bool
	claimed *store.Claimed // of one that has ended, only if its outcome is stored
	run     R              // nil before it has begun
	call    C
}

// of is a run of the claim by its index, which is its place unless the claim has come again without some; nil if it has ended.
func (c *heldClaim[R, C]) of(index int) *heldRun[R, C] {
	i := index
	if i < 0 || i >= len(c.runs) || int(c.runs[i].index) != index {
		i = slices.IndexFunc(c.runs, func(r heldRun[R, C]) bool { return int(r.index) == index })
	}
	if i < 0 || c.runs[i].ended {
		return nil
	}
	return &c.runs[i]
}

// progress is how far runs of the claim have come since it was last asked for.
func (c *heldClaim[R, C]) progress(key claimKey) (all []store.Progress) {
	var none R
	for _, r := range c.runs {
		// Not started yet, so it has no progress; its lease is extended with the claim.
		if r.run == none {
			continue
		}
		if state, number := r.run.Progress(false); state != nil {
			at := Place{key, int(r.index)}
			all = append(all, store.Progress{Run: at.Run(r.claimed), State: state, Number: number})
		}
	}
	return all
}

// cancelEnded ends the runs of tasks that were cancelled or deleted. One that shares its handler's call with others is not
// interrupted, as they would be too: it ends with the call.
func (c *heldClaim[R, C]) cancelEnded(ended []store.Ended) {
	var none C
	for _, e := range ended {
		r := c.of(e.Index)
		if r == nil || r.call == none {
			continue
		}
		cause := store.ErrLeaseLost
		if !e.Deleted && !e.Spent {
			r.run.Ordered(&e.Order)
			cause = model.ErrCancelled
		}
		if e.Spent {
			cause = outcome.ErrBudgetSpent
		}
		// guard: cancel-reaches-run
		if r.call.Alone() {
			r.call.Cancel(cause)
		}
	}
}
