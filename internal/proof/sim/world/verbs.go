package world

// The verbs of the store, as a process, an operator or a reader calls them: each tells the auditor what was asked and answered, at the moment when the store
// did it. What a process sends in the order of a map is put in one order here.

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/message"
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

// operate lets a command through, and tells the auditor of it.
func operate[R, A any](ctx context.Context, b *bus, verb string, requests []R, do func(st store.Store) ([]A, error), seen func(r *R, a *A)) ([]A, error) {
	return through(ctx, b, verb, func() string { return fmt.Sprintf("%+v", requests) }, func(st store.Store) ([]A, error) {
		answers, err := do(st)
		if err == nil {
			for i := range requests {
				seen(&requests[i], &answers[i])
			}
		}
		return answers, err
	})
}

// Replay makes dead tasks live again.
func (b *bus) Replay(ctx context.Context, tasks []store.Replay) ([]store.Effect, error) {
	w := b.p.w
	return operate(ctx, b, "Replay", tasks, func(st store.Store) ([]store.Effect, error) { return st.Replay(w.free(), tasks) }, w.audit.orders.replayed)
}

// RunNow makes waiting tasks due now.
func (b *bus) RunNow(ctx context.Context, tasks []store.RunNow) ([]store.Effect, error) {
	w := b.p.w
	return operate(ctx, b, "RunNow", tasks, func(st store.Store) ([]store.Effect, error) { return st.RunNow(w.free(), tasks) }, w.audit.orders.ranNow)
}

// Cancel ends tasks as cancelled.
func (b *bus) Cancel(ctx context.Context, tasks []store.Cancellation) ([]store.Effect, error) {
	w := b.p.w
	return operate(ctx, b, "Cancel", tasks, func(st store.Store) ([]store.Effect, error) { return st.Cancel(w.free(), tasks) }, w.audit.orders.cancelled)
}

// Delete forgets tasks.
func (b *bus) Delete(ctx context.Context, tasks []store.Deletion) ([]store.Effect, error) {
	w := b.p.w
	return operate(ctx, b, "Delete", tasks, func(st store.Store) ([]store.Effect, error) { return st.Delete(w.free(), tasks) }, w.audit.orders.deleted)
}

// Hold keeps tasks from being claimed.
func (b *bus) Hold(ctx context.Context, holds []store.Hold) ([]store.Effect, error) {
	w := b.p.w
	return operate(ctx, b, "Hold", holds, func(st store.Store) ([]store.Effect, error) { return st.Hold(w.free(), holds) }, w.audit.orders.held)
}

// Unhold ends holds.
func (b *bus) Unhold(ctx context.Context, targets []store.Target) ([]store.Effect, error) {
	w := b.p.w
	return operate(ctx, b, "Unhold", targets, func(st store.Store) ([]store.Effect, error) { return st.Unhold(w.free(), targets) }, w.audit.orders.unheld)
}

// Audit looks at live tasks.
func (b *bus) Audit(ctx context.Context, pages []audit.Page) ([]audit.Result, error) {
	w := b.p.w
	return operate(ctx, b, "Audit", pages, func(st store.Store) ([]audit.Result, error) { return st.Audit(w.free(), pages) }, w.audit.orders.audited)
}

// Get returns tasks.
func (b *bus) Get(ctx context.Context, q store.Get) (store.Found, error) {
	w := b.p.w
	return through(ctx, b, "Get", func() string { return fmt.Sprintf("%+v", q) }, func(st store.Store) (store.Found, error) { return st.Get(w.free(), q) })
}

// Find returns a page of the tasks of all agents.
func (b *bus) Find(ctx context.Context, q store.Find) (store.Page, error) {
	w := b.p.w
	return through(ctx, b, "Find", func() string { return fmt.Sprintf("%+v", q) }, func(st store.Store) (store.Page, error) { return st.Find(w.free(), q) })
}

// List returns a page of tasks.
func (b *bus) List(ctx context.Context, q store.List) (store.Page, error) {
	w := b.p.w
	return through(ctx, b, "List", func() string { return fmt.Sprintf("%+v", q) }, func(st store.Store) (store.Page, error) { return st.List(w.free(), q) })
}

// Group counts the tasks of a group.
func (b *bus) Group(ctx context.Context, agent, group string) (store.GroupCounts, error) {
	w := b.p.w
	return through(ctx, b, "Group", func() string { return agent + " " + group }, func(st store.Store) (store.GroupCounts, error) {
		return st.Group(w.free(), agent, group)
	})
}

// Agents returns a page of agents.
func (b *bus) Agents(ctx context.Context, q store.PageOf) (store.AgentPage, error) {
	w := b.p.w
	return through(ctx, b, "Agents", func() string { return q.After }, func(st store.Store) (store.AgentPage, error) { return st.Agents(w.free(), q) })
}

// Holds returns a page of holds.
func (b *bus) Holds(ctx context.Context, q store.PageOf) (store.HoldPage, error) {
	w := b.p.w
	return through(ctx, b, "Holds", func() string { return q.After }, func(st store.Store) (store.HoldPage, error) { return st.Holds(w.free(), q) })
}

// Profile sets and deletes profiles of agents.
func (b *bus) Profile(ctx context.Context, changes []store.ProfileChange) ([]store.Effect, error) {
	w := b.p.w
	name := func() string { return fmt.Sprintf("%s %q", changes[0].Agent, changes[0].Now) }
	return through(ctx, b, "Profile", name, func(st store.Store) ([]store.Effect, error) {
		effects, err := st.Profile(w.free(), changes)
		if err == nil {
			w.audit.called(changes, effects)
		}
		return effects, err
	})
}

// Replan gives waiting tasks other due times.
func (b *bus) Replan(ctx context.Context, tasks []store.Replan) ([]store.Effect, error) {
	w := b.p.w
	name := func() string { return fmt.Sprint(tasks) }
	return through(ctx, b, "Replan", name, func(st store.Store) ([]store.Effect, error) {
		effects, err := st.Replan(w.free(), tasks)
		if err == nil {
			w.audit.called(tasks, effects)
		}
		return effects, err
	})
}

// Forget drops what an agent leaves behind.
func (b *bus) Forget(ctx context.Context, r store.Remains) (string, error) {
	w := b.p.w
	return through(ctx, b, "Forget", func() string { return r.Agent }, func(st store.Store) (string, error) { return st.Forget(w.free(), r) })
}

// ProfileOf is the profile of an agent.
func (b *bus) ProfileOf(ctx context.Context, agent string) ([]byte, error) {
	w := b.p.w
	return through(ctx, b, "ProfileOf", func() string { return agent }, func(st store.Store) ([]byte, error) { return st.ProfileOf(w.free(), agent) })
}

// Profiles returns a page of profiles.
func (b *bus) Profiles(ctx context.Context, q store.PageOf) (store.ProfilePage, error) {
	w := b.p.w
	return through(ctx, b, "Profiles", func() string { return q.After }, func(st store.Store) (store.ProfilePage, error) { return st.Profiles(w.free(), q) })
}

// Limit sets and lifts limits.
func (b *bus) Limit(ctx context.Context, changes []bound.LimitChange) ([]store.Effect, error) {
	w := b.p.w
	name := func() string { return fmt.Sprint(changes) }
	return through(ctx, b, "Limit", name, func(st store.Store) ([]store.Effect, error) { return st.Limit(w.free(), changes) })
}

// Budget sets and lifts budgets.
func (b *bus) Budget(ctx context.Context, changes []bound.BudgetChange) ([]store.Effect, error) {
	w := b.p.w
	name := func() string { return changes[0].About.String() }
	changes = w.ahead(changes)
	return through(ctx, b, "Budget", name, func(st store.Store) ([]store.Effect, error) { return st.Budget(w.free(), changes) })
}

// Budgets are the budgets in force.
func (b *bus) Budgets(ctx context.Context) ([]bound.BudgetUse, error) {
	w := b.p.w
	return through(ctx, b, "Budgets", func() string { return "" }, func(st store.Store) ([]bound.BudgetUse, error) { return st.Budgets(w.free()) })
}

// Stamp notes that definitions are stored.
func (b *bus) Stamp(ctx context.Context, stamp string, of ...bound.BudgetTarget) (bool, error) {
	w := b.p.w
	return through(ctx, b, "Stamp", func() string { return stamp }, func(st store.Store) (bool, error) { return st.Stamp(w.free(), stamp, of...) })
}

// Stamped reports whether a partition has a stamp.
func (b *bus) Stamped(ctx context.Context, partition int, stamp string) (bool, error) {
	w := b.p.w
	return through(ctx, b, "Stamped", func() string { return stamp }, func(st store.Store) (bool, error) { return st.Stamped(w.free(), partition, stamp) })
}

// Limits are the limits in force.
func (b *bus) Limits(ctx context.Context) ([]bound.LimitUse, error) {
	w := b.p.w
	return through(ctx, b, "Limits", func() string { return "" }, func(st store.Store) ([]bound.LimitUse, error) { return st.Limits(w.free()) })
}

// Book books an alarm.
func (b *bus) Book(ctx context.Context, booking alarm.Booking) (alarm.Booked, error) {
	w := b.p.w
	return through(ctx, b, "Book", func() string { return "" }, func(st store.Store) (alarm.Booked, error) { return st.Book(w.free(), booking) })
}

// Confirm notes that an alarm is set.
func (b *bus) Confirm(ctx context.Context, booking alarm.Booking) error {
	w := b.p.w
	_, err := through(ctx, b, "Confirm", func() string { return "" }, func(st store.Store) (struct{}, error) {
		return struct{}{}, st.Confirm(w.free(), booking)
	})
	return err
}

// Signal tells tasks that wait.
func (b *bus) Signal(ctx context.Context, signals []store.Signal) ([]store.Signalled, error) {
	w := b.p.w
	return through(ctx, b, "Signal", func() string { return signals[0].Agent + signals[0].Key }, func(st store.Store) ([]store.Signalled, error) {
		told, err := st.Signal(w.free(), signals)
		if err == nil {
			w.audit.called(signals, told)
		}
		return told, err
	})
}

// Heard returns the signals that tasks received.
func (b *bus) Heard(ctx context.Context, waits []store.Wait) ([]*store.Told, error) {
	w := b.p.w
	return through(ctx, b, "Heard", func() string { return waits[0].Agent + waits[0].ID }, func(st store.Store) ([]*store.Told, error) { return st.Heard(w.free(), waits) })
}

// Receive notes what became of a message.
func (b *bus) Receive(ctx context.Context, r message.Receipt) (message.Received, error) {
	w := b.p.w
	return through(ctx, b, "Receive", func() string { return r.Message }, func(st store.Store) (message.Received, error) { return st.Receive(w.free(), r) })
}

// Stats are the counters.
func (b *bus) Stats(ctx context.Context) (count.Stats, error) {
	w := b.p.w
	return through(ctx, b, "Stats", func() string { return "" }, func(st store.Store) (count.Stats, error) { return st.Stats(w.free()) })
}
