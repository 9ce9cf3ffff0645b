package main

import (
	"context"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// measureLife follows tasks from submit to their kept record. asynq has no agents: its one queue is what it is compared
// with at any number of them.
func measureLife(ctx context.Context, b *bench) error {
	contestants := []contestant{{side: sideAsynq, label: "life", run: b.asynqLife}}
	for _, agents := range b.agents {
		contestants = append(contestants, contestant{
			side: sideDuly, label: "life, " + ofAgents(agents),
			run: func(ctx context.Context) ([]sample, error) { return b.dulyLife(ctx, agents) },
		})
	}
	return b.compare(ctx, b.rounds, contestants...)
}

func (b *bench) dulyLife(ctx context.Context, agents int) (_ []sample, err error) {
	ran := make(ledger, b.tasks)
	d, err := openDuly(ctx, b.redis, b.concurrency, func(t *core.Task[payload]) { ran.mark(t.Payload.N) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	submit, err := b.redis.metered(ctx, func() error {
		return d.submit(ctx, 0, b.tasks, func(i int) core.NewTask { return newTask(i, agents, 0) })
	})
	if err != nil {
		return nil, err
	}
	drain, err := b.redis.metered(ctx, func() error { return d.drain(ctx, b.tasks) })
	if err != nil {
		return nil, err
	}
	return lifeSamples(agents, b.tasks, submit, drain), ran.check()
}

func (b *bench) asynqLife(ctx context.Context) (_ []sample, err error) {
	ran := make(ledger, b.tasks)
	p := openPeer(b.redis)
	defer func() { err = errors.Join(err, p.Close()) }()
	submit, err := b.redis.metered(ctx, func() error { return p.enqueueAll(ctx, b.tasks) })
	if err != nil {
		return nil, err
	}
	drain, err := b.redis.metered(ctx, func() error {
		server, err := p.serve(nil, 0, func(n int) { ran.mark(n) })
		if err != nil {
			return err
		}
		defer func() { go server.Shutdown() }() // it takes a second that is not part of the work
		return p.drain(ctx, b.tasks)
	})
	if err != nil {
		return nil, err
	}
	var samples []sample
	for _, agents := range b.agents {
		samples = append(samples, lifeSamples(agents, b.tasks, submit, drain)...)
	}
	return samples, ran.check()
}

func lifeSamples(agents, tasks int, submit, drain spent) []sample {
	n, all := float64(tasks), submit.plus(drain)
	figure := func(name, unit string, better better, value float64, target target) sample {
		return sample{spec{"life", "whole life, " + ofAgents(agents), name, unit, better, target}, value}
	}
	rate := func(took time.Duration) float64 { return n / took.Seconds() }
	var most target
	if agents == 100_000 {
		most = atMost(25)
	}
	return []sample{
		figure("Redis CPU, submit", "us/task", lower, submit.redis/n, target{}),
		figure("Redis CPU, drain", "us/task", lower, drain.redis/n, target{}),
		figure("Redis CPU", "us/task", lower, all.redis/n, most),
		figure("client CPU", "us/task", lower, all.client/n, target{}),
		figure("Redis commands", "/task", lower, all.commands/n, target{}),
		figure("submit", "tasks/s", higher, rate(submit.wall), target{}),
		figure("drain", "tasks/s", higher, rate(drain.wall), target{}),
		figure("end to end", "tasks/s", higher, rate(all.wall), timesAsynq(6)),
	}
}
