package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// measureIdle counts what reaches Redis while nothing falls due. One round says it all: nothing of it is noise.
func measureIdle(ctx context.Context, b *bench) error {
	return b.compare(ctx, 1,
		contestant{sideDuly, "idle", b.dulyIdle},
		contestant{sideAsynq, "idle, 1 queue", func(ctx context.Context) ([]sample, error) { return b.asynqIdle(ctx, 1) }},
		contestant{sideAsynq, fmt.Sprintf("idle, %d queues", b.idleQueues), func(ctx context.Context) ([]sample, error) {
			return b.asynqIdle(ctx, b.idleQueues)
		}},
	)
}

func (b *bench) dulyIdle(ctx context.Context) (_ []sample, err error) {
	d, err := openDuly(ctx, b.redis, b.concurrency, func(*core.Task[payload]) {})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	err = d.submit(ctx, 0, b.idleAgents, func(i int) core.NewTask { return newTask(i, b.idleAgents, time.Hour) })
	if err != nil {
		return nil, err
	}
	var samples []sample
	err = d.whileServing(ctx, func(ctx context.Context) error {
		all, sent, err := b.countIdle(ctx)
		for _, queues := range []int{1, b.idleQueues} {
			samples = append(samples, b.idleSamples(queues, all, sent)...)
		}
		return err
	})
	return samples, err
}

func (b *bench) asynqIdle(ctx context.Context, queues int) (_ []sample, err error) {
	p := openAsynq(b.redis, 0)
	defer func() { err = errors.Join(err, p.Close()) }()
	names := make(map[string]int, queues)
	for i := range queues {
		names[fmt.Sprintf("queue-%04d", i)] = 1
	}
	server, err := p.serve(names, 0, func(int) {})
	if err != nil {
		return nil, err
	}
	defer server.Shutdown()
	all, sent, err := b.countIdle(ctx)
	return b.idleSamples(queues, all, sent), err
}

// countIdle counts commands a second: all, and those that clients send, which is without the ones inside scripts.
func (b *bench) countIdle(ctx context.Context) (all, sent float64, err error) {
	if !pause(ctx, b.idleSettle) {
		return 0, 0, ctx.Err()
	}
	stop, err := b.redis.countSent(ctx)
	if err != nil {
		return 0, 0, err
	}
	s, err := b.redis.metered(ctx, func() error {
		pause(ctx, b.idleFor)
		return ctx.Err()
	})
	n, stopErr := stop()
	seconds := b.idleFor.Seconds()
	return s.commands / seconds, float64(n) / seconds, errors.Join(err, stopErr)
}

func (b *bench) idleSamples(queues int, all, sent float64) []sample {
	group := fmt.Sprintf("idle: %s with a task in an hour; asynq: %s", ofAgents(b.idleAgents), count(queues, "queue"))
	return []sample{
		{spec{"idle", group, "commands", "/s", lower, atMost(1)}, all},
		{spec{"idle", group, "commands sent", "/s", lower, target{}}, sent},
	}
}
