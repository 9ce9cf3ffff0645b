package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// Each look at all agents finds dueTasks of them with a due task.
const (
	dueTasks = 100
	dueLooks = 5
)

// measureDue runs what is due among many agents of which nearly all have nothing to do.
func measureDue(ctx context.Context, b *bench) error {
	return b.compare(ctx, 1, contestant{sideDuly, "due, " + ofAgents(b.dueAgents), b.dulyDue})
}

func (b *bench) dulyDue(ctx context.Context) (_ []sample, err error) {
	ran := make(ledger, dueLooks*dueTasks)
	d, err := openDuly(ctx, b.redis, b.concurrency, func(t *core.Task[payload]) { ran.mark(t.Payload.N) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	task := func(delay time.Duration) func(i int) core.NewTask {
		return func(i int) core.NewTask { return newTask(i, b.dueAgents, delay) }
	}
	if err := d.submit(ctx, len(ran), b.dueAgents-len(ran), task(time.Hour)); err != nil {
		return nil, err
	}
	var samples []sample
	for look := range dueLooks {
		for _, n := range []int{0, dueTasks} {
			if err := d.submit(ctx, look*dueTasks, n, task(0)); err != nil {
				return nil, err
			}
			s, err := b.redis.metered(ctx, func() error { return d.drain(ctx, n) })
			if err != nil {
				return nil, err
			}
			samples = append(samples, b.dueSamples(n, s)...)
		}
	}
	return samples, ran.check()
}

func (b *bench) dueSamples(n int, s spent) []sample {
	group := fmt.Sprintf("RunDue, %d of %s have a due task", n, ofAgents(b.dueAgents))
	var most target
	if n > 0 {
		most = atMost(10)
	}
	return []sample{
		{spec{"due", group, "time", "ms", lower, most}, milliseconds(s.wall)},
		{spec{"due", group, "Redis CPU", "ms", lower, target{}}, s.redis / 1000},
		{spec{"due", group, "commands", "", lower, target{}}, s.commands},
	}
}
