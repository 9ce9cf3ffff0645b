package main

// Trickle: recurring tasks at the rates that people have, run by a daemon.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// measureTrickle has a second's worth of tasks fall due every second, spread evenly.
func measureTrickle(ctx context.Context, b *bench) error {
	for _, daemons := range b.trickleDaemons {
		for _, rate := range b.trickleRates {
			label := fmt.Sprintf("trickle, %s runs/s, daemons: %d", digits(rate), daemons)
			err := b.compare(ctx, 1,
				contestant{sideDuly, label, func(ctx context.Context) ([]sample, error) {
					f, s, err := b.dulyTrickle(ctx, rate, daemons, &feature{})
					return f.samples(rate, daemons, s), err
				}},
				contestant{sideAsynq, label, func(ctx context.Context) ([]sample, error) { return b.asynqTrickle(ctx, rate, daemons) }},
			)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// flow notes the runs of a service: how late each started, from the moment on that it is asked to.
type flow struct {
	mu      sync.Mutex
	on      bool
	late    []float64 // ms
	last    []time.Time
	twice   int // runs of an occurrence that had run already
	skipped int // occurrences that nothing ran for
	early   int
}

// start records that task n of the service started; occurrence is the time that it was first due, and due is when this run was.
func (f *flow) start(n int, occurrence, due time.Time) {
	late := time.Since(due)
	f.mu.Lock()
	defer f.mu.Unlock()
	if late < 0 {
		f.early++
	}
	switch before := f.last[n]; {
	case before.IsZero():
	case !occurrence.After(before):
		f.twice++
	default:
		f.skipped += int((occurrence.Sub(before)+trickleEvery/2)/trickleEvery) - 1
	}
	f.last[n] = occurrence
	if f.on {
		f.late = append(f.late, milliseconds(late))
	}
}

// watch begins or ends the noting.
func (f *flow) watch(on bool) {
	f.mu.Lock()
	f.on = on
	f.mu.Unlock()
}

// trickleEvery is the interval of a task, and how far the tasks are spread.
const trickleEvery = time.Second

// dulyTrickle has daemons run it, with a feature that the first of them switches on.
func (b *bench) dulyTrickle(ctx context.Context, rate, daemons int, with *feature) (f *flow, _ spent, err error) {
	f = &flow{last: make([]time.Time, rate)}
	failed := make(chan error, 1)
	defer func() { // after all of them have stopped
		select {
		case e := <-failed:
			err = errors.Join(err, e)
		default:
		}
	}()
	for n := range daemons {
		config := core.Config{Concurrency: b.concurrency, Name: fmt.Sprint("daemon ", n)}
		if with.config != nil {
			with.config(&config)
		}
		d, err := openConfigured(ctx, redisstore.Config{URL: b.redis.url(), MaxTasks: uncut, Kept: uncut}, config, func(_ context.Context, t *core.Task[payload]) error {
			f.start(t.Payload.N, t.Occurrence, t.Due)
			if with.used == nil {
				return nil
			}
			return t.Use(with.used)
		})
		if err != nil {
			return f, spent{}, err
		}
		defer func() { err = errors.Join(err, d.close()) }()
		core.Handle(d.Scheduler, otherKind, func(ctx context.Context, _ *core.Task[payload]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if n == 0 {
			if with.set != nil {
				if err := with.set(ctx, d); err != nil {
					return f, spent{}, err
				}
			}
			err = d.submit(ctx, 0, rate, func(i int) core.NewTask {
				t := newTask(i, rate, 0)
				t.Every, t.From, t.Jitter, t.LimitKey = trickleEvery, core.FromStart, trickleEvery, with.key(i)
				return t
			})
			if err != nil {
				return f, spent{}, err
			}
		}
		stop, err := d.host(failed)
		if err != nil {
			return f, spent{}, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	s, err := b.watch(ctx, f, daemons)
	if err != nil {
		return f, spent{}, err
	}
	return f, s, f.check(rate, b.trickleFor)
}

// host starts a daemon, whose first error goes to failed.
func (d *duly) host(failed chan<- error) (stop func() error, err error) {
	host, err := daemon.New(d.Scheduler, daemon.Config{Waker: d.store, OnError: func(err error) {
		select {
		case failed <- err:
		default:
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("new daemon: %w", err)
	}
	if err := host.Start(); err != nil {
		return nil, fmt.Errorf("start daemon: %w", err)
	}
	return func() error { return host.Stop(context.Background()) }, nil
}

func (b *bench) asynqTrickle(ctx context.Context, rate, daemons int) (_ []sample, err error) {
	all := int((b.settles(daemons) + b.trickleFor + time.Second).Seconds() * float64(rate))
	f := &flow{last: make([]time.Time, all)}
	p := openAsynq(b.redis, 0)
	defer func() { err = errors.Join(err, p.Close()) }()
	begun := time.Now()
	due := func(n int) time.Time { return begun.Add(time.Duration(n) * time.Second / time.Duration(rate)) }
	for range daemons {
		server, err := p.serve(nil, 0, func(n int) { f.start(n, due(n), due(n)) })
		if err != nil {
			return nil, err
		}
		defer server.Shutdown()
	}
	produced := make(chan error, 1)
	go func() {
		produced <- spread(ctx, producers, all, func(ctx context.Context, i int) error {
			if wait := time.Until(due(i)); wait > 0 && !pause(ctx, wait) {
				return ctx.Err()
			}
			return p.enqueue(ctx, i)
		})
	}()
	s, err := b.watch(ctx, f, daemons)
	if err := errors.Join(err, <-produced); err != nil {
		return nil, err
	}
	return f.samples(rate, daemons, s), f.check(rate, b.trickleFor)
}

// settles is how long a service takes until it works as it will from then on: several daemons have to know of each other.
func (b *bench) settles(daemons int) time.Duration {
	if daemons > 1 {
		return b.trickleSettle + b.trickleMeet
	}
	return b.trickleSettle
}

// watch meters a service once it has settled.
func (b *bench) watch(ctx context.Context, f *flow, daemons int) (spent, error) {
	if !pause(ctx, b.settles(daemons)) {
		return spent{}, ctx.Err()
	}
	return b.redis.metered(ctx, func() error {
		f.watch(true)
		defer f.watch(false)
		pause(ctx, b.trickleFor)
		return ctx.Err()
	})
}

// check fails if a run came early or twice, or if far fewer came than should.
func (f *flow) check(rate int, over time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	want := over.Seconds() * float64(rate)
	if runs := float64(len(f.late)); f.early > 0 || f.twice > 0 || runs < want/2 || runs > 1.5*want {
		return fmt.Errorf("%d runs where there should be about %.0f; %d early, %d a second time", len(f.late), want, f.early, f.twice)
	}
	return nil
}

func (f *flow) samples(rate, daemons int, s spent) []sample {
	f.mu.Lock()
	late, skipped := slices.Clone(f.late), f.skipped
	f.mu.Unlock()
	n := float64(len(late))
	figure := func(name, unit string, value float64, target target) sample {
		group := fmt.Sprintf("recurring tasks, %s runs/s, daemons: %d; asynq: with its producers", digits(rate), daemons)
		return sample{spec{"trickle", group, name, unit, lower, target}, value}
	}
	var redis, client, commands, p50, p99 target
	switch rate {
	case 10:
		redis, client = partOfAsynq(1), partOfAsynq(1)
	case 100:
		redis, client, commands = partOfAsynq(0.5), partOfAsynq(0.6), atMost(8)
	case 1000:
		redis, client, commands, p50, p99 = partOfAsynq(0.3), partOfAsynq(0.3), atMost(8), atMost(2), atMost(6)
	}
	return []sample{
		figure("Redis CPU", "us/run", s.redis/n, redis),
		figure("client CPU", "us/run", s.client/n, client),
		figure("Redis commands", "/run", s.commands/n, commands),
		figure("due to start, p50", "ms", quantile(late, 0.5), p50),
		figure("due to start, p99", "ms", quantile(late, 0.99), p99),
		figure("due to start, earliest", "ms", quantile(late, 0), atLeast(0)),
		figure("occurrences skipped", "", float64(skipped), target{}),
	}
}
