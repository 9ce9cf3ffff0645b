package main

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// payload is what tasks of a memory carry: the fields of a MemOS message, and of the presets.
// They are one type, so that each handler can read what it needs.
type payload struct {
	Content string    `json:"content"`
	At      time.Time `json:"timestamp"`
	MinAge  string    `json:"min_age"`
}

// minAge is zero for a task that does not say.
func (p payload) minAge() time.Duration {
	d, err := time.ParseDuration(p.MinAge)
	if err != nil {
		return 0
	}
	return d
}

// entry is what a task says, when it was said.
// A message may have been said long before it was submitted.
func entry(t *core.Task[payload]) Entry {
	if t.Payload.At.IsZero() {
		return Entry{At: t.Submitted, Text: t.Payload.Content}
	}
	return Entry{At: t.Payload.At, Text: t.Payload.Content}
}

// Register makes a scheduler work for a memory: the labels of its messages, and the presets of its upkeep.
// Labels and presets are kinds: each has a handler, and several share one.
func Register(s *core.Scheduler, m *Memory) {
	// A batch is written message by message: one that fails is repeated alone.
	core.HandleBatch(s, "add", func(ctx context.Context, ts []*core.Task[payload]) []error {
		outcomes := make([]error, len(ts))
		for i, t := range ts {
			outcomes[i] = m.Add(ctx, t.Agent, entry(t))
		}
		return outcomes
	})
	core.Handle(s, "mem_read", func(ctx context.Context, t *core.Task[payload]) error {
		return m.Read(ctx, t.Agent, entry(t))
	})
	core.Handle(s, "query", func(ctx context.Context, t *core.Task[payload]) error {
		found, err := m.Query(ctx, t.Agent, t.Payload.Content, 5)
		return result(t, found, err)
	})
	core.Handle(s, "answer", func(ctx context.Context, t *core.Task[payload]) error {
		answer, err := m.Answer(ctx, t.Agent, t.Payload.Content)
		return result(t, answer, err)
	})
	for _, label := range []string{"mem_update", "mem_feedback"} { // both say what should have been said
		core.Handle(s, label, func(ctx context.Context, t *core.Task[payload]) error {
			return m.Correct(ctx, t.Agent, entry(t))
		})
	}
	organize := func(ctx context.Context, t *core.Task[payload], steps ...rollUp) error {
		made := 0
		for _, step := range steps {
			n, err := m.RollUp(ctx, t.Agent, step, t.Payload.minAge())
			if made += n; err != nil {
				return err
			}
		}
		return t.SetResult(map[string]int{"summaries": made})
	}
	core.Handle(s, "mem_organize", func(ctx context.Context, t *core.Task[payload]) error { return organize(ctx, t, rollUps...) })
	for i, kind := range upkeep[:len(rollUps)] {
		core.Handle(s, kind, func(ctx context.Context, t *core.Task[payload]) error { return organize(ctx, t, rollUps[i]) })
	}
	for _, kind := range []string{"mem_archive", "memory.compaction"} {
		core.Handle(s, kind, func(ctx context.Context, t *core.Task[payload]) error {
			n, err := m.Compact(ctx, t.Agent)
			return result(t, map[string]int64{"dropped": n}, err)
		})
	}
}

// result is the outcome of a task that has one.
func result(t *core.Task[payload], value any, err error) error {
	if err != nil {
		return err
	}
	return t.SetResult(value)
}
