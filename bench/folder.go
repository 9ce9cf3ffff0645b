package main

// Folder: whole lives in a folder in place of Redis, beside the same on a Redis that writes an append-only file.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/filestore"
)

// measureFolder has the same process live on a Redis with a file, and on a folder that is synced before each answer, or now and then.
func measureFolder(ctx context.Context, b *bench) error {
	agents := b.agents[len(b.agents)-1]
	c := &course{measurement: "folder", title: "whole life on a Redis with an append-only file", agents: []int{agents}, rounds: b.rounds}
	if err := b.redis.appendOnly(ctx, true); err != nil {
		return err
	}
	contestants := []contestant{{side: sideDuly, label: c.title, run: func(ctx context.Context) ([]sample, error) { return b.fileLife(ctx, c, agents) }}}
	for _, f := range []struct {
		title string
		every time.Duration
	}{{"whole life in a folder, fsync before each answer", 0}, {"whole life in a folder, fsync every 100ms", 100 * time.Millisecond}} {
		contestants = append(contestants, contestant{side: sideDuly, label: f.title, run: func(ctx context.Context) ([]sample, error) {
			return b.folderLife(ctx, f.title, agents, f.every)
		}})
	}
	return errors.Join(b.compare(ctx, c.rounds, contestants...), b.redis.appendOnly(ctx, false))
}

// fileLife is a life on a Redis with a file, in the figures that a folder has.
func (b *bench) fileLife(ctx context.Context, c *course, agents int) ([]sample, error) {
	before, err := b.redis.number(ctx, "persistence", "aof_current_size")
	if err != nil {
		return nil, err
	}
	all, err := b.dulyLife(ctx, c, agents)
	if err != nil {
		return nil, err
	}
	after, err := b.redis.number(ctx, "persistence", "aof_current_size")
	if err != nil {
		return nil, err
	}
	var out []sample
	for _, s := range all {
		if s.name == "client CPU" || s.name == "end to end" {
			out = append(out, s)
		}
	}
	bytes := sample{spec{c.measurement, out[0].group, "bytes on disk", "/task", lower, target{}}, (after - before) / float64(b.tasks)}
	return append(out, bytes), nil
}

// folderLife is a life in a folder: its speed, its work, and the bytes of its journal.
func (b *bench) folderLife(ctx context.Context, title string, agents int, every time.Duration) (_ []sample, err error) {
	dir, err := os.MkdirTemp("", "duly-bench")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	st, err := filestore.Open(filestore.Config{Dir: dir, SyncEvery: every, MaxTasks: uncut, Kept: uncut, SnapshotAfter: 1 << 40})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	s, err := core.New(st, core.Config{Concurrency: b.concurrency})
	if err != nil {
		return nil, err
	}
	ran := make(ledger, b.tasks)
	core.Handle(s, kind, func(_ context.Context, t *core.Task[payload]) error {
		ran.mark(t.Payload.N)
		return nil
	})
	d := &duly{Scheduler: s}
	all, err := b.redis.metered(ctx, func() error {
		if err := d.submit(ctx, 0, b.tasks, func(i int) core.NewTask { return newTask(i, agents, 0) }); err != nil {
			return err
		}
		return d.drain(ctx, b.tasks)
	})
	if err != nil {
		return nil, err
	}
	bytes, err := journalBytes(dir)
	if err != nil {
		return nil, err
	}
	group := fmt.Sprintf("%s, %s of %s", title, ofAgents(agents), digits(max(b.tasks/agents, 1)))
	figure := func(name, unit string, better better, value float64) sample {
		return sample{spec{"folder", group, name, unit, better, target{}}, value}
	}
	n := float64(b.tasks)
	return []sample{
		figure("client CPU", "us/task", lower, all.client/n),
		figure("bytes on disk", "/task", lower, float64(bytes)/n),
		figure("end to end", "tasks/s", higher, n/all.wall.Seconds()),
	}, ran.check()
}

// journalBytes is how long the journal of a folder is.
func journalBytes(dir string) (int64, error) {
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	sum := int64(0)
	for _, path := range all {
		if info, err := os.Stat(path); err == nil && strings.HasPrefix(filepath.Base(path), "journal-") {
			sum += info.Size()
		}
	}
	return sum, err
}
