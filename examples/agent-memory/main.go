// A small agent memory: what is said is remembered, rolled up into days, weeks and months at night, and compacted, all as
// tasks of duly with its presets; questions, answers and corrections are tasks with the labels of MemOS.
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

// run opens Redis twice: by the store for the tasks, and by a client of its own for the memory.
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
	// Once for each agent, for instance when it is created.
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

// upkeep are the presets that an agent's memory has, in the order in which one builds on the other.
var upkeep = []string{"memory.rollup_day", "memory.rollup_week", "memory.rollup_month", "memory.compaction"}

// Remember gives an agent a memory: its upkeep, once, however often this is called.
func Remember(ctx context.Context, s *core.Scheduler, agent string) error {
	var tasks []core.NewTask
	for _, name := range upkeep {
		// Replaced at each start, so that a new version of this program brings its own times.
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
	// By hand, as a month of nights would take a month.
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

// ask submits a question and prints its answer, and what that was found in.
func ask(ctx context.Context, s *core.Scheduler, agent string, out io.Writer) error {
	asked, err := s.Submit(ctx, core.NewTask{Agent: agent, Preset: "answer", Payload: payload{Content: "what does Bob like?"}})
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
	var result Answer
	if err := json.Unmarshal(answer.Result, &result); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, result.Text)
	for _, e := range result.From {
		_, _ = fmt.Fprintf(out, "%s  %s\n", e.At.Format(time.DateOnly), e.Text)
	}
	return nil
}
