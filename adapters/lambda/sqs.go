package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
	"github.com/seed-6f6f2c11/duly/core"
)

// record is one message of an SQS event.
type record struct {
	strictjson.Object
}

func (r record) id() string { return r.Text("messageId") }

// batch is an SQS event under way.
type batch struct {
	f      *Function
	tasks  []core.Submitted
	failed []string // ids of messages
	ended  error    // why no more is submitted; nil while it makes sense
}

// receive submits the tasks of each record. A record that fails is named in the answer, so that SQS delivers it again and
// in the end moves it to the dead-letter queue; the others are done.
func (f *Function) receive(ctx context.Context, o strictjson.Object) (json.RawMessage, error) {
	var records []record
	for _, r := range strictjson.Value[[]strictjson.Object](o, "Records") {
		if r.Text("messageId") == "" {
			return nil, &core.InvalidError{Field: "Records", Reason: "has a record without a messageId"}
		}
		records = append(records, record{r})
	}
	b := &batch{f: f}
	b.submitAll(ctx, records)
	if f.config.RunSubmitted {
		f.runner.RunSubmitted(ctx, b.tasks)
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
	ctx, cancel := trigger.Soon(ctx, b.f.config.Margin)
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
			slog.String("message", trigger.Clip(r.id(), trigger.MaxName)), slog.String("err", trigger.Clip(err.Error(), trigger.MaxError)))
		if b.ended == nil && (strings.HasSuffix(r.Text("eventSourceARN"), ".fifo") || !ofInput(err)) {
			b.ended = errors.New("not submitted, as an earlier record failed")
		}
	}
}

// ofInput reports whether an error is about one record, so that the next one may well succeed.
func ofInput(err error) bool {
	code := core.CodeOf(err)
	return code == core.CodeInvalid || code == core.CodeLimit
}

// submit submits the tasks of one record.
func (b *batch) submit(ctx context.Context, r record) error {
	tasks, err := trigger.ReadTasks([]byte(r.Text("body")), "sqs-"+r.id())
	if err != nil {
		return err
	}
	submitted, err := b.f.scheduler.Submit(ctx, tasks...)
	b.tasks = append(b.tasks, submitted...)
	return err
}
