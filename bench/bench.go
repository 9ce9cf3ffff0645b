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
	instructions               string // the file of kept counts; empty: measure
	fleet                      int    // agents of the scale measurement
	keep                       string // the file for its figures; empty: none
	update                     bool
}

// sizes are how much each measurement does.
type sizes struct {
	latencyTasks   int
	latencySpread  time.Duration
	idleAgents     int
	idleSettle     time.Duration // before commands are counted
	idleFor        time.Duration
	idleQueues     int
	memoryTasks    int
	dueAgents      int
	catchUp        int
	steadyTasks    int
	steadyWarm     int // passes before any is measured: they fill the histories
	steadyPasses   int
	trickleRates   []int // runs a second
	trickleDaemons []int // that share them
	trickleSettle  time.Duration
	trickleMeet    time.Duration // how much longer several daemons take until each knows of the others
	besideRate     int
	besideMost     int // features
	trickleFor     time.Duration
	mixedAgents    int
	limitTasks     int
	crowdTasks     int
	scaleHistory   int // runs that a recurring task keeps
	scaleRest      time.Duration
	scaleWindow    time.Duration
}

func (o *options) sizes() sizes {
	s := sizes{
		latencyTasks: 1000, latencySpread: 5 * time.Second,
		idleAgents: 100_000, idleSettle: 2 * time.Second, idleFor: 15 * time.Second, idleQueues: 1000,
		memoryTasks: 100_000, dueAgents: 100_000, catchUp: 100_000,
		steadyTasks: 20_000, steadyWarm: 20, steadyPasses: 4,
		trickleRates: []int{10, 100, 1000}, trickleDaemons: []int{1, 4}, trickleSettle: 3 * time.Second, trickleMeet: 25 * time.Second, trickleFor: 20 * time.Second, besideRate: 100, besideMost: 100,
		mixedAgents: 20_000, limitTasks: 20_000, crowdTasks: 100_000,
		scaleHistory: 20, scaleRest: 10 * time.Second, scaleWindow: time.Minute,
	}
	switch {
	case o.quick:
		s = sizes{
			latencyTasks: 100, latencySpread: time.Second,
			idleAgents: 1000, idleSettle: 500 * time.Millisecond, idleFor: time.Second, idleQueues: 20,
			memoryTasks: 1000, dueAgents: 2000, catchUp: 2000,
			steadyTasks: 200, steadyWarm: 0, steadyPasses: 1,
			trickleRates: []int{50}, trickleDaemons: []int{1}, trickleSettle: 500 * time.Millisecond, trickleFor: 3 * time.Second, besideRate: 50, besideMost: 2, // several times as long as a server of asynq sleeps when it finds nothing
			mixedAgents: 100, limitTasks: 200, crowdTasks: 1000,
			scaleHistory: 3, scaleRest: time.Second, scaleWindow: 5 * time.Second,
		}
	case o.big:
		s.dueAgents, s.catchUp = 1_000_000, 1_000_000
		s.trickleRates = append(s.trickleRates, 5000)
	}
	return s
}

// bench runs measurements on one Redis and gathers what they find.
type bench struct {
	options
	sizes
	redis    *redisServer
	sheet    sheet
	scale    *scaleFound // nil unless it was measured
	progress io.Writer
}

// measurement is a thing to measure, by the name that -only takes.
type measurement struct {
	name, about string
	run         func(ctx context.Context, b *bench) error
	apart       bool // runs only if -only names it, as it takes many minutes
}

var measurements = []measurement{
	{"life", "whole life of a task: submit in batches, then drain", measureLife, false},
	{"persist", "the same, with an append-only file", measurePersist, false},
	{"folder", "the same, in a folder in place of Redis", measureFolder, false},
	{"payload", "the same, with payloads of 1 kB", measurePayload, false},
	{"submit", "one task a call, from 64 goroutines", measureSubmit, false},
	{"limits", "few slots, and so small claims", measureLimits, false},
	{"features", "what limits, budgets, profiles and hooks cost where they are on", measureFeatures, false},
	{"steady", "recurring tasks that are always overdue", measureSteady, false},
	{"trickle", "recurring tasks at 10, 100 and 1,000 runs a second, in one daemon and in four", measureTrickle, false},
	{"beside", "recurring tasks at 100 runs a second, with each feature on, and in use by others", measureBeside, false},
	{"mixed", "a nightly task, polls and one-offs of many agents", measureMixed, false},
	{"latency", "from due to the start of the handler", measureLatency, false},
	{"idle", "nothing due for an hour", measureIdle, false},
	{"memory", "bytes a task", measureMemory, false},
	{"due", "RunDue for all agents", measureDue, false},
	{"longest", "how long one script keeps Redis", measureLongest, false},
	{"catchup", "a backlog of overdue tasks", measureCatchUp, false},
	{"scale", "a fleet of a million agents: bytes, at rest, and what a minute of its day and of its night costs", measureScale, true},
}

// contestant is one side of a comparison. Its runs share nothing: the server is empty each time.
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
