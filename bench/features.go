package main

// Features: what each one costs where it is on, beside all of them off.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// feature is one that can be switched on: in the configuration of the process, or in the store.
type feature struct {
	name   string
	config func(c *core.Config)
	set    func(ctx context.Context, d *duly) error
	used   core.Usage // what each run reports
}

// key is the limit key of task i; none has one where no feature is measured.
func (f *feature) key(i int) string {
	if f.name == "" {
		return ""
	}
	return fmt.Sprintf("key%d", i%10)
}

// much is a bound that no benchmark reaches.
const much = 1_000_000

func limited(l core.Limit) func(ctx context.Context, d *duly) error {
	return func(ctx context.Context, d *duly) error { return d.SetLimits(ctx, l) }
}

func budgeted(t core.BudgetTarget) func(ctx context.Context, d *duly) error {
	return func(ctx context.Context, d *duly) error {
		return d.SetBudgets(ctx, core.Budget{About: t, Amount: core.AmountOf(much)})
	}
}

// tenanted gives so many agents one of ten tenants; the others share the turns of those that have none.
func tenanted(agents int) func(ctx context.Context, d *duly) error {
	return func(ctx context.Context, d *duly) error {
		for i := range agents {
			if _, err := d.SetProfile(ctx, core.Profile{Agent: agentName(i, agents), Tenant: fmt.Sprint("tenant", i%10)}); err != nil {
				return err
			}
		}
		return nil
	}
}

// features are none, and then each by itself. None of the bounds is reached: what is held back waits where it costs nothing.
func features() []feature {
	each, key := core.LimitTarget{Each: core.EachAgent}, core.LimitTarget{Key: "*", Each: core.EachKey}
	return []feature{
		{name: "all off"},
		{name: "a limit of runs, each agent", set: limited(core.Limit{About: each, Concurrency: much})},
		{name: "a rate, everything", set: limited(core.Limit{Rate: much, Per: 1e9, Burst: much})},
		{name: "an adaptive limit, each key", set: limited(core.Limit{About: key, Adaptive: true, Concurrency: much})},
		{name: "a budget of runs, everything", set: budgeted(core.BudgetTarget{Unit: bound.UnitRuns, Per: core.PerDay})},
		{
			name: "a budget of tokens, each agent", set: budgeted(core.BudgetTarget{LimitTarget: each, Unit: "tokens", Per: core.PerDay}),
			used: core.Usage{"tokens": 1},
		},
		{name: "usage without a budget", used: core.Usage{"tokens": 1}},
		{name: "a profile, of another agent", set: func(ctx context.Context, d *duly) error {
			_, err := d.SetProfile(ctx, core.Profile{Agent: "other", Quiet: []core.QuietHours{{From: "22:00", To: "07:00"}}})
			return err
		}},
		{name: "tenants, agents without one", set: tenanted(1)},
		{name: "tenants, 10 of 100 agents each", set: tenanted(1000)},
		{name: "of others: a limit of another kind", set: limited(core.Limit{About: core.LimitTarget{Kind: otherKind}, Concurrency: 1})},
		{name: "of others: a limit of another key", set: limited(core.Limit{About: core.LimitTarget{Key: "other"}, Concurrency: 1})},
		{name: "of others: a limit in a profile", set: func(ctx context.Context, d *duly) error {
			_, err := d.SetProfile(ctx, core.Profile{Agent: "other", Limits: []core.Limit{{Concurrency: 1}}})
			return err
		}},
		{name: "of others: a pause of another kind", set: func(ctx context.Context, d *duly) error {
			return d.Pause(ctx, core.Target{Kind: otherKind}, core.Pause{Ahead: true})
		}},
		{name: "events", config: func(c *core.Config) { c.OnEvent = func(core.Event) {} }},
		{name: "a rule that may refuse", config: func(c *core.Config) {
			c.Allow = func(context.Context, core.Transition) error { return nil }
		}},
	}
}

// otherKind is that of tasks that a feature is about and no figure.
const otherKind = "other"

// occupied has so many tasks of another kind due, whose runs last until the daemons stop.
func occupied(tasks int, set func(ctx context.Context, d *duly) error) func(ctx context.Context, d *duly) error {
	return func(ctx context.Context, d *duly) error {
		return errors.Join(set(ctx, d), d.submit(ctx, 0, tasks, func(i int) core.NewTask {
			t := newTask(i, tasks, 0)
			t.Agent, t.Kind = "other-"+t.Agent, otherKind
			return t
		}))
	}
}

// inUse are features that tasks of another kind are subject to while others run.
func inUse() []feature {
	none := func(context.Context, *duly) error { return nil }
	kind := core.LimitTarget{Kind: otherKind}
	return []feature{
		{name: "of others: runs that last", set: occupied(3, none)},
		{name: "of others: a limit that is full", set: occupied(60, limited(core.Limit{About: kind, Concurrency: 3}))},
		{name: "of others: a rate that others wait for", set: occupied(600, limited(core.Limit{About: kind, Rate: 1, Per: time.Second}))},
		{name: "of others: a pause that others wait for", set: occupied(60, func(ctx context.Context, d *duly) error {
			return d.Pause(ctx, core.Target{Kind: otherKind}, core.Pause{Ahead: true})
		})},
		{name: "of others: tasks that no process can run", set: func(ctx context.Context, d *duly) error {
			return d.submit(ctx, 0, 60, func(i int) core.NewTask {
				t := newTask(i, 60, 0)
				t.Kind = "unknown"
				return t
			})
		}},
	}
}

// measureBeside has each feature on beside a trickle, whose runs it is about or not.
func measureBeside(ctx context.Context, b *bench) error {
	short := *b
	short.trickleFor /= 2
	var all []contestant
	some := append(features(), inUse()...)
	for _, f := range some[:min(len(some), b.besideMost)] {
		all = append(all, contestant{sideDuly, f.name, func(ctx context.Context) ([]sample, error) {
			runs, s, err := short.dulyTrickle(ctx, b.besideRate, 1, &f)
			if err != nil {
				return nil, err
			}
			n := float64(len(runs.late))
			figure := func(name, unit string, value float64) sample {
				group := fmt.Sprintf("recurring tasks, %s runs/s, %s", digits(b.besideRate), f.name)
				return sample{spec{"beside", group, name, unit, lower, target{}}, value}
			}
			return []sample{
				figure("Redis CPU", "us/run", s.redis/n), figure("client CPU", "us/run", s.client/n), figure("Redis commands", "/run", s.commands/n),
				figure("due to start, p99", "ms", quantile(runs.late, 0.99)),
			}, nil
		}})
	}
	return b.compare(ctx, 1, all...)
}

func measureFeatures(ctx context.Context, b *bench) error {
	var all []contestant
	for _, f := range features() {
		all = append(all, contestant{sideDuly, f.name, func(ctx context.Context) ([]sample, error) { return b.withFeature(ctx, &f) }})
	}
	return b.compare(ctx, b.rounds, all...)
}

// withFeature submits and drains tasks of as many agents with a feature on.
func (b *bench) withFeature(ctx context.Context, f *feature) (_ []sample, err error) {
	ran := make(ledger, b.limitTasks)
	config := core.Config{Concurrency: 50}
	if f.config != nil {
		f.config(&config)
	}
	d, err := openConfigured(ctx, redisstore.Config{URL: b.redis.url(), MaxTasks: uncut, Kept: uncut, Partitions: 1}, config, func(_ context.Context, t *core.Task[payload]) error {
		ran.mark(t.Payload.N)
		if f.used == nil {
			return nil
		}
		return t.Use(f.used)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if f.set != nil {
		if err := f.set(ctx, d); err != nil {
			return nil, err
		}
	}
	s, err := b.redis.metered(ctx, func() error {
		err := d.submit(ctx, 0, b.limitTasks, func(i int) core.NewTask {
			t := newTask(i, b.limitTasks, 0)
			t.LimitKey = f.key(i)
			return t
		})
		return errors.Join(err, d.drain(ctx, b.limitTasks))
	})
	if err != nil {
		return nil, err
	}
	n := float64(b.limitTasks)
	figure := func(name, unit string, value float64) sample {
		return sample{spec{"features", "life of a task, " + f.name, name, unit, lower, target{}}, value}
	}
	return []sample{figure("Redis CPU", "us/task", s.redis/n), figure("client CPU", "us/task", s.client/n)}, ran.check()
}
