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

// SQS events. A batch is not all or nothing: one record that is wrong must not bring the others again.

// record is one message of an SQS event.
// Its own mistake must not fail the others.
type record struct {
	id    string
	fifo  bool
	tasks []core.NewTask
	err   error // why it has no tasks
}

// newRecord reads one record; what is wrong with it is kept for later.
func newRecord(o strictjson.Object) record {
	r := record{id: o.Text("messageId"), fifo: strings.HasSuffix(o.Text("eventSourceARN"), ".fifo")}
	r.tasks, r.err = trigger.ReadTasks([]byte(o.Text("body")), "sqs-"+r.id)
	return r
}

// batch is an SQS event under way.
// It is used by one goroutine.
type batch struct {
	f      *Function
	tasks  []core.Submitted
	failed []string // ids of messages
	ended  error    // why nothing more is submitted; nil until then
	// What failed is final for this delivery only: SQS brings it again.
}

// receive submits the tasks of each record. A record that fails is named in the answer, so that SQS delivers it again and
// in the end moves it to the dead-letter queue; the others are done.
func (f *Function) receive(ctx context.Context, o strictjson.Object) (json.RawMessage, error) {
	var records []record
	for _, r := range strictjson.Value[[]strictjson.Object](o, "Records") {
		records = append(records, newRecord(r))
		// Without an id it could not be named in the answer, and would be lost.
		if r.Text("messageId") == "" {
			return nil, &core.InvalidError{Field: "Records", Reason: "has a record without a messageId"}
		}
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

// submitAll submits the tasks of all records, as many at a time as one submit takes. In a FIFO queue none may overtake one
// that failed.
// One submit for many records costs one call of the store, and a refused one is tried in halves.
func (b *batch) submitAll(ctx context.Context, records []record) {
	ctx, cancel := trigger.Soon(ctx, b.f.config.Margin)
	defer cancel()
	var some []record
	tasks := 0
	for _, r := range records {
		// A record with a mistake is a border in a FIFO queue: what came before it is submitted first.
		if tasks+len(r.tasks) > core.MaxSubmit || r.err != nil {
			b.submit(ctx, some)
			some, tasks = nil, 0
		}
		if r.err != nil {
			b.fail(ctx, r, r.err)
			continue
		}
		some, tasks = append(some, r), tasks+len(r.tasks)
	}
	b.submit(ctx, some)
}

// submit submits records at once. If one of them is refused, which refuses all, the halves are tried by themselves until it is
// found. When the store is away there is no sense in asking it again.
func (b *batch) submit(ctx context.Context, records []record) {
	if len(records) == 0 {
		return
	}
	var tasks []core.NewTask
	for i := range records {
		tasks = append(tasks, records[i].tasks...)
	}
	var submitted []core.Submitted
	err := b.ended
	if err == nil {
		submitted, err = b.f.scheduler.Submit(ctx, tasks...)
	}
	// Halving finds one bad record of a batch of ten in fewer than ten submits.
	if half := len(records) / 2; half > 0 && ofInput(err) {
		b.submit(ctx, records[:half])
		b.submit(ctx, records[half:])
		return
	}
	b.tasks = append(b.tasks, submitted...)
	for i := range records {
		if err != nil {
			b.fail(ctx, records[i], err)
		}
	}
}

// fail names a record in the answer, and ends the batch if nothing after it can or may be submitted.
// In a FIFO queue later records would overtake this one.
func (b *batch) fail(ctx context.Context, r record, err error) {
	if b.ended != nil {
		err = b.ended
	}
	b.failed = append(b.failed, r.id)
	b.f.config.Logger.LogAttrs(ctx, slog.LevelWarn, "a record failed",
		slog.String("message", trigger.Clip(r.id, trigger.MaxName)), slog.String("err", trigger.Clip(err.Error(), trigger.MaxError)))
	if b.ended == nil && (r.fifo || !ofInput(err)) {
		b.ended = errEnded
	}
}

// Those records are delivered again, in their order.
var errEnded = errors.New("not submitted, because an earlier record failed")

// ofInput reports whether an error is about what was submitted, so that other records may well succeed.
// Anything else is the store's fault, and other records would fail alike.
func ofInput(err error) bool {
	code := core.CodeOf(err)
	return trigger.Final(err) || code == core.CodeDisabled || code == core.CodeLimit || code == core.CodeQuota
}
