package callback

// How the end of a task is reported: by a message to a URL, or by a signal to other tasks. The notice of a task that is late is sent in the same ways.

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/late"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// mostTold is how large the result of a task may be that a signal of its end contains.
const mostTold = 8 << 10

// toldEnd is the payload of the signal that tells the end of a task, or of a group.
type toldEnd struct {
	ID        string          `json:"id,omitempty"`
	Status    store.Status    `json:"status,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Truncated bool            `json:"truncated,omitempty"` // the result is too large for a signal: the task has it
	Error     string          `json:"error,omitempty"`

	Group     string `json:"group,omitempty"`
	Completed int64  `json:"completed,omitempty"`
	Failed    int64  `json:"failed,omitempty"`
	Cancelled int64  `json:"cancelled,omitempty"`
}

// tell sends the signal that the end of a task is to send. While another one of its key is kept, that of a task is tried again, as it says something
// else; that of a group says the same.
func (o *Outbox) tell(ctx context.Context, t *Delivery, key string, ofGroup bool) error {
	var of struct {
		ID, Group string
		Status    store.Status
		Result    json.RawMessage
		LastError string `json:"last_error"`
	}
	if err := json.Unmarshal(t.Payload.Task, &of); err != nil {
		return outcome.SkipRetry(fmt.Errorf("decode the task: %w", err))
	}
	end := toldEnd{ID: of.ID, Status: of.Status, Result: of.Result, Error: of.LastError}
	if len(end.Result) > mostTold {
		end.Result, end.Truncated = nil, true
	}
	if ofGroup {
		n, err := o.View.Group(ctx, t.Agent, of.Group)
		// guard: tell-group
		if err != nil || n.Live > 0 { // the last of them tells
			return err
		}
		end = toldEnd{Group: of.Group, Completed: n.Completed, Failed: n.Failed, Cancelled: n.Cancelled}
	}
	payload, err := json.Marshal(end)
	if err != nil {
		return outcome.SkipRetry(err)
	}
	// guard: tell
	_, err = o.Signal(ctx, t.Agent, key, payload)
	if _, taken := errors.AsType[*model.SignalTakenError](err); taken && ofGroup {
		return nil
	}
	return err
}

// Message is the payload of a delivery.
type Message struct {
	URL   string          `json:"url"`
	ID    string          `json:"id"`              // of the task that ends
	Fence store.Fence     `json:"fence,omitempty"` // of the run that ends it; zero if none does
	Task  json.RawMessage `json:"task"`            // the task after its end, without the time of it
	// Watch is set for a watch, which looks whether a task is late, and Late is the notice of one that is.
	Watch *late.Watch     `json:"watch,omitempty"`
	Late  json.RawMessage `json:"late,omitempty"`
	Agent string          `json:"agent_id,omitempty"` // of that task: what keeps it from running must not stop the notice, so that is no task of its agent
	// Ended is the progress of a delivery that is known to follow an end, where that could be noted in no other way.
	Ended json.RawMessage `json:"ended,omitempty"`
}

// noted is the progress of a delivery whose task is known to have ended that way: no attempt has to look again.
type noted struct {
	At wire.Stamp `json:"finished_at"`
}

// encode returns the progress in its stored form.
func (n noted) encode() []byte {
	return fmt.Appendf(nil, `{"finished_at":%q}`, must(n.At.MarshalText()))
}

// must is for encoding that cannot fail.
func must(text []byte, _ error) []byte { return text }

// Delivery is one attempt to deliver: the run of a task of duly's own.
type Delivery struct {
	Agent, ID, Kind string
	Attempt         int
	Fence           store.Fence
	Submitted       time.Time
	Payload         Message
	Run             Run
}

// Run is what the attempt notes for the next.
type Run interface {
	Recorded() (result, progress json.RawMessage)
	SetResult(v any) error
	SetProgress(v any) error
}

// Run does what a task of duly's own is for: it looks whether a task is late, says that it is, or reports how one has ended.
func (o *Outbox) Run(ctx context.Context, t *Delivery) error {
	switch {
	case t.Payload.Watch != nil:
		return o.looker(t.Fence).Look(ctx, t.Payload.Watch)
	case t.Payload.Late != nil && t.Kind == check.KindWatch:
		return o.signalLate(ctx, t)
	default:
		return o.deliver(ctx, t)
	}
}

// deliver reports how a task has ended. A delivery that is not known to follow an end finds out first whether it does: the process that was
// about to end the task may have died before.
func (o *Outbox) deliver(ctx context.Context, t *Delivery) error {
	m := &t.Payload
	key, ofGroup := check.Tells(m.URL)
	if (key != "") != (t.Kind == check.KindTell) {
		return outcome.SkipRetry(errors.New("the callback is none of this kind"))
	}
	if key == "" {
		// guard: callback-allowed
		if err := o.Callbacks.Check(m.URL); err != nil { // the rules may be others by now
			return outcome.SkipRetry(fmt.Errorf("the callback %w", err))
		}
	}
	if m.Late != nil { // versions that do not know it deliver the task
		return o.Callbacks.Deliver(ctx, m.URL, messageOf(t), m.Late)
	}
	known := m.Ended
	if len(known) == 0 {
		_, known = t.Run.Recorded()
	}
	if len(known) == 0 {
		end, why, err := o.endOf(ctx, t)
		if err != nil {
			return err
		}
		if end.IsZero() {
			return t.Run.SetResult(map[string]string{"skipped": why})
		}
		known = noted{At: wire.Stamp(end)}.encode()
		if err := t.Run.SetProgress(known); err != nil {
			return err
		}
	}
	if key != "" {
		return o.tell(ctx, t, key, ofGroup)
	}
	message := bytes.TrimSpace(m.Task)
	if at := bytes.TrimPrefix(known, []byte(`{"finished_at":`)); len(message) > 2 { // the object has other fields
		at = bytes.TrimSuffix(at, []byte("}"))
		message = fmt.Appendf(nil, `{"finished_at":%s,"updated_at":%s,%s`, at, at, message[1:])
	}
	return o.Callbacks.Deliver(ctx, m.URL, messageOf(t), message)
}

// messageOf is the id of a delivery's message. It stays when the delivery is replayed: a receiver that has it skips it.
func messageOf(t *Delivery) string {
	// guard: callback-id
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s", len(t.Agent), t.Agent, len(t.ID), t.ID))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// endOf returns when the task of a delivery ended in the way that the delivery says; zero, and why, if it did not and never will. While that is
// open, the error is a snooze.
func (o *Outbox) endOf(ctx context.Context, t *Delivery) (end time.Time, why string, err error) {
	page, err := o.Base.Store.Get(ctx, store.Get{Agent: t.Agent, IDs: []string{t.Payload.ID}, Explain: true})
	if err != nil {
		return end, "", err
	}
	of := &page.Tasks[0]
	switch {
	case of.Status == "":
		return end, "the task was deleted before it had ended", nil
	case of.Status.Finished():
		rec, err := record.DecodeFinished(of.Record)
		// Nothing but its end is known of a task whose record was dropped.
		// guard: callback-looks
		if of.Dropped || err == nil && rec.Callback == t.ID {
			return of.Finished.Time(), "", nil
		}
		return end, "the task has ended in another way, and that has a callback of its own", err
	// guard: callback-slow
	case of.Status == store.StatusInProgress && of.Fence == t.Payload.Fence:
		return end, "", outcome.Snooze(Margin) // the process is slow, and not dead
	case t.Payload.Fence == 0 && page.Now.Time().Before(t.Submitted.Add(o.Wait)):
		return end, "", outcome.Snooze(t.Submitted.Add(o.Wait).Sub(page.Now.Time())) // a caller runs it by hand, and the command is under way
	default:
		// guard: callback-of-nothing
		return end, "the process that was about to end the task died before", nil
	}
}

// signalLate sends the signal that a task is late. While another one of its key is kept, that says the same.
func (o *Outbox) signalLate(ctx context.Context, t *Delivery) error {
	key, _ := check.Tells(t.Payload.URL)
	_, err := o.Signal(ctx, t.Payload.Agent, key, t.Payload.Late)
	if _, taken := errors.AsType[*model.SignalTakenError](err); taken {
		return nil
	}
	return err
}

// looker looks for a watch of this process, in a run of it.
func (o *Outbox) looker(fence store.Fence) *late.Looker {
	return &late.Looker{
		Base: o.Base, Fence: fence,
		Why: func(ctx context.Context, agent, id string) (model.Because, error) {
			e, err := o.View.Explain(ctx, agent, id)
			if err != nil {
				return model.Because{}, err
			}
			return e.Reasons[0], nil
		},
		Notify: func(ctx context.Context, w *late.Watch, t *store.Stored) error { return o.notifyLate(ctx, w, t) },
	}
}

// lateNotice is the notice of a task that is late.
type lateNotice struct {
	Type          string            `json:"type"`
	Agent         string            `json:"agent_id"`
	ID            string            `json:"id"`
	Kind          string            `json:"kind"`
	Status        store.Status      `json:"status"`
	ExpectSuccess wire.Span         `json:"expect_success"`
	LateSince     wire.Stamp        `json:"late_since"`
	Because       model.BecauseCode `json:"because"`
	Text          string            `json:"text"`
}

// notifyLate stores the notice of a task that is late, if its owner wants one: under an id of this lateness, so that there is one.
func (o *Outbox) notifyLate(ctx context.Context, w *late.Watch, t *store.Stored) error {
	if w.Notify == "" {
		return nil
	}
	message, err := json.Marshal(lateNotice{
		string(model.EventLate), w.Agent, w.ID, t.Kind, t.Status, wire.Span(w.Within), wire.Stamp(w.Late.Since.Time()), w.Late.Because, w.Late.Text,
	})
	if err != nil {
		return err
	}
	id := codec.CallbackID(w.ID, fmt.Sprint("late", len(w.Agent), w.Agent, w.Late.Since))
	if kind, is := strings.CutPrefix(w.Notify, check.LateTask); is {
		_, err := o.Submit(ctx, model.NewTask{Agent: w.Agent, ID: "late" + strings.TrimPrefix(id, "callback"), Kind: kind, Payload: json.RawMessage(message)})
		return err
	}
	kind, delivery := check.KindWatch, Message{URL: w.Notify, Agent: w.Agent, ID: w.ID, Late: message}
	if key, _ := check.Tells(w.Notify); key == "" {
		kind, delivery.Task, delivery.Ended = model.KindCallback, message, noted{At: wire.Stamp(w.Late.Since.Time())}.encode()
	}
	payload, err := json.Marshal(delivery)
	if err != nil {
		return err
	}
	body := record.Body{Payload: payload}
	_, err = o.Base.Store.Submit(ctx, []store.Submission{{Agent: late.Agent, ID: id, Kind: kind, Level: t.Level, Body: body.Encode(), Owed: true}})
	return err
}

// newEnd names an end that is a command's.
func newEnd(id string) string { return codec.CallbackID(id, rand.Text()) }

// Of is the delivery that follows an end, as it is submitted before the end is stored: due only after a while. of is the task with
// the record that the store is about to have.
func Of(of *store.Stored, b *codec.Body, fence store.Fence, wait time.Duration) (store.Submission, error) {
	info := codec.Inform(of)
	id := info.CallbackTask
	codec.Labelled(&info, b)
	task, err := json.Marshal(info)
	if err != nil {
		return store.Submission{}, err
	}
	payload, err := json.Marshal(Message{URL: b.Callback.URL, ID: of.ID, Fence: fence, Task: task})
	if err != nil {
		return store.Submission{}, err
	}
	kind := model.KindCallback
	if key, _ := check.Tells(b.Callback.URL); key != "" {
		kind = check.KindTell
	}
	own := record.Body{Payload: payload, Urgent: b.Urgent, TraceID: b.TraceID, Traceparent: b.Traceparent}
	return store.Submission{
		Agent: of.Agent, ID: id, Kind: kind, Level: info.Level, Body: own.Encode(), Due: moment.When{After: wait}, Owed: true,
	}, nil
}

// unconfirmed logs that a delivery waits for longer than it has to.
func (o *Outbox) unconfirmed(ctx context.Context, agent, id string, err error) {
	o.Base.Config.Logger.WarnContext(ctx, "a callback is not due at once: it is delivered later", slog.String("agent", agent), slog.String("task", id), slog.Any("err", err))
}
