package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// notes say what was measured on what, how, and what to make of it.
func (b *bench) notes(ctx context.Context) ([]string, error) {
	server, err := b.redis.info(ctx, "server")
	if err != nil {
		return nil, err
	}
	notes := []string{
		fmt.Sprintf("Machine: %d CPUs, %s/%s, load %s at the start. Redis %s over %s, without persistence; %s; asynq %s; go-redis %s.",
			runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, load(), server["redis_version"], b.network, runtime.Version(),
			version("github.com/hibiken/asynq"), version("github.com/redis/go-redis/v9")),
		fmt.Sprintf("Method: submitters, workers and Redis share the machine; no-op handlers; payload about 130 bytes; %s a round, %s in turn, "+
			"medians. duly: Submit of %d tasks a call, RunDue with Concurrency %d, records kept uncut. asynq: Enqueue one by one, as it has no bulk call, "+
			"Concurrency %d, retention 7 days. Both submit from %d goroutines. Each task has to run exactly once, or the bench fails.",
			count(b.tasks, "task"), count(b.rounds, "round"), batch, b.concurrency, asynqConcurrency, producers),
		"Reading: CPU per task is steady; times and rates move with the load of the machine by half and more, so compare within one run only. " +
			"Differences under 20 % mean nothing. 'times better' is above 1 where duly is better. Targets are those of docs/guarantees.md.",
	}
	if b.quick {
		notes = append(notes, "QUICK: these sizes show that the bench works. Their figures mean nothing.")
	}
	return notes, nil
}

// load is the machine's load average of the last minute, where the system tells.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// version is that of a module we are built with.
func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return m.Version
			}
		}
	}
	return "unknown"
}
