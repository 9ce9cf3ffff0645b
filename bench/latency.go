package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/seed-6f6f2c11/duly/core"
)

// latencyAgents is how many agents the delayed tasks belong to.
const latencyAgents = 1000

// firstDue is how long after its submit the first delayed task is due; patience is how long the last may take to start.
const (
	firstDue = 500 * time.Millisecond
	patience = 20 * time.Second
)

// longestSleep is how long a host that runs duly's tasks sleeps at most.
const longestSleep = 5 * time.Second

// measureLatency submits tasks that fall due one after the other and takes the time from there to their handlers. The
// store uses the clock of this machine, so that the two can be compared.
func measureLatency(ctx context.Context, b *bench) error {
	return b.compare(ctx, b.rounds,
		contestant{sideDuly, "latency", b.dulyLatency},
		contestant{sideAsynq, "latency", b.asynqLatency},
	)
}

// starts notes how late each task started.
type starts struct {
	ran  ledger
	late []float64 // ms
	left atomic.Int64
	done chan struct{} // closed when each has started
}

func newStarts(n int) *starts {
	s := &starts{ran: make(ledger, n), late: make([]float64, n), done: make(chan struct{})}
	s.left.Store(int64(n))
	return s
}

func (s *starts) note(n int, late time.Duration) {
	s.ran.mark(n)
	s.late[n] = milliseconds(late)
	if s.left.Add(-1) == 0 {
		close(s.done)
	}
}

// wait returns once each task has started.
func (s *starts) wait(ctx context.Context, limit time.Duration) error {
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(limit):
		return fmt.Errorf("%d tasks did not start within %s", s.left.Load(), limit)
	}
}

func (s *starts) samples() []sample {
	figure := func(name string, value float64, target target) sample {
		return sample{spec{"latency", "due to start of the handler", name, "ms", lower, target}, value}
	}
	return []sample{
		figure("p50", quantile(s.late, 0.5), atMost(2)),
		figure("p99", quantile(s.late, 0.99), atMost(6)),
		figure("latest", quantile(s.late, 1), target{}),
		figure("earliest", quantile(s.late, 0), atLeast(0)),
	}
}

// delay is how long after the start task i is due.
func (b *bench) delay(i int) time.Duration {
	return firstDue + time.Duration(i)*b.latencySpread/time.Duration(b.latencyTasks)
}

func (b *bench) dulyLatency(ctx context.Context) (_ []sample, err error) {
	s := newStarts(b.latencyTasks)
	d, err := openDuly(ctx, b.redis, b.concurrency, func(t *core.Task[payload]) {
		s.note(t.Payload.N, time.Since(t.Due))
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	err = d.whileServing(ctx, func(ctx context.Context) error {
		err := d.submit(ctx, 0, b.latencyTasks, func(i int) core.NewTask { return newTask(i, latencyAgents, b.delay(i)) })
		if err != nil {
			return err
		}
		return s.wait(ctx, b.latencySpread+patience)
	})
	if err != nil {
		return nil, err
	}
	return s.samples(), s.ran.check()
}

func (b *bench) asynqLatency(ctx context.Context) (_ []sample, err error) {
	s := newStarts(b.latencyTasks)
	due := make([]time.Time, b.latencyTasks)
	begun := time.Now()
	for i := range due {
		due[i] = begun.Add(b.delay(i))
	}
	p := openAsynq(b.redis, 0)
	defer func() { err = errors.Join(err, p.Close()) }()
	server, err := p.serve(nil, time.Second, func(n int) { s.note(n, time.Since(due[n])) })
	if err != nil {
		return nil, err
	}
	defer server.Shutdown()
	err = spread(ctx, producers, b.latencyTasks, func(ctx context.Context, i int) error {
		return p.enqueue(ctx, i, asynq.ProcessAt(due[i]))
	})
	if err == nil {
		err = s.wait(ctx, b.latencySpread+patience)
	}
	if err != nil {
		return nil, err
	}
	return s.samples(), s.ran.check()
}
