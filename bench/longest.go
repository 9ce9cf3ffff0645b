package main

// Longest: how long one script keeps Redis from everybody else, where there is as much as can be of something.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
)

// longestKept is how many records an agent keeps whose history is long.
const longestKept = 10_000

// crowd is a shape that makes scripts long, if anything does.
type crowd struct {
	title         string
	tasks, agents int
	group         bool
	kept          int // records an agent keeps
}

func (b *bench) crowds() []crowd {
	n := b.crowdTasks
	return []crowd{
		{"an agent with a history of %s that is cut", n / 4, 1, false, min(longestKept, n/8)},
		{"an agent of %s tasks", n, 1, false, uncut},
		{"a group of %s tasks", n, 1, true, uncut},
		{"%s agents of one task", n, n, false, uncut},
	}
}

// measureLongest plays each crowd a few times. A disturbance makes a script longer, never shorter: for each script the round
// counts in which its longest call was the shortest.
func measureLongest(ctx context.Context, b *bench) error {
	var contestants []contestant
	for _, c := range b.crowds() {
		contestants = append(contestants, contestant{sideDuly, "longest, " + c.name(), func(ctx context.Context) ([]sample, error) {
			ms, err := b.shortestOfLongest(ctx, &c)
			return []sample{{spec{"longest", "longest script", c.name(), "ms", lower, atMost(5)}, ms}}, err
		}})
	}
	return b.redis.favoured(func() error { return b.compare(ctx, 1, contestants...) })
}

// shortestOfLongest plays a crowd in each round. It returns the longest call of all scripts, in ms.
func (b *bench) shortestOfLongest(ctx context.Context, c *crowd) (float64, error) {
	best := map[string]float64{}
	for range b.rounds {
		longest, err := b.longest(ctx, c)
		if err != nil {
			return 0, err
		}
		for script, ms := range longest {
			if before, known := best[script]; !known || ms < before {
				best[script] = ms
			}
		}
	}
	return slices.Max(slices.Collect(maps.Values(best))), nil
}

// favoured has the server run before everything else meanwhile, where we may ask for that: a script that waits for a processor
// seems long.
func (r *redisServer) favoured(work func() error) error {
	const first, usual = -20, 0
	pid := r.cmd.Process.Pid
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, pid, first); err != nil {
		return work()
	}
	return errors.Join(work(), syscall.Setpriority(syscall.PRIO_PROCESS, pid, usual))
}

func (c *crowd) name() string {
	n := c.tasks
	if c.kept < uncut {
		n = c.kept
	}
	return fmt.Sprintf(c.title, digits(n))
}

// longest plays a crowd and returns how long the longest call of each script took, in ms.
func (b *bench) longest(ctx context.Context, c *crowd) (_ map[string]float64, err error) {
	if err := b.redis.flush(ctx); err != nil {
		return nil, err
	}
	if err := b.redis.watchSlow(ctx); err != nil {
		return nil, err
	}
	ran := make(ledger, c.tasks)
	// One partition has it all.
	d, err := openWith(ctx, redisstore.Config{URL: b.redis.url(), Partitions: 1, MaxTasks: uncut, Kept: c.kept}, b.concurrency,
		func(_ context.Context, t *core.Task[payload]) error {
			ran.mark(t.Payload.N)
			return nil
		})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	err = d.submit(ctx, 0, c.tasks, func(i int) core.NewTask {
		t := newTask(i, c.agents, 0)
		if c.group {
			t.Group = "crowd"
		}
		return t
	})
	if err != nil {
		return nil, err
	}
	// What people look at, and what watches over it, before and after all have run.
	for _, step := range []func() error{
		func() error { return d.readAll(ctx, c) },
		func() error { return d.drain(ctx, c.tasks) },
		func() error { return d.readAll(ctx, c) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if err := ran.check(); err != nil {
		return nil, err
	}
	return b.redis.slowest(ctx)
}

// readAll lists, counts and audits.
func (d *duly) readAll(ctx context.Context, c *crowd) error {
	agent := agentName(0, c.agents)
	for after := ""; ; {
		page, err := d.store.List(ctx, store.List{Agent: agent, After: after, Limit: 100})
		if err != nil {
			return err
		}
		if after = page.Next; after == "" {
			break
		}
	}
	for after := ""; ; {
		page, err := d.store.Agents(ctx, store.PageOf{After: after, Limit: 100})
		if err != nil {
			return err
		}
		if after = page.Next; after == "" {
			break
		}
	}
	for cursor := ""; ; {
		audited, err := d.store.Audit(ctx, []audit.Page{{Cursor: cursor}})
		if err != nil {
			return err
		}
		if cursor = audited[0].Next; cursor == "" {
			break
		}
	}
	_, err := d.store.Group(ctx, agent, "crowd")
	return err
}

// slowFrom is what a script has to take to be noted; slowMost how many are.
const (
	slowFrom = 200 * time.Microsecond
	slowMost = 100_000
)

// watchSlow has the server note slow commands from now on.
func (r *redisServer) watchSlow(ctx context.Context) error {
	for setting, value := range map[string]int64{"slowlog-log-slower-than": slowFrom.Microseconds(), "slowlog-max-len": slowMost} {
		if err := r.client.ConfigSet(ctx, setting, fmt.Sprint(value)).Err(); err != nil {
			return fmt.Errorf("config set %s: %w", setting, err)
		}
	}
	if err := r.client.Do(ctx, "SLOWLOG", "RESET").Err(); err != nil {
		return fmt.Errorf("slowlog: %w", err)
	}
	return nil
}

// slowest is how long the longest call of each script has taken since, in ms. It stops the noting.
func (r *redisServer) slowest(ctx context.Context) (map[string]float64, error) {
	noted, err := r.client.SlowLogGet(ctx, slowMost).Result()
	if err != nil {
		return nil, fmt.Errorf("slowlog: %w", err)
	}
	longest := map[string]float64{"any other": milliseconds(slowFrom)}
	for _, n := range noted {
		if len(n.Args) > 1 && strings.HasPrefix(strings.ToLower(n.Args[0]), "eval") {
			longest[n.Args[1]] = max(longest[n.Args[1]], milliseconds(n.Duration))
		}
	}
	if err := r.client.ConfigSet(ctx, "slowlog-log-slower-than", "-1").Err(); err != nil {
		return nil, fmt.Errorf("config set: %w", err)
	}
	return longest, nil
}
