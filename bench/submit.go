package main

import (
	"context"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// callers is how many goroutines submit one task at a time.
const callers = 64

// measureSubmit has many goroutines submit one task a call, as the requests of a server do.
func measureSubmit(ctx context.Context, b *bench) error {
	contestants := b.peerContestants("submit", 0, b.peerSubmit)
	for _, agents := range b.agents {
		contestants = append(contestants, contestant{
			side: sideDuly, label: "submit, " + ofAgents(agents),
			run: func(ctx context.Context) ([]sample, error) { return b.dulySubmit(ctx, agents) },
		})
	}
	return b.compare(ctx, b.rounds, contestants...)
}

func (b *bench) dulySubmit(ctx context.Context, agents int) (_ []sample, err error) {
	d, err := openDuly(ctx, b.redis, b.concurrency, func(*core.Task[payload]) {})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	c, err := b.timeCalls(ctx, func(ctx context.Context, i int) error {
		_, err := d.Submit(ctx, newTask(i, agents, 0))
		return err
	})
	return c.samples(agents), err
}

func (b *bench) peerSubmit(ctx context.Context, q queue) ([]sample, error) {
	c, err := b.timeCalls(ctx, q.add)
	var samples []sample
	for _, agents := range b.agents {
		samples = append(samples, c.samples(agents)...)
	}
	return samples, err
}

// calls is what many calls cost, and how long each took, in ms.
type calls struct {
	spent
	took []float64
}

// timeCalls makes a call for each task.
func (b *bench) timeCalls(ctx context.Context, call func(ctx context.Context, i int) error) (*calls, error) {
	c := &calls{took: make([]float64, b.tasks)}
	var err error
	c.spent, err = b.redis.metered(ctx, func() error {
		return spread(ctx, callers, b.tasks, func(ctx context.Context, i int) error {
			begun := time.Now()
			err := call(ctx, i)
			c.took[i] = milliseconds(time.Since(begun))
			return err
		})
	})
	return c, err
}

func (c *calls) samples(agents int) []sample {
	n := float64(len(c.took))
	times := timesAsynq(1.4)
	if len(c.took) <= agents { // one task an agent
		times = timesAsynq(1.6)
	}
	figure := func(name, unit string, better better, value float64, target target) sample {
		return sample{spec{"submit", "Submit of one task, 64 goroutines, " + ofAgents(agents), name, unit, better, target}, value}
	}
	return []sample{
		figure("calls", "calls/s", higher, n/c.wall.Seconds(), times),
		figure("Redis CPU", "us/call", lower, c.redis/n, target{}),
		figure("client CPU", "us/call", lower, c.client/n, target{}),
		figure("latency p50", "ms", lower, quantile(c.took, 0.5), target{}),
		figure("latency p99", "ms", lower, quantile(c.took, 0.99), target{}),
	}
}
