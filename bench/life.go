package main

// Life: tasks from submit to their kept record, plain, with an append-only file, and with larger payloads.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// course is a way to measure whole lives.
type course struct {
	measurement, title string
	extra              int // bytes of each payload beyond the usual ones
	agents             []int
	rounds             int
	promised           bool // whether the targets are for it
}

// measureLife submits tasks in batches, then drains them. Peers have no agents: one queue of theirs is what any number of agents
// is compared with.
func measureLife(ctx context.Context, b *bench) error {
	return b.live(ctx, &course{measurement: "life", title: "whole life", agents: b.agents, rounds: b.rounds, promised: true})
}

// measurePayload does it with payloads of 1 kB.
func measurePayload(ctx context.Context, b *bench) error {
	return b.live(ctx, &course{
		measurement: "payload", title: "whole life, payload of 1 kB", extra: 870, agents: b.agents[len(b.agents)-1:], rounds: 1,
	})
}

// measurePersist does it while the server writes its append-only file, and syncs it every second.
func measurePersist(ctx context.Context, b *bench) error {
	if err := b.redis.appendOnly(ctx, true); err != nil {
		return err
	}
	err := b.live(ctx, &course{
		measurement: "persist", title: "whole life, append-only file synced every second", agents: b.agents[len(b.agents)-1:], rounds: 1,
	})
	return errors.Join(err, b.redis.appendOnly(ctx, false))
}

// live has each side go through a course.
func (b *bench) live(ctx context.Context, c *course) error {
	contestants := b.peerContestants(c.title, c.extra, func(ctx context.Context, q queue) ([]sample, error) { return b.peerLife(ctx, c, q) })
	for _, agents := range c.agents {
		contestants = append(contestants, contestant{
			side: sideDuly, label: c.title + ", " + ofAgents(agents),
			run: func(ctx context.Context) ([]sample, error) { return b.dulyLife(ctx, c, agents) },
		})
	}
	return b.compare(ctx, c.rounds, contestants...)
}

func (b *bench) dulyLife(ctx context.Context, c *course, agents int) (_ []sample, err error) {
	ran := make(ledger, b.tasks)
	d, err := openDuly(ctx, b.redis, b.concurrency, func(t *core.Task[payload]) { ran.mark(t.Payload.N) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	submit, err := b.redis.metered(ctx, func() error {
		return d.submit(ctx, 0, b.tasks, func(i int) core.NewTask {
			t := newTask(i, agents, 0)
			t.Payload = newPayload(i, c.extra)
			return t
		})
	})
	if err != nil {
		return nil, err
	}
	drain, err := b.redis.metered(ctx, func() error { return d.drain(ctx, b.tasks) })
	if err != nil {
		return nil, err
	}
	return c.samples(agents, b.tasks, submit, drain), ran.check()
}

// peerLife gives a peer's figures to each number of agents.
func (b *bench) peerLife(ctx context.Context, c *course, q queue) ([]sample, error) {
	submit, drain, err := b.whole(ctx, q, b.tasks)
	if err != nil {
		return nil, err
	}
	var samples []sample
	for _, agents := range c.agents {
		samples = append(samples, c.samples(agents, b.tasks, submit, drain)...)
	}
	return samples, nil
}

// promises are the targets for whole lives of agents with one task, and with twenty.
func (c *course) promises(each int) (redis, client, times target) {
	switch {
	case !c.promised:
	case each <= 1:
		return atMost(9), atMost(10), timesAsynq(2.5)
	case each == 20:
		return atMost(12), atMost(10), timesAsynq(2.2)
	}
	return redis, client, times
}

func (c *course) samples(agents, tasks int, submit, drain spent) []sample {
	n, all, each := float64(tasks), submit.plus(drain), tasks/agents
	figure := func(name, unit string, better better, value float64, target target) sample {
		group := fmt.Sprintf("%s, %s of %s", c.title, ofAgents(agents), digits(max(each, 1)))
		return sample{spec{c.measurement, group, name, unit, better, target}, value}
	}
	rate := func(took time.Duration) float64 { return n / took.Seconds() }
	redis, client, times := c.promises(each)
	return []sample{
		figure("Redis CPU, submit", "us/task", lower, submit.redis/n, target{}),
		figure("Redis CPU, drain", "us/task", lower, drain.redis/n, target{}),
		figure("Redis CPU", "us/task", lower, all.redis/n, redis),
		figure("client CPU", "us/task", lower, all.client/n, client),
		figure("Redis commands", "/task", lower, all.commands/n, target{}),
		figure("submit", "tasks/s", higher, rate(submit.wall), target{}),
		figure("drain", "tasks/s", higher, rate(drain.wall), target{}),
		figure("end to end", "tasks/s", higher, rate(all.wall), times),
	}
}
