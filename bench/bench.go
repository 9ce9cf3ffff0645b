package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"
)

// options are what the flags say.
type options struct {
	rounds, tasks, concurrency int
	agents                     []int
	only                       []string
	network                    string
	quick, big                 bool
}

// sizes are how much each measurement does.
type sizes struct {
	latencyTasks  int
	latencySpread time.Duration
	idleAgents    int
	idleSettle    time.Duration // before commands are counted
	idleFor       time.Duration
	idleQueues    int
	memoryTasks   int
	dueAgents     int
	catchUp       int
}

func (o *options) sizes() sizes {
	s := sizes{
		latencyTasks: 1000, latencySpread: 5 * time.Second,
		idleAgents: 100_000, idleSettle: 2 * time.Second, idleFor: 15 * time.Second, idleQueues: 1000,
		memoryTasks: 100_000, dueAgents: 100_000, catchUp: 100_000,
	}
	switch {
	case o.quick:
		s = sizes{
			latencyTasks: 100, latencySpread: time.Second,
			idleAgents: 1000, idleSettle: 500 * time.Millisecond, idleFor: time.Second, idleQueues: 20,
			memoryTasks: 1000, dueAgents: 2000, catchUp: 2000,
		}
	case o.big:
		s.dueAgents, s.catchUp = 1_000_000, 1_000_000
	}
	return s
}

// bench runs measurements on one Redis and gathers what they find.
type bench struct {
	options
	sizes
	redis    *redisServer
	sheet    sheet
	progress io.Writer
}

// measurement is a thing to measure, by the name that -only takes.
type measurement struct {
	name, about string
	run         func(ctx context.Context, b *bench) error
}

var measurements = []measurement{
	{"life", "whole life of a task: submit in batches, then drain", measureLife},
	{"submit", "one task a call, from 64 goroutines", measureSubmit},
	{"latency", "from due to the start of the handler", measureLatency},
	{"idle", "nothing due for an hour", measureIdle},
	{"memory", "bytes a task", measureMemory},
	{"due", "RunDue for all agents", measureDue},
	{"catchup", "a backlog of overdue tasks", measureCatchUp},
}

// contestant is one side of a comparison. Its run is told nothing of earlier ones: the server is empty each time.
type contestant struct {
	side  side
	label string
	run   func(ctx context.Context) ([]sample, error)
}

// compare lets the contestants run one after the other, for some rounds, so that what disturbs the machine disturbs all
// of them alike.
func (b *bench) compare(ctx context.Context, rounds int, contestants ...contestant) error {
	for round := range rounds {
		for _, c := range contestants {
			if err := b.redis.flush(ctx); err != nil {
				return err
			}
			runtime.GC()
			_, _ = fmt.Fprintf(b.progress, "  %s, %s, round %d of %d\n", c.label, c.side, round+1, rounds)
			samples, err := c.run(ctx)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", c.label, c.side, err)
			}
			b.sheet.add(c.side, samples...)
		}
	}
	return nil
}
