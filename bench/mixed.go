package main

// Mixed: agents as they are, with a nightly task, polls, and one-offs of which some fail.

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// The tasks of each agent in a mix: one that is due at night, polls, and tasks that are due once.
const (
	mixTasks  = 5
	mixNight  = 0 // its number among the agent's tasks
	mixPolls  = 2 // 1 and 2
	mixEvery  = 5 * time.Second
	mixFails  = 5 // one run in so many
	mixRepeat = 10 * time.Millisecond
)

func measureMixed(ctx context.Context, b *bench) error {
	return b.compare(ctx, 1, contestant{sideDuly, "mixed, " + ofAgents(b.mixedAgents), b.dulyMixed})
}

// mix counts the runs of a mix.
type mix struct {
	agents int
	runs   atomic.Int64
	ended  ledger // runs of each task that succeeded
}

// at is which of its agent's tasks task n is.
func (m *mix) at(n int) int { return n / m.agents }

var errMix = errors.New("one run in five fails")

// run fails now and then, by its count over all tasks.
func (m *mix) run(_ context.Context, t *core.Task[payload]) error {
	if m.runs.Add(1)%mixFails == 0 {
		return errMix
	}
	m.ended.mark(t.Payload.N)
	return nil
}

func (m *mix) task(i int) core.NewTask {
	t := newTask(i, m.agents, 0)
	t.Backoff, t.MaxAttempts = mixRepeat, 20
	switch at := m.at(i); {
	case at == mixNight:
		t.Cron = nightly(time.Now())
	case at <= mixPolls:
		t.Every = mixEvery
	}
	return t
}

// nightly is a cron expression for an hour that is not the next one.
func nightly(now time.Time) string {
	return fmt.Sprintf("0 %d * * *", now.UTC().Add(12*time.Hour).Hour())
}

// dulyMixed submits the tasks of all agents, then runs what is due until each one-off has ended and each poll has run.
func (b *bench) dulyMixed(ctx context.Context) (_ []sample, err error) {
	n := b.mixedAgents * mixTasks
	m := &mix{agents: b.mixedAgents, ended: make(ledger, n)}
	d, err := openHandling(ctx, b.redis, b.concurrency, m.run)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	submit, err := b.redis.metered(ctx, func() error { return d.submit(ctx, 0, n, m.task) })
	if err != nil {
		return nil, err
	}
	run, err := b.redis.metered(ctx, func() error {
		for m.left() > 0 {
			if _, err := d.RunDue(ctx, core.Scope{}); err != nil && !errors.As(err, new(*core.RunsError)) {
				return err
			}
			if !pause(ctx, mixRepeat) {
				return ctx.Err()
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m.samples(submit, run), m.check()
}

// left is how many tasks have not run that should.
func (m *mix) left() int {
	left := 0
	for i := range m.ended {
		if m.at(i) != mixNight && m.ended[i].Load() == 0 {
			left++
		}
	}
	return left
}

// check fails if a one-off ended twice, or if a nightly task ran.
func (m *mix) check() error {
	wrong := 0
	for i := range m.ended {
		runs, at := m.ended[i].Load(), m.at(i)
		if at == mixNight && runs > 0 || at > mixPolls && runs != 1 {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d tasks ran at the wrong time or twice", wrong, len(m.ended))
	}
	return nil
}

func (m *mix) samples(submit, run spent) []sample {
	tasks, runs := float64(len(m.ended)), float64(m.runs.Load())
	figure := func(name, unit string, better better, value float64) sample {
		group := fmt.Sprintf("mixed, %s: a nightly task, 2 every 5 s, 2 one-offs; one run in five fails", ofAgents(m.agents))
		return sample{spec{"mixed", group, name, unit, better, target{}}, value}
	}
	return []sample{
		figure("Redis CPU, submit", "us/task", lower, submit.redis/tasks),
		figure("Redis CPU", "us/run", lower, run.redis/runs),
		figure("client CPU", "us/run", lower, run.client/runs),
		figure("Redis commands", "/run", lower, run.commands/runs),
		figure("runs", "runs/s", higher, runs/run.wall.Seconds()),
	}
}
