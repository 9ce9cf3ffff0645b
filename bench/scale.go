package main

// Scale: a fleet of a million agents as platforms have them, weighed, at rest, and in its busiest hour. docs/scale.md is
// computed from what this finds.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// scaleFound is what was found of a fleet, as bench/scale.json keeps it.
type scaleFound struct {
	Redis      string      `json:"redis"`
	Agents     int         `json:"agents"`
	Waiting    int         `json:"waiting_tasks"`
	Partitions int         `json:"partitions"`
	Sorts      []sortFound `json:"sorts"`
	Bytes      float64     `json:"bytes_an_agent"` // of all sorts
	Fill       fillFound   `json:"fill"`
	Single     workFound   `json:"one_submit"` // of one task, alone in its call
	Rest       restFound   `json:"rest"`
	Windows    []winFound  `json:"windows"`
	Audit      workFound   `json:"audit"`
	Pages      workFound   `json:"agent_pages"`
	Stats      workFound   `json:"stats"`
	Open       workFound   `json:"open"`
	Poll       workFound   `json:"one_poll"`  // one read of a queue, by hand
	Asynq      workFound   `json:"one_asynq"` // whole life of a task
}

// sortFound is a sort of agents.
type sortFound struct {
	Name     string  `json:"name"`
	PerMille int     `json:"per_mille"`
	Agents   int     `json:"agents"`
	Bytes    float64 `json:"bytes_an_agent"`
}

// fillFound is what the submits of new tasks took, in batches.
type fillFound struct {
	Tasks    int     `json:"tasks"`
	Seconds  float64 `json:"seconds"`
	Commands float64 `json:"commands_a_task"`
	RedisUS  float64 `json:"redis_us_a_task"`
	Longest  float64 `json:"longest_script_ms"` // with the runs that made the histories
}

// restFound is a second in which nothing is due.
type restFound struct {
	Commands float64 `json:"commands"`
	Sent     float64 `json:"sent"`
	RedisUS  float64 `json:"redis_us"`
	AloneUS  float64 `json:"redis_us_without_a_daemon"`
}

// workFound is one piece of work.
type workFound struct {
	Seconds  float64 `json:"seconds"`
	Commands float64 `json:"commands"`
	RedisMS  float64 `json:"redis_ms"`
	Longest  float64 `json:"longest_script_ms,omitempty"`
}

// measureScale fills a server with a fleet, and looks at it. The server runs before everything else, as the longest scripts are looked for.
func measureScale(ctx context.Context, b *bench) error {
	return b.redis.favoured(func() error {
		return b.compare(ctx, 1,
			contestant{sideDuly, "scale, " + ofAgents(b.fleet), b.dulyScale},
			contestant{sideAsynq, "scale: a whole life", b.asynqScale})
	})
}

func (b *bench) dulyScale(ctx context.Context) (_ []sample, err error) {
	f := newFleet(b.fleet, b.scaleHistory, time.Now())
	b.scale = &scaleFound{Agents: b.fleet}
	server, err := b.redis.info(ctx, "server")
	if err != nil {
		return nil, err
	}
	b.scale.Redis = server["redis_version"]
	if err := b.fill(ctx, f); err != nil {
		return nil, err
	}
	d, err := openDuly(ctx, b.redis, b.concurrency, f.run)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	b.scale.Partitions = d.store.Partitions()
	for _, step := range []func() error{
		func() error { return b.serveFleet(ctx, d, f) },
		func() error { return b.readFleet(ctx, d, f) },
		func() error { return b.callsOne(ctx, d) },
		f.check,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.scale.samples(), nil
}

// asynqScale is the whole life of a task, as a measure of the machine.
func (b *bench) asynqScale(ctx context.Context) ([]sample, error) {
	submit, drain, err := b.whole(ctx, openAsynq(b.redis, 0), b.tasks)
	if err != nil {
		return nil, err
	}
	b.scale.Asynq = submit.plus(drain).found().times(1 / float64(b.tasks))
	return b.scale.asynqSamples(), nil
}

// fill stores all sorts of agents, one after the other, and weighs each.
func (b *bench) fill(ctx context.Context, f *fleet) error {
	before, err := b.redis.usedMemory(ctx)
	if err != nil {
		return err
	}
	empty, fresh := before, 0
	var all spent
	for _, s := range f.sorts {
		_, _ = fmt.Fprintf(b.progress, "  %s with %s\n", ofAgents(s.agents), s.name)
		spent, err := b.fillSort(ctx, f, s)
		if err != nil {
			return fmt.Errorf("agents with %s: %w", s.name, err)
		}
		if !s.remade() {
			all, fresh = all.plus(spent), fresh+s.agents*s.waiting
		}
		b.scale.Waiting += s.agents * s.waiting
		used, err := b.redis.usedMemory(ctx)
		if err != nil {
			return err
		}
		b.scale.Sorts = append(b.scale.Sorts, sortFound{s.name, s.perMille, s.agents, (used - before) / float64(s.agents)})
		before = used
	}
	n := float64(fresh)
	b.scale.Bytes = (before - empty) / float64(b.fleet)
	b.scale.Fill.Tasks = fresh
	b.scale.Fill.Seconds, b.scale.Fill.Commands, b.scale.Fill.RedisUS = all.wall.Seconds(), all.commands/n, all.redis/n
	return nil
}

// fillSort stores the agents of one sort. When it returns no client is connected and the log of slow calls is empty, so that neither is
// weighed. It returns the cost of the submits of waiting tasks alone.
func (b *bench) fillSort(ctx context.Context, f *fleet, s *agentSort) (all spent, err error) {
	if err := b.redis.watchSlow(ctx); err != nil {
		return all, err
	}
	d, err := openDuly(ctx, b.redis, b.concurrency, f.run)
	if err != nil {
		return all, err
	}
	if s.past > 0 {
		err = s.makePast(ctx, d)
	}
	if err == nil {
		all, err = b.redis.metered(ctx, func() error { return f.submitAll(ctx, d, s) })
	}
	longest, slowErr := b.redis.longestSlow(ctx)
	b.scale.Fill.Longest = max(b.scale.Fill.Longest, longest)
	if err := errors.Join(err, slowErr, d.close(), b.redis.client.Do(ctx, "SLOWLOG", "RESET").Err()); err != nil {
		return all, err
	}
	if !pause(ctx, disconnect) {
		return all, ctx.Err()
	}
	return all, nil
}

// longestSlow is how long the longest script took since watchSlow, in ms.
func (r *redisServer) longestSlow(ctx context.Context) (float64, error) {
	longest, err := r.slowest(ctx)
	if err != nil {
		return 0, err
	}
	return slices.Max(slices.Collect(maps.Values(longest))), nil
}

// readFleet does what an operator does now and then.
func (b *bench) readFleet(ctx context.Context, d *duly, f *fleet) error {
	audit := func() error {
		report, err := d.Audit(ctx, inspect.AuditOptions{})
		if err == nil && report.Found > 0 {
			err = fmt.Errorf("the audit found %d faults: %+v", report.Found, report.Faults)
		}
		return err
	}
	pages := func() error {
		n, err := agentsOf(ctx, d)
		if err == nil && n < b.fleet*99/100 { // those whose one-off has run have no task
			err = fmt.Errorf("the pages have %d of %s", n, ofAgents(b.fleet))
		}
		return err
	}
	stats := func() error {
		_, err := d.Stats(ctx)
		return err
	}
	open := func() error {
		other, err := openDuly(ctx, b.redis, b.concurrency, f.run)
		if err != nil {
			return err
		}
		return other.close()
	}
	for _, w := range []struct {
		found *workFound
		work  func() error
	}{{&b.scale.Audit, audit}, {&b.scale.Pages, pages}, {&b.scale.Stats, stats}, {&b.scale.Open, open}} {
		if err := b.redis.watchSlow(ctx); err != nil {
			return err
		}
		s, err := b.redis.metered(ctx, w.work)
		if err != nil {
			return err
		}
		*w.found = s.found()
		if w.found.Longest, err = b.redis.longestSlow(ctx); err != nil {
			return err
		}
	}
	return nil
}

// How many calls are made to find out what one takes.
const (
	singleCalls = 500
	pollCalls   = 50_000
)

// callsOne measures one submit of a task alone, and one command that asks an agent's queue by hand what is due.
func (b *bench) callsOne(ctx context.Context, d *duly) error {
	s, err := b.redis.metered(ctx, func() error {
		for i := range singleCalls {
			t := newTask(i, singleCalls, fleetLater)
			t.Agent = "single-" + t.Agent
			if _, err := d.Submit(ctx, t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.scale.Single = s.found().times(1. / singleCalls)
	s, err = b.redis.metered(ctx, func() error {
		return spread(ctx, producers, pollCalls, func(ctx context.Context, i int) error {
			return b.redis.client.Do(ctx, "ZRANGEBYSCORE", agentName(i, pollCalls), "-inf", time.Now().UnixMilli(), "LIMIT", 0, 1).Err()
		})
	})
	b.scale.Poll = s.found().times(1. / pollCalls)
	return err
}

func (s spent) found() workFound {
	return workFound{Seconds: s.wall.Seconds(), Commands: s.commands, RedisMS: s.redis / 1000}
}

func (w workFound) times(x float64) workFound {
	return workFound{Seconds: w.Seconds * x, Commands: w.Commands * x, RedisMS: w.RedisMS * x, Longest: w.Longest}
}

// write keeps what was found in a file.
func (s *scaleFound) write(file string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the figures: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil { //nolint:gosec // it is part of the repository
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}

// readScale reads what write has written.
func readScale(file string) (*scaleFound, error) {
	text, err := os.ReadFile(file) //nolint:gosec // it is part of the repository
	if err != nil {
		return nil, fmt.Errorf("read the figures: %w", err)
	}
	var s scaleFound
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("read the figures: %w", err)
	}
	return &s, nil
}
