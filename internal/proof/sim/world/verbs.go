package world

// The verbs of the store, as a process calls them: each tells the auditor what was asked and answered, at the moment when the store
// did it. What a process sends in the order of a map is put in one order here.

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// free is a context for the store: the driver decides the fate of a call.
func (w *World) free() context.Context { return w.ctx }

// Submit stores tasks.
func (b *bus) Submit(ctx context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	w := b.p.w
	tasks = slices.Clone(tasks) // a caller that tries again changes its own, and a restored store sees what was sent
	key := func() string { return fmt.Sprint(len(tasks), tasks[0].Agent, tasks[0].ID, string(tasks[0].Body)) }
	w.uses(tasks)
	return through(ctx, b, "Submit", key, func(st store.Store) ([]store.Submitted, error) {
		if w.full {
			return nil, store.ErrFull
		}
		placed, err := st.Submit(w.free(), tasks)
		w.audit.submits.submitted(tasks, placed, err)
		return placed, err
	})
}

// Touch notes activity.
func (b *bus) Touch(ctx context.Context, touches []store.Touch) ([]store.Touched, error) {
	w := b.p.w
	key := func() string { return touches[0].Agent + touches[0].ID }
	return through(ctx, b, "Touch", key, func(st store.Store) ([]store.Touched, error) {
		if w.full {
			return nil, store.ErrFull
		}
		touched, err := st.Touch(w.free(), touches)
		w.audit.submits.touched(touches, touched, err)
		return touched, err
	})
}

// Look says when partitions are due.
func (b *bus) Look(ctx context.Context, requests []store.LookRequest) ([]store.Look, error) {
	w := b.p.w
	key := func() string { return fmt.Sprint(requests[0].Partition, len(requests), requests[0].Agents) }
	return through(ctx, b, "Look", key, func(st store.Store) ([]store.Look, error) {
		looks, err := st.Look(w.free(), requests)
		if err == nil {
			w.audit.claims.looked(requests, looks)
		}
		return looks, err
	})
}

// Claim leases tasks.
func (b *bus) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	w := b.p.w
	key := func() string {
		return fmt.Sprint(requests[0].Partition, len(requests), requests[0].Agents, requests[0].Limit, requests[0].Urgent)
	}
	return through(ctx, b, "Claim", key, func(st store.Store) ([]store.Claim, error) {
		claims, err := st.Claim(w.free(), requests)
		if err == nil {
			w.audit.claims.claimed(b.p, requests, claims)
		}
		return claims, err
	})
}

// Settle ends runs.
func (b *bus) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	w := b.p.w
	order := inOrder(runs, func(a, b store.Settlement) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Fence, b.Fence))
	})
	sorted := pick(runs, order)
	key := func() string { return fmt.Sprint(sorted[0].Agent, sorted[0].ID, sorted[0].Fence, len(runs)) }
	return through(ctx, b, "Settle", key, func(st store.Store) ([]store.Settled, error) {
		settled, err := st.Settle(w.free(), sorted)
		if err != nil {
			return nil, err
		}
		w.audit.settlements.settled(b.p, sorted, settled)
		return putBack(settled, order), nil
	})
}

// Turn is made of both, each of which may be lost by itself. Both were sent when it was: what happens to the process between them comes too late.
func (b *bus) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	return store.InTurn(ctx, &bus{p: b.p, turn: b.p.w.steps}, runs, requests)
}

// Extend moves the ends of leases.
func (b *bus) Extend(ctx context.Context, leases []store.Extension) ([]store.Extended, error) {
	w := b.p.w
	order := inOrder(leases, func(a, b store.Extension) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Fence, b.Fence))
	})
	sorted := pick(leases, order)
	for i := range sorted {
		slices.SortFunc(sorted[i].Progress, func(a, b store.Progress) int { return cmp.Compare(a.Index, b.Index) })
	}
	key := func() string { return fmt.Sprint(sorted[0].Partition, sorted[0].Fence, len(leases)) }
	return through(ctx, b, "Extend", key, func(st store.Store) ([]store.Extended, error) {
		extended, err := st.Extend(w.free(), sorted)
		if err != nil {
			return nil, err
		}
		w.audit.beats.extended(b.p, sorted, extended)
		return putBack(extended, order), nil
	})
}

// inOrder are the places of some items in their order.
func inOrder[T any](items []T, less func(a, b T) int) []int {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return less(items[i], items[k]) })
	return order
}

func pick[T any](items []T, order []int) []T {
	out := make([]T, len(items))
	for k, i := range order {
		out[k] = items[i]
	}
	return out
}

func putBack[T any](items []T, order []int) []T {
	out := make([]T, len(items))
	for k, i := range order {
		out[i] = items[k]
	}
	return out
}
