// A small agent memory: what is said is remembered, rolled up into days, weeks and months at night, and compacted, all as
// tasks of duly with its presets.
//
//	go run ./examples/agent-memory -redis redis://127.0.0.1:6379/0
//
// shows a month of one agent at once. With -serve it stays and works at the times of the presets.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

func main() {
	url := flag.String("redis", "redis://127.0.0.1:6379/0", "Redis for the tasks and the memory")
	serve := flag.Bool("serve", false, "stay, and work at the times of the presets")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *url, *serve, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string, serve bool, out io.Writer) error {
	options, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: url})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	s, err := core.New(store, core.Config{})
	if err != nil {
		return err
	}
	memory := &Memory{Redis: client, Sum: Extractive{}, Now: time.Now}
	Register(s, memory)
	if err := Remember(ctx, s, "ada"); err != nil {
		return err
	}
	if serve {
		d, err := daemon.New(s, daemon.Config{Waker: store})
		if err != nil {
			return err
		}
		return d.Run(ctx)
	}
	return show(ctx, s, memory, out)
}

// payload is what tasks of a memory carry: the fields of a message, and of the presets.
type payload struct {
	Content string    `json:"content"`
	At      time.Time `json:"timestamp"`
	MinAge  string    `json:"min_age"`
}

func (p payload) minAge() time.Duration {
	d, err := time.ParseDuration(p.MinAge)
	if err != nil {
		return 0
	}
	return d
}

// Register makes a scheduler work for a memory: the labels of its messages, and the presets of its upkeep.
func Register(s *core.Scheduler, m *Memory) {
	core.HandleBatch(s, "add", func(ctx context.Context, ts []*core.Task[payload]) []error {
		outcomes := make([]error, len(ts))
		for i, t := range ts {
			at := t.Payload.At
			if at.IsZero() {
				at = t.Submitted.Time()
			}
			outcomes[i] = m.Add(ctx, t.Agent, Entry{At: at, Text: t.Payload.Content})
		}
		return outcomes
	})
	core.Handle(s, "query", func(ctx context.Context, t *core.Task[payload]) error {
		found, err := m.Query(ctx, t.Agent, t.Payload.Content, 5)
		if err != nil {
			return err
		}
		return t.SetResult(found)
	})
	for kind, levels := range map[string][2]string{
		"memory.rollup_day": {segments, days}, "memory.rollup_week": {days, weeks}, "memory.rollup_month": {weeks, months},
	} {
		core.Handle(s, kind, func(ctx context.Context, t *core.Task[payload]) error {
			n, err := m.RollUp(ctx, t.Agent, levels[0], levels[1], t.Payload.minAge())
			if err != nil {
				return err
			}
			return t.SetResult(map[string]int{"summaries": n})
		})
	}
	core.Handle(s, "memory.compaction", func(ctx context.Context, t *core.Task[payload]) error {
		n, err := m.Compact(ctx, t.Agent)
		if err != nil {
			return err
		}
		return t.SetResult(map[string]int64{"dropped": n})
	})
}

// upkeep are the presets that an agent's memory has, in the order in which one builds on the other.
var upkeep = []string{"memory.rollup_day", "memory.rollup_week", "memory.rollup_month", "memory.compaction"}

// Remember gives an agent a memory: its upkeep, once, however often this is called.
func Remember(ctx context.Context, s *core.Scheduler, agent string) error {
	var tasks []core.NewTask
	for _, name := range upkeep {
		tasks = append(tasks, core.NewTask{Agent: agent, ID: name, Preset: name, OnConflict: core.OnConflictReplace})
	}
	_, err := s.Submit(ctx, tasks...)
	return err
}

// show lets a month pass at once: it says something each day, runs the upkeep by hand and asks a question.
func show(ctx context.Context, s *core.Scheduler, m *Memory, out io.Writer) error {
	const agent = "ada"
	topics := []string{"the garden needs water", "the report about engines is due", "Bob likes tea better than coffee"}
	var tasks []core.NewTask
	for day := range 40 {
		at := m.Now().AddDate(0, 0, -day-1)
		text := fmt.Sprintf("%s. Ada said that %s.", at.Format("Monday"), topics[day%len(topics)])
		tasks = append(tasks, core.NewTask{
			Agent: agent, ID: fmt.Sprintf("said-%d", day), Preset: "add", Payload: payload{Content: text, At: at}, Group: "said",
		})
	}
	if _, err := s.Submit(ctx, tasks...); err != nil {
		return err
	}
	if _, err := s.RunDueTasks(ctx, []string{agent}); err != nil {
		return err
	}
	for _, id := range upkeep {
		if _, err := s.RunNow(ctx, agent, id); err != nil {
			return err
		}
		if _, err := s.RunDueTasks(ctx, []string{agent}); err != nil {
			return err
		}
	}
	for _, level := range []string{segments, days, weeks, months} {
		entries, err := m.Level(ctx, agent, level)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "%-8s %d\n", level, len(entries))
	}
	return ask(ctx, s, agent, out)
}

// ask submits a question and prints what it found.
func ask(ctx context.Context, s *core.Scheduler, agent string, out io.Writer) error {
	asked, err := s.Submit(ctx, core.NewTask{Agent: agent, Preset: "query", Payload: payload{Content: "what does Bob like?"}})
	if err != nil {
		return err
	}
	if _, err := s.RunDueTasks(ctx, []string{agent}); err != nil {
		return err
	}
	answer, err := s.Task(ctx, agent, asked[0].ID)
	if err != nil {
		return err
	}
	var found []Entry
	if err := json.Unmarshal(answer.Result, &found); err != nil {
		return err
	}
	for _, e := range found {
		_, _ = fmt.Fprintf(out, "%s  %s\n", e.At.Format(time.DateOnly), e.Text)
	}
	return nil
}
