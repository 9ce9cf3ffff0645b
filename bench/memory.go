package main

import (
	"context"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// measureMemory weighs waiting tasks and kept records. One round is enough: memory is no matter of chance.
func measureMemory(ctx context.Context, b *bench) error {
	contestants := []contestant{{sideAsynq, "memory", b.asynqMemory}}
	for _, agents := range b.agents {
		contestants = append(contestants, contestant{
			side: sideDuly, label: "memory, " + ofAgents(agents),
			run: func(ctx context.Context) ([]sample, error) { return b.dulyMemory(ctx, agents) },
		})
	}
	return b.compare(ctx, 1, contestants...)
}

func (b *bench) dulyMemory(ctx context.Context, agents int) ([]sample, error) {
	ran := make(ledger, b.memoryTasks)
	with := func(work func(d *duly) error) func() error {
		return func() error {
			d, err := openDuly(ctx, b.redis, b.concurrency, func(t *core.Task[payload]) { ran.mark(t.Payload.N) })
			if err != nil {
				return err
			}
			return errors.Join(work(d), d.close())
		}
	}
	waiting, kept, err := b.weigh(ctx,
		with(func(d *duly) error {
			return d.submit(ctx, 0, b.memoryTasks, func(i int) core.NewTask { return newTask(i, agents, 0) })
		}),
		with(func(d *duly) error { return d.drain(ctx, b.memoryTasks) }),
	)
	if err != nil {
		return nil, err
	}
	return memorySamples(agents, waiting, kept), ran.check()
}

func (b *bench) asynqMemory(ctx context.Context) ([]sample, error) {
	ran := make(ledger, b.memoryTasks)
	with := func(work func(p *peer) error) func() error {
		return func() error {
			p := openAsynq(b.redis, 0)
			return errors.Join(work(p), p.Close())
		}
	}
	waiting, kept, err := b.weigh(ctx,
		with(func(p *peer) error { return spread(ctx, producers, b.memoryTasks, p.add) }),
		with(func(p *peer) error {
			server, err := p.serve(nil, 0, func(n int) { ran.mark(n) })
			if err != nil {
				return err
			}
			defer server.Shutdown()
			return drained(ctx, p, b.memoryTasks)
		}),
	)
	if err != nil {
		return nil, err
	}
	var samples []sample
	for _, agents := range b.agents {
		samples = append(samples, memorySamples(agents, waiting, kept)...)
	}
	return samples, ran.check()
}

// disconnect is how long the server may take to free what closed connections held.
const disconnect = 200 * time.Millisecond

// weigh tells what a task takes after submit, and after drain. No client of theirs is connected while it weighs.
func (b *bench) weigh(ctx context.Context, submit, drain func() error) (waiting, kept float64, err error) {
	empty, err := b.redis.usedMemory(ctx)
	if err != nil {
		return 0, 0, err
	}
	var weights [2]float64
	for i, work := range []func() error{submit, drain} {
		if err := work(); err != nil {
			return 0, 0, err
		}
		if !pause(ctx, disconnect) {
			return 0, 0, ctx.Err()
		}
		used, err := b.redis.usedMemory(ctx)
		if err != nil {
			return 0, 0, err
		}
		weights[i] = (used - empty) / float64(b.memoryTasks)
	}
	return weights[0], weights[1], nil
}

func memorySamples(agents int, waiting, kept float64) []sample {
	group := "memory, " + ofAgents(agents)
	return []sample{
		{spec{"memory", group, "waiting task", "bytes", lower, atMost(380)}, waiting},
		{spec{"memory", group, "finished record", "bytes", lower, atMost(170)}, kept},
	}
}
