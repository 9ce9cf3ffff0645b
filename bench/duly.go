package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// duly is a scheduler on a store, as one process would have it.
type duly struct {
	*core.Scheduler
	store *redisstore.Store
}

// uncut is a limit that nothing here reaches: one agent may hold all tasks, and all records are kept, as asynq does.
const uncut = 100_000_000

// openDuly connects a scheduler whose handler calls ran with each task.
func openDuly(ctx context.Context, r *redisServer, concurrency int, ran func(t *core.Task[payload])) (*duly, error) {
	return openHandling(ctx, r, concurrency, func(_ context.Context, t *core.Task[payload]) error {
		ran(t)
		return nil
	})
}

// openHandling connects a scheduler with a handler that may fail.
func openHandling(
	ctx context.Context, r *redisServer, concurrency int, handle func(ctx context.Context, t *core.Task[payload]) error,
) (*duly, error) {
	return openWith(ctx, redisstore.Config{URL: r.url(), MaxTasks: uncut, Kept: uncut}, concurrency, handle)
}

// openWith connects a scheduler to a store that is configured in a way of its own.
func openWith(
	ctx context.Context, config redisstore.Config, concurrency int, handle func(ctx context.Context, t *core.Task[payload]) error,
) (*duly, error) {
	return openConfigured(ctx, config, core.Config{Concurrency: concurrency}, handle)
}

// openConfigured connects a scheduler with settings of its own.
func openConfigured(
	ctx context.Context, config redisstore.Config, settings core.Config, handle func(ctx context.Context, t *core.Task[payload]) error,
) (*duly, error) {
	st, err := redisstore.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	if settings.Name != "" { // one of several daemons
		settings.Presence = st
	}
	s, err := core.New(st, settings)
	if err != nil {
		return nil, fmt.Errorf("new scheduler: %w", err)
	}
	core.Handle(s, kind, handle)
	return &duly{Scheduler: s, store: st}, nil
}

// batch is how many tasks one Submit holds.
const batch = 100

// submit stores the tasks first to first+n-1 in batches, from several goroutines.
func (d *duly) submit(ctx context.Context, first, n int, task func(i int) core.NewTask) error {
	return spread(ctx, producers, (n+batch-1)/batch, func(ctx context.Context, b int) error {
		tasks := make([]core.NewTask, 0, batch)
		for i := first + b*batch; i < first+min(n, (b+1)*batch); i++ {
			tasks = append(tasks, task(i))
		}
		_, err := d.Submit(ctx, tasks...)
		return err
	})
}

// drain runs all that is due and expects n runs.
func (d *duly) drain(ctx context.Context, n int) error {
	report, err := d.RunDue(ctx, core.Scope{})
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case report.Completed != n || report.More:
		return fmt.Errorf("RunDue completed %d of %d tasks: %+v", report.Completed, n, report)
	}
	return nil
}

// serve runs what falls due until ctx is done, as a daemon does: it sleeps until the next due time or a wake-up, at most
// longest.
func (d *duly) serve(ctx context.Context, longest time.Duration) error {
	wakeups, err := d.store.Wakeups(ctx)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		report, err := d.RunDue(ctx, core.Scope{})
		if err != nil {
			return err
		}
		until := longest
		if !report.NextDueAt.IsZero() {
			until = min(until, d.Until(report.NextDueAt))
		}
		d.sleep(ctx, until, wakeups)
	}
	return nil
}

// whileServing does work while another goroutine serves, and returns once both have ended.
func (d *duly) whileServing(ctx context.Context, work func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	served := make(chan error, 1)
	go func() {
		err := d.serve(ctx, longestSleep)
		cancel(err) // without it the work would wait in vain
		served <- err
	}()
	err := work(ctx)
	cancel(nil)
	if failed := <-served; failed != nil {
		return failed
	}
	return err
}

// sleep waits for a duration, or for a wake-up that makes it shorter.
func (d *duly) sleep(ctx context.Context, until time.Duration, wakeups <-chan store.Wakeup) {
	end := time.Now().Add(until)
	timer := time.NewTimer(until)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case w, ok := <-wakeups:
			if !ok {
				wakeups = nil
				continue
			}
			if left := d.Until(w.Due.Time()); left < time.Until(end) {
				end = time.Now().Add(left)
				timer.Reset(left)
			}
		}
	}
}

func (d *duly) close() error { return d.store.Close() }
