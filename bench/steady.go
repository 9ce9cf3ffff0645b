package main

// Steady: recurring tasks that are always overdue, with full histories.

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// steadyEvery is the interval of the recurring tasks, the shortest there is; steadyPause, between two passes, makes all due again.
const (
	steadyEvery = time.Second
	steadyPause = steadyEvery + 100*time.Millisecond
)

// steadyShape is how many agents have how many recurring tasks, and what the promises for it are.
type steadyShape struct {
	agents, each     int
	redis, runsTimes float64
}

// steadyShapes have the same number of tasks, but for the last one, in which few agents have many.
func (b *bench) steadyShapes() []steadyShape {
	n := b.steadyTasks
	return []steadyShape{{n, 1, 6, 4}, {n / 5, 5, 8, 3.3}, {max(n/100, 2), 100, 8, 0}}
}

// measureSteady runs the same recurring tasks again and again. Peers have no such task: their schedulers enqueue one for
// each occurrence, so that a run is a whole life there.
func measureSteady(ctx context.Context, b *bench) error {
	contestants := b.peerContestants("steady: a whole life", 0, b.peerSteady)
	for _, shape := range b.steadyShapes() {
		contestants = append(contestants, contestant{
			side: sideDuly, label: fmt.Sprintf("steady, %s of %d", ofAgents(shape.agents), shape.each),
			run: func(ctx context.Context) ([]sample, error) { return b.dulySteady(ctx, shape) },
		})
	}
	return b.compare(ctx, 1, contestants...)
}

func (b *bench) dulySteady(ctx context.Context, shape steadyShape) (_ []sample, err error) {
	n := shape.agents * shape.each
	ran := newAgain(n)
	d, err := openDuly(ctx, b.redis, b.concurrency, func(t *core.Task[payload]) { ran.begin(t.Payload.N, time.Now()) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	err = d.submit(ctx, 0, n, func(i int) core.NewTask {
		t := newTask(i, shape.agents, 0)
		t.Every = steadyEvery
		return t
	})
	if err != nil {
		return nil, err
	}
	var samples []sample
	for pass := range b.steadyWarm + b.steadyPasses {
		if !pause(ctx, steadyPause) {
			return nil, ctx.Err()
		}
		s, err := b.redis.metered(ctx, func() error { return d.pass(ctx, n) })
		if err != nil {
			return nil, err
		}
		if pass >= b.steadyWarm { // histories are full
			samples = append(samples, shape.samples(n, s)...)
		}
	}
	return samples, ran.check(b.steadyWarm + b.steadyPasses)
}

// pass runs n tasks of those that are due.
func (d *duly) pass(ctx context.Context, n int) error {
	report, err := d.RunDue(ctx, core.Scope{MaxTasks: n})
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case report.Completed != n:
		return fmt.Errorf("RunDue completed %d of %d runs: %+v", report.Completed, n, report)
	}
	return nil
}

// again notes the runs of recurring tasks.
type again struct {
	runs ledger
	last []atomic.Int64 // when each task began last, in ns
	soon atomic.Int64   // runs that began before their task's interval was over
}

func newAgain(n int) *again { return &again{runs: make(ledger, n), last: make([]atomic.Int64, n)} }

// begin notes a run of task n.
func (a *again) begin(n int, at time.Time) {
	a.runs.mark(n)
	if before := a.last[n].Swap(at.UnixNano()); before > 0 && at.Sub(time.Unix(0, before)) < steadyEvery {
		a.soon.Add(1)
	}
}

// check fails unless there were as many runs as passes, none before its time, and each task had its share: a pass that takes
// longer than the interval runs some twice and leaves others for the next one.
func (a *again) check(passes int) error {
	total, few := 0, 0
	for i := range a.runs {
		runs := int(a.runs[i].Load())
		total += runs
		if runs < (passes+1)/2 {
			few++
		}
	}
	if soon := a.soon.Load(); total != passes*len(a.runs) || few > 0 || soon > 0 {
		return fmt.Errorf("%d passes over %d tasks made %d runs, %d of them before their interval was over, and %d tasks had few",
			passes, len(a.runs), total, soon, few)
	}
	return nil
}

// peerSteady gives the whole life of a task to each shape.
func (b *bench) peerSteady(ctx context.Context, q queue) ([]sample, error) {
	submit, drain, err := b.whole(ctx, q, b.steadyTasks)
	if err != nil {
		return nil, err
	}
	var samples []sample
	for _, shape := range b.steadyShapes() {
		samples = append(samples, shape.samples(b.steadyTasks, submit.plus(drain))...)
	}
	return samples, nil
}

func (s steadyShape) samples(tasks int, spent spent) []sample {
	n := float64(tasks)
	figure := func(name, unit string, better better, value float64, target target) sample {
		group := fmt.Sprintf("recurring tasks at full pulls, %s of %d, history full; peers: a whole life", ofAgents(s.agents), s.each)
		return sample{spec{"steady", group, name, unit, better, target}, value}
	}
	var times target
	if s.runsTimes > 0 {
		times = timesAsynq(s.runsTimes)
	}
	return []sample{
		figure("Redis CPU", "us/run", lower, spent.redis/n, atMost(s.redis)),
		figure("client CPU", "us/run", lower, spent.client/n, atMost(9)),
		figure("Redis commands", "/run", lower, spent.commands/n, target{}),
		figure("runs", "runs/s", higher, n/spent.wall.Seconds(), times),
	}
}
