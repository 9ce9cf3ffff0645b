package world

// The verbs of operators and readers, as a process calls them.

import (
	"context"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/store"
)

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
	return operate(ctx, b, "Replay", tasks, func(st store.Store) ([]store.Effect, error) { return st.Replay(w.free(), tasks) }, w.audit.replayed)
}

// RunNow makes waiting tasks due now.
func (b *bus) RunNow(ctx context.Context, tasks []store.RunNow) ([]store.Effect, error) {
	w := b.p.w
	return operate(ctx, b, "RunNow", tasks, func(st store.Store) ([]store.Effect, error) { return st.RunNow(w.free(), tasks) }, w.audit.ranNow)
}

// Cancel ends tasks as cancelled.
func (b *bus) Cancel(ctx context.Context, tasks []store.Cancellation) ([]store.Effect, error) {
	w := b.p.w
	return operate(ctx, b, "Cancel", tasks, func(st store.Store) ([]store.Effect, error) { return st.Cancel(w.free(), tasks) }, w.audit.cancelled)
}

// Delete forgets tasks.
func (b *bus) Delete(ctx context.Context, tasks []store.Deletion) ([]store.Effect, error) {
	w := b.p.w
	return operate(ctx, b, "Delete", tasks, func(st store.Store) ([]store.Effect, error) { return st.Delete(w.free(), tasks) }, w.audit.deleted)
}

// Hold keeps tasks from being claimed.
func (b *bus) Hold(ctx context.Context, holds []store.Hold) ([]store.Effect, error) {
	w := b.p.w
	return operate(ctx, b, "Hold", holds, func(st store.Store) ([]store.Effect, error) { return st.Hold(w.free(), holds) }, w.audit.held)
}

// Unhold ends holds.
func (b *bus) Unhold(ctx context.Context, targets []store.Target) ([]store.Effect, error) {
	w := b.p.w
	return operate(ctx, b, "Unhold", targets, func(st store.Store) ([]store.Effect, error) { return st.Unhold(w.free(), targets) }, w.audit.unheld)
}

// Audit looks at live tasks.
func (b *bus) Audit(ctx context.Context, pages []store.AuditPage) ([]store.Audited, error) {
	w := b.p.w
	return operate(ctx, b, "Audit", pages, func(st store.Store) ([]store.Audited, error) { return st.Audit(w.free(), pages) }, w.audit.audited)
}

// Get returns tasks.
func (b *bus) Get(ctx context.Context, q store.Get) (store.Found, error) {
	w := b.p.w
	return through(ctx, b, "Get", func() string { return fmt.Sprintf("%+v", q) }, func(st store.Store) (store.Found, error) { return st.Get(w.free(), q) })
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

// Stats are the counters.
func (b *bus) Stats(ctx context.Context) (store.Stats, error) {
	w := b.p.w
	return through(ctx, b, "Stats", func() string { return "" }, func(st store.Store) (store.Stats, error) { return st.Stats(w.free()) })
}
