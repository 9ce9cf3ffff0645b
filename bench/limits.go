package main

// Limits: a process that runs few tasks at a time, and so claims few.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core"
)

// fewSlots is a small Config.Concurrency.
const fewSlots = 5

func measureLimits(ctx context.Context, b *bench) error {
	return b.compare(ctx, b.rounds, contestant{sideDuly, "limits", b.dulyLimits})
}

func (b *bench) dulyLimits(ctx context.Context) (_ []sample, err error) {
	ran := make(ledger, b.limitTasks)
	d, err := openDuly(ctx, b.redis, fewSlots, func(t *core.Task[payload]) { ran.mark(t.Payload.N) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	err = d.submit(ctx, 0, b.limitTasks, func(i int) core.NewTask { return newTask(i, backlogAgents, 0) })
	if err != nil {
		return nil, err
	}
	s, err := b.redis.metered(ctx, func() error { return d.drain(ctx, b.limitTasks) })
	if err != nil {
		return nil, err
	}
	n := float64(b.limitTasks)
	figure := func(name, unit string, better better, value float64, target target) sample {
		return sample{spec{"limits", fmt.Sprintf("drain with Concurrency %d", fewSlots), name, unit, better, target}, value}
	}
	return []sample{
		figure("Redis CPU", "us/task", lower, s.redis/n, atMost(20)),
		figure("client CPU", "us/task", lower, s.client/n, target{}),
		figure("drain", "tasks/s", higher, n/s.wall.Seconds(), target{}),
	}, ran.check()
}
