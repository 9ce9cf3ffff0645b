package core

// Callbacks: how a task's end is reported to the URL that the task names. callback_outbox.go explains why none is lost.

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
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Callbacks decides which URLs may be notified of the end of a task, and notifies them. NewTask.Callback names one; package
// handlers/webhook has an implementation that posts to it.
//
// A delivery is a task of its own, of [model.KindCallback]: it belongs to the agent of the task that has ended, has its level and its urgency, and
// waits, is retried, paused, limited, explained and given up as any task. So pausing the agent holds its callbacks too, and quiet hours
// put them off unless the task was urgent. TaskInfo.CallbackTask names it. At least one delivery follows each end of a task, even if processes die;
// a recurring task ends when it is cancelled, and not with a run. A task that is deleted, or whose agent is forgotten, has not ended.
type Callbacks interface {
	// Check returns nil if a URL may be called. It is called when a task is submitted, and before each attempt to deliver. Its error says
	// what is allowed, and not what the URL is, which may contain a secret.
	Check(url string) error
	// Deliver posts a message, which is JSON, under an ID that stays the same for all attempts. Its error means the same as that of a
	// handler. It has to return when ctx is done.
	Deliver(ctx context.Context, url, id string, message []byte) error
}

// callbackSettings are the settings of deliveries that Config.Kinds leaves out: half a day of attempts, as a receiver may be down for a night.
func callbackSettings() KindConfig {
	return KindConfig{MaxAttempts: 12, Backoff: 10 * time.Second, MaxBackoff: 2 * time.Hour, Timeout: 15 * time.Second}
}

// handleCallbacks registers the handler that delivers callbacks, if this process does.
func (s *Scheduler) handleCallbacks() {
	for _, kind := range append([]string{model.KindCallback}, check.Everywhere...) {
		settings := callbackSettings()
		if kind == check.KindWatch { // it is never given up
			settings.MaxAttempts = check.MaxAttempts
		}
		own := s.config.Kinds[kind].Or(settings).Or(s.config.Default).Plain()
		s.base.OfKind[kind] = &own
		if kind == model.KindCallback && s.config.Callbacks == nil {
			continue
		}
		s.register(handler{kind: kind, call: func(ctx context.Context, runs []*run, outcomes []error) {
			t, err := decodeTask[callbackMessage](runs[0])
			switch {
			case err != nil:
			case t.Payload.Watch != nil:
				err = looker(s).Look(ctx, t.Payload.Watch)
			case t.Payload.Late != nil && kind == check.KindWatch:
				err = signalLate(ctx, s, t)
			default:
				err = s.deliver(ctx, t)
			}
			outcomes[0] = err
		}})
	}
}

// mostTold is how large the result of a task may be that a signal of its end contains.
const mostTold = 8 << 10

// toldEnd is the payload of the signal that tells the end of a task, or of a group.
type toldEnd struct {
	ID        string          `json:"id,omitempty"`
	Status    Status          `json:"status,omitempty"`
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
func tell(ctx context.Context, s *Scheduler, t *Task[callbackMessage], key string, ofGroup bool) error {
	var of struct {
		ID, Group string
		Status    Status
		Result    json.RawMessage
		LastError string `json:"last_error"`
	}
	if err := json.Unmarshal(t.Payload.Task, &of); err != nil {
		return SkipRetry(fmt.Errorf("decode the task: %w", err))
	}
	end := toldEnd{ID: of.ID, Status: of.Status, Result: of.Result, Error: of.LastError}
	if len(end.Result) > mostTold {
		end.Result, end.Truncated = nil, true
	}
	if ofGroup {
		n, err := s.Group(ctx, t.Agent, of.Group)
		// guard: tell-group
		if err != nil || n.Live > 0 { // the last of them tells
			return err
		}
		end = toldEnd{Group: of.Group, Completed: n.Completed, Failed: n.Failed, Cancelled: n.Cancelled}
	}
	payload, err := json.Marshal(end)
	if err != nil {
		return SkipRetry(err)
	}
	// guard: tell
	_, err = s.Signal(ctx, t.Agent, key, payload)
	if _, taken := errors.AsType[*model.SignalTakenError](err); taken && ofGroup {
		return nil
	}
	return err
}

// callbackMessage is the payload of a delivery.
type callbackMessage struct {
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

// deliver reports how a task has ended. A delivery that is not known to follow an end finds out first whether it does: the process that was
// about to end the task may have died before.
func (s *Scheduler) deliver(ctx context.Context, t *Task[callbackMessage]) error {
	m := &t.Payload
	key, ofGroup := check.Tells(m.URL)
	if (key != "") != (t.Kind == check.KindTell) {
		return SkipRetry(errors.New("the callback is none of this kind"))
	}
	if key == "" {
		// guard: callback-allowed
		if err := s.config.Callbacks.Check(m.URL); err != nil { // the rules may be others by now
			return SkipRetry(fmt.Errorf("the callback %w", err))
		}
	}
	if m.Late != nil { // versions that do not know it deliver the task
		return s.config.Callbacks.Deliver(ctx, m.URL, messageOf(t.RunInfo), m.Late)
	}
	known := m.Ended
	if len(known) == 0 {
		_, known = t.Recorded()
	}
	if len(known) == 0 {
		end, why, err := s.endOf(ctx, t)
		if err != nil {
			return err
		}
		if end.IsZero() {
			return t.SetResult(map[string]string{"skipped": why})
		}
		known = noted{At: wire.Stamp(end)}.encode()
		if err := t.SetProgress(known); err != nil {
			return err
		}
	}
	if key != "" {
		return tell(ctx, s, t, key, ofGroup)
	}
	message := bytes.TrimSpace(m.Task)
	if at := bytes.TrimPrefix(known, []byte(`{"finished_at":`)); len(message) > 2 { // the object has other fields
		at = bytes.TrimSuffix(at, []byte("}"))
		message = fmt.Appendf(nil, `{"finished_at":%s,"updated_at":%s,%s`, at, at, message[1:])
	}
	return s.config.Callbacks.Deliver(ctx, m.URL, messageOf(t.RunInfo), message)
}

// messageOf is the id of a delivery's message. It stays when the delivery is replayed: a receiver that has it skips it.
func messageOf(t *RunInfo) string {
	// guard: callback-id
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s", len(t.Agent), t.Agent, len(t.ID), t.ID))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// endOf returns when the task of a delivery ended in the way that the delivery says; zero, and why, if it did not and never will. While that is
// open, the error is a snooze.
func (s *Scheduler) endOf(ctx context.Context, t *Task[callbackMessage]) (end time.Time, why string, err error) {
	page, err := s.store.Get(ctx, store.Get{Agent: t.Agent, IDs: []string{t.Payload.ID}, Explain: true})
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
	case of.Status == StatusInProgress && of.Fence == t.Payload.Fence:
		return end, "", Snooze(callbackMargin) // the process is slow, and not dead
	case t.Payload.Fence == 0 && page.Now.Time().Before(t.Submitted.Add(s.commandMargin())):
		return end, "", Snooze(t.Submitted.Add(s.commandMargin()).Sub(page.Now.Time())) // a caller runs it by hand, and the command is under way
	default:
		// guard: callback-of-nothing
		return end, "the process that was about to end the task died before", nil
	}
}

// signalLate sends the signal that a task is late. While another one of its key is kept, that says the same.
func signalLate(ctx context.Context, s *Scheduler, t *Task[callbackMessage]) error {
	key, _ := check.Tells(t.Payload.URL)
	_, err := s.Signal(ctx, t.Payload.Agent, key, t.Payload.Late)
	if _, taken := errors.AsType[*model.SignalTakenError](err); taken {
		return nil
	}
	return err
}

// looker looks for the watches of this process.
func looker(s *Scheduler) *late.Looker {
	return &late.Looker{
		Base: s.base,
		Why: func(ctx context.Context, agent, id string) (model.Because, error) {
			e, err := s.Explain(ctx, agent, id)
			if err != nil {
				return model.Because{}, err
			}
			return e.Reasons[0], nil
		},
		Notify: func(ctx context.Context, w *late.Watch, t *store.Stored) error { return notifyLate(ctx, s, w, t) },
	}
}

// lateTask is the notice of a task that is late.
type lateTask struct {
	Type          string            `json:"type"`
	Agent         string            `json:"agent_id"`
	ID            string            `json:"id"`
	Kind          string            `json:"kind"`
	Status        Status            `json:"status"`
	ExpectSuccess wire.Span         `json:"expect_success"`
	LateSince     wire.Stamp        `json:"late_since"`
	Because       model.BecauseCode `json:"because"`
	Text          string            `json:"text"`
}

// notifyLate stores the notice of a task that is late, if its owner wants one: under an id of this lateness, so that there is one.
func notifyLate(ctx context.Context, s *Scheduler, w *late.Watch, t *store.Stored) error {
	if w.Notify == "" {
		return nil
	}
	message, err := json.Marshal(lateTask{
		string(model.EventLate), w.Agent, w.ID, t.Kind, t.Status, wire.Span(w.Within), wire.Stamp(w.Late.Since.Time()), w.Late.Because, w.Late.Text,
	})
	if err != nil {
		return err
	}
	id := codec.CallbackID(w.ID, fmt.Sprint("late", len(w.Agent), w.Agent, w.Late.Since))
	if kind, is := strings.CutPrefix(w.Notify, check.LateTask); is {
		_, err := s.Submit(ctx, NewTask{Agent: w.Agent, ID: "late" + strings.TrimPrefix(id, "callback"), Kind: kind, Payload: json.RawMessage(message)})
		return err
	}
	kind, delivery := check.KindWatch, callbackMessage{URL: w.Notify, Agent: w.Agent, ID: w.ID, Late: message}
	if key, _ := check.Tells(w.Notify); key == "" {
		kind, delivery.Task, delivery.Ended = model.KindCallback, message, noted{At: wire.Stamp(w.Late.Since.Time())}.encode()
	}
	payload, err := json.Marshal(delivery)
	if err != nil {
		return err
	}
	body := record.Body{Payload: payload}
	_, err = s.store.Submit(ctx, []store.Submission{{Agent: late.Agent, ID: id, Kind: kind, Level: t.Level, Body: body.Encode(), Owed: true}})
	return err
}

// newEnd names an end that is a command's.
func newEnd(id string) string { return codec.CallbackID(id, rand.Text()) }

// callbackOf is the delivery that follows an end, as it is submitted before the end is stored: due only after a while. of is the task with
// the record that the store is about to have.
func callbackOf(of *store.Stored, b *codec.Body, fence store.Fence, wait time.Duration) (store.Submission, error) {
	info := codec.Inform(of)
	id := info.CallbackTask
	codec.Labelled(&info, b)
	task, err := json.Marshal(info)
	if err != nil {
		return store.Submission{}, err
	}
	payload, err := json.Marshal(callbackMessage{URL: b.Callback.URL, ID: of.ID, Fence: fence, Task: task})
	if err != nil {
		return store.Submission{}, err
	}
	kind := model.KindCallback
	if key, _ := check.Tells(b.Callback.URL); key != "" {
		kind = check.KindTell
	}
	own := record.Body{Payload: payload, Urgent: b.Urgent, TraceID: b.TraceID, Traceparent: b.Traceparent}
	return store.Submission{
		Agent: of.Agent, ID: id, Kind: kind, Level: info.Level, Body: own.Encode(), Due: store.When{After: wait}, Owed: true,
	}, nil
}

// unconfirmed logs that a delivery waits for longer than it has to.
func (s *Scheduler) unconfirmed(ctx context.Context, agent, id string, err error) {
	s.config.Logger.WarnContext(ctx, "a callback is not due at once: it is delivered later", slog.String("agent", agent), slog.String("task", id), slog.Any("err", err))
}
