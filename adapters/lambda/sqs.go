package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
)

// record is one message of an SQS event.
type record struct {
	object
}

func (r record) id() string { return r.text("messageId") }

// batch is an SQS event under way.
type batch struct {
	f      *Function
	agents map[string]bool // whose tasks were submitted
	failed []string        // ids of messages
	ended  error           // why no more is submitted; nil while it makes sense
}

// receive submits the tasks of each record. A record that fails is named in the answer, so that SQS delivers it again and
// in the end moves it to the dead-letter queue; the others are done.
func (f *Function) receive(ctx context.Context, o object) (json.RawMessage, error) {
	var records []record
	for _, r := range value[[]object](o, "Records") {
		if r.text("messageId") == "" {
			return nil, &core.InvalidError{Field: "Records", Reason: "has a record without a messageId"}
		}
		records = append(records, record{r})
	}
	b := &batch{f: f, agents: map[string]bool{}}
	b.submitAll(ctx, records)
	if f.config.RunSubmitted {
		b.run(ctx)
	}
	type failure struct {
		ID string `json:"itemIdentifier"`
	}
	list := make([]failure, len(b.failed))
	for i, id := range b.failed {
		list[i].ID = id
	}
	return json.Marshal(map[string]any{"batchItemFailures": list})
}

// submitAll submits record by record, so that a bad one fails by itself. In a FIFO queue none may overtake one that
// failed, and when the store is away there is no sense in asking it again.
func (b *batch) submitAll(ctx context.Context, records []record) {
	ctx, cancel := b.f.soon(ctx)
	defer cancel()
	for _, r := range records {
		err := b.ended
		if err == nil {
			err = b.submit(ctx, r)
		}
		if err == nil {
			continue
		}
		b.failed = append(b.failed, r.id())
		b.f.config.Logger.LogAttrs(ctx, slog.LevelWarn, "a record failed",
			slog.String("message", clip(r.id(), mostName)), slog.String("err", clip(err.Error(), mostError)))
		if b.ended == nil && (strings.HasSuffix(r.text("eventSourceARN"), ".fifo") || !ofInput(err)) {
			b.ended = errors.New("not submitted, as an earlier record failed")
		}
	}
}

// ofInput reports whether an error is about one record, so that the next one may well succeed.
func ofInput(err error) bool {
	code := core.CodeOf(err)
	return code == core.CodeInvalid || code == core.CodeLimit
}

// submit submits the tasks of one record. Those without an id get one from the message, so that the same message
// delivered twice makes no second task.
func (b *batch) submit(ctx context.Context, r record) error {
	tasks, err := core.ParseTasks([]byte(r.text("body")))
	if err != nil {
		return err
	}
	if len(tasks) == 0 {
		return &core.InvalidError{Field: "tasks", Reason: "is empty"}
	}
	for i := range tasks {
		if tasks[i].ID == "" {
			tasks[i].ID = fmt.Sprintf("sqs-%s-%d", r.id(), i)
		}
	}
	submitted, err := b.f.scheduler.Submit(ctx, tasks...)
	if err != nil {
		return err
	}
	for i := range submitted {
		b.agents[submitted[i].Agent] = true
	}
	return nil
}

// run runs what is due for the agents whose tasks were submitted. An error does not make a record fail: its tasks are
// safe, and the next tick runs them.
func (b *batch) run(ctx context.Context) {
	agents := make([]string, 0, len(b.agents))
	for agent := range b.agents {
		agents = append(agents, agent)
	}
	slices.Sort(agents)
	for some := range slices.Chunk(agents, core.MaxAgents) {
		report, err := b.f.scheduler.RunDueTasks(ctx, some)
		failed, err := failures(err)
		if err != nil {
			b.f.config.Logger.LogAttrs(ctx, slog.LevelWarn, "what was submitted could not be run now", slog.Any("err", err))
			return
		}
		b.f.logTick(ctx, report, failed)
	}
}
