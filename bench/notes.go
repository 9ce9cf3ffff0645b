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
		fmt.Sprintf("Machine: %d CPUs, %s/%s, load %s at the start. Redis %s over %s, without persistence but where it says so; %s; asynq %s, taskq %s, "+
			"gocraft/work %s; go-redis %s.",
			runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, load(), server["redis_version"], b.network, runtime.Version(),
			version("github.com/hibiken/asynq"), version("github.com/vmihailenco/taskq/v4"), version("github.com/gocraft/work"),
			version("github.com/redis/go-redis/v9")),
		fmt.Sprintf("Method: submitters, workers and Redis share the machine; no-op handlers; payload about 130 bytes; %s a round, %s in turn, "+
			"medians. duly: Submit of %d tasks a call, RunDue with Concurrency %d, records kept uncut. Peers submit one by one, as none has a bulk call. "+
			"asynq: Concurrency %d, retention 7 days. taskq: %d workers, %d messages a read; gocraft/work: %d workers; neither keeps what has ended. "+
			"All submit from %d goroutines. Each task has to run exactly once, or the bench fails.",
			count(b.tasks, "task"), count(b.rounds, "round"), batch, b.concurrency, asynqConcurrency, taskqWorkers, taskqReserve,
			gocraftWorkers, producers),
		"Reading: CPU per task is steady; times and rates move with the load of the machine by half and more, so compare within one run only. " +
			"Differences under 20 % mean nothing. 'x asynq' is above 1 where duly is better than asynq. Targets are the ones that duly sets itself.",
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

// version is the version of a module we are built with.
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
