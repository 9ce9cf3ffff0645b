package core

// Signals: a task that waits for one, and what it receives.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Bounds of signals.
const (
	MaxSignalPayload = 64 << 10       // bytes
	SignalKept       = 24 * time.Hour // how long a signal is kept that no task waits for yet
)

// ErrNoSignal is the failure of a run that has waited for its signal for too long.
var ErrNoSignal = errors.New("nobody has sent the signal that it waited for")

// Heard is the result of a task's wait.
type Heard struct {
	Key string
	// Told reports that the signal was sent, with the payload. If not, a caller had the task run before, unless TimedOut.
	Told     bool
	Payload  json.RawMessage
	TimedOut bool // no signal came in time
	// How it was sent, and by whom: the name of a credential, the task of a run (agent/id), or a process. A page has no name: anyone with its
	// address may answer.
	How Means
	By  string
	// Question is the question that was answered, as the page showed it.
	Question string
}

// Means is how a signal is sent.
type Means string

// The means.
const (
	ByPage       Means = "page"       // the signed page of a question
	ByCredential Means = "credential" // a request with a credential
	ByHandler    Means = "handler"    // the run of a task
	ByProcess    Means = "process"    // a process that has the store, such as a command, or one that asks for no credential
)

// Heard returns what the run received for the wait of its task; false if it has not waited. See [Await].
func (t *RunInfo) Heard() (Heard, bool) {
	if t == nil || t.extra == nil || t.extra.heard == nil {
		return Heard{}, false
	}
	return *t.extra.heard, true
}

// heard is what it received; nil if it has not waited.
func (t *RunInfo) heard() *Heard {
	if t.extra == nil {
		return nil
	}
	return t.extra.heard
}

// Open returns nil if a question can be answered now, [model.ErrNotOpen] while the run that asks it has not ended, and [model.ErrClosed] after that.
func (s *Scheduler) Open(ctx context.Context, q Question) error {
	t, _, err := s.base.Look(ctx, store.Get{Agent: q.Agent, IDs: []string{q.ID}, Explain: true})
	switch {
	case errors.Is(err, ErrNotFound):
		return model.ErrClosed
	case err != nil:
		return err
	case t.Status == StatusInProgress && t.Fence == q.Fence:
		return model.ErrNotOpen
	}
	a := codec.Inform(&t).Awaiting
	if a == nil || a.Key != q.Key || a.Fence != q.Fence {
		return model.ErrClosed
	}
	told, err := s.store.Heard(ctx, []store.Wait{{Agent: q.Agent, ID: q.ID, Key: q.Key}})
	if err == nil && told[0] != nil {
		return model.ErrClosed
	}
	return err
}

// Answer sends the answer to a question. It goes to the one wait that the question is of, and is kept for no other: without it the call fails as
// [Scheduler.Open] does. How is [ByPage] if a signed page has verified the person who answers, which counts as an approval; if it is empty the caller of
// ctx answers, as in [Scheduler.Signal]: if the wait wants an approval that the caller may not give it fails with [model.ErrUnapproved].
func (s *Scheduler) Answer(ctx context.Context, q Question, payload json.RawMessage, how Means) error {
	payload, err := signalPayload(payload)
	if err != nil {
		return err
	}
	from, approves := record.Sender{How: string(ByPage)}, true
	if how != ByPage {
		// guard: reply-approves
		from, approves = senderOf(ctx, s.base, q.Agent)
	}
	from.Question = q.Text
	answers, err := s.store.Signal(ctx, []store.Signal{{
		Agent: q.Agent, Key: q.Key, ID: q.ID, Wait: q.Fence, Payload: payload, Note: from.Encode(), Approval: approves,
	}})
	if err != nil {
		return err
	}
	if answers[0].Code == store.SignalResumed {
		s.base.Emit(Event{Type: model.EventSignal, Agent: q.Agent, Key: q.Key, By: cmp.Or(from.By, from.How), Count: answers[0].Resumed})
		return nil
	}
	// guard: reply-approval
	if answers[0].Code == store.SignalUnapproved {
		return model.ErrUnapproved
	}
	if err := s.Open(ctx, q); err != nil {
		return err
	}
	return model.ErrNotOpen // it has begun to wait meanwhile
}

// senderOf is who sends a signal, and whether that counts as an approval. A run approves nothing, even if its process may.
func senderOf(ctx context.Context, b *base.Base, agent string) (record.Sender, bool) {
	approves := b.Authorize(ctx, Access{Action: model.ActionApprove, Agent: agent}) == nil
	if model.PrincipalOf(ctx) != nil {
		return record.Sender{How: string(ByCredential), By: model.OrderOf(ctx, Order{}).By}, approves
	}
	if origin := originOf(ctx); origin != nil {
		// guard: approval
		return record.Sender{How: string(ByHandler), By: origin.By.String()}, false
	}
	return record.Sender{How: string(ByProcess), By: b.Config.Name}, approves
}

// Signal has all tasks of an agent that wait for a key continue, each with the payload, which is JSON or nothing. They are due now; one
// that is paused waits for the end of that, and so does one whose agent has quiet hours. If none waits the signal is kept for the
// first that does; if one is kept already it fails with a *[model.SignalTakenError], and if all that wait want an approval, which the caller
// may not give, with [model.ErrUnapproved]. After an error that is not about the input the outcome is
// unknown: sent again, tasks that received it do not receive it twice, but the signal may be kept for the next that waits, unless the call has a
// context of [Receipt.Context].
func (s *Scheduler) Signal(ctx context.Context, agent, key string, payload json.RawMessage) (model.Signalled, error) {
	if err := check.ValidID("agent_id", agent); err != nil {
		return model.Signalled{}, err
	}
	if err := check.ValidID("key", key); err != nil {
		return model.Signalled{}, err
	}
	payload, err := signalPayload(payload)
	if err != nil {
		return model.Signalled{}, err
	}
	from, approves := senderOf(ctx, s.base, agent)
	message, remember := broughtBy(ctx)
	var out model.Signalled
	for rest := false; ; rest = true {
		answers, err := s.store.Signal(ctx, []store.Signal{{
			Agent: agent, Key: key, Payload: payload, Note: from.Encode(), Approval: approves, Keep: SignalKept, Rest: rest, Message: message, Remember: remember,
		}})
		if err != nil {
			return out, err
		}
		a := answers[0]
		out.Resumed += a.Resumed
		switch {
		case a.More:
			continue
		case a.Code == store.SignalTaken:
			return out, &model.SignalTakenError{Agent: agent, Key: key}
		case a.Code == store.SignalUnapproved:
			return out, model.ErrUnapproved
		case a.Code == store.SignalResumed && a.Resumed == 0 && !rest: // its message has sent it before
			return out, nil
		case a.Code == store.SignalKept:
			out.Kept = true
		}
		s.base.Emit(Event{Type: model.EventSignal, Agent: agent, Key: key, By: model.OrderOf(ctx, Order{}).By, Count: out.Resumed})
		return out, nil
	}
}

// signalPayload is a payload without the blanks between its parts; null for none.
func signalPayload(payload json.RawMessage) (json.RawMessage, error) {
	if len(payload) == 0 {
		return json.RawMessage("null"), nil
	}
	if len(payload) > MaxSignalPayload {
		return nil, check.Invalid("payload", "is %d bytes long: the limit is %d", len(payload), MaxSignalPayload)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, payload); err != nil {
		return nil, check.Invalid("payload", "must be JSON: %v", err)
	}
	return b.Bytes(), nil
}

// hear reads what a run received, if it has waited. Without an answer it is tried again in a while: its task waits on.
func (r *run) hear(ctx context.Context, w *record.Await) error {
	if w == nil {
		return nil
	}
	told, err := r.pull.s.store.Heard(ctx, []store.Wait{{Agent: r.claimed.Agent, ID: r.claimed.ID, Key: w.Key}})
	if err != nil {
		return &outcome.SnoozeError{After: hearAgain}
	}
	heard := Heard{Key: w.Key}
	if told[0] != nil {
		from := record.DecodeSender(told[0].Note)
		heard.Told, heard.Payload = true, told[0].Payload
		heard.How, heard.By, heard.Question = Means(from.How), from.By, from.Question
	} else {
		heard.TimedOut = w.Until != 0 && w.Until <= r.pull.s.base.StoreNow()
	}
	// guard: signal-too-late
	if heard.TimedOut {
		switch OnTimeout(w.Then) {
		case TimeoutFail:
			return SkipRetry(ErrNoSignal)
		case TimeoutCancel:
			return Cancel(ErrNoSignal)
		default: // it runs
		}
	}
	r.give(func(x *extra) { x.heard = &heard })
	return nil
}

// hearAgain is how long a run waits that could not read what it received.
const hearAgain = 5 * time.Second
