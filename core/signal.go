package core

// Signals: a task that waits for somebody, and what it is told.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Signal is what a task waits for; see [Await].
type Signal struct {
	// Key names it among the signals of the task's agent. All tasks that wait for a key are told the same.
	Key string
	// Timeout is how long the task waits; for ever if zero.
	Timeout time.Duration
	// OnTimeout says what becomes of a task that nobody has told anything by then: TimeoutRun if empty.
	OnTimeout OnTimeout
	// From says whose signals count: those of whoever may send one if empty, or [FromApproval].
	From string
}

// FromApproval is the From of a task that waits for somebody who may approve: the page of its question, or a credential with the right
// [ActionApprove]. Other signals, those of runs among them, are refused.
const FromApproval = "approval"

// OnTimeout says what becomes of a task that has waited for too long.
type OnTimeout string

// What it does.
const (
	TimeoutRun    OnTimeout = "run"    // it runs, and [RunInfo.Heard] says that nobody came
	TimeoutFail   OnTimeout = "fail"   // its run fails for good without being started, with [ErrNoSignal]
	TimeoutCancel OnTimeout = "cancel" // it is cancelled without being started
)

// Bounds of signals.
const (
	MaxSignalPayload = 64 << 10       // bytes
	SignalKept       = 24 * time.Hour // how long a signal is kept that nobody waits for yet
	mostAwait        = 10 * 365 * 24 * time.Hour
)

// ErrNoSignal is the failure of a run that has waited for its signal for too long.
var ErrNoSignal = errors.New("nobody has sent the signal that it waited for")

// Await saves a checkpoint and has the same occurrence wait until somebody sends a signal ([Scheduler.Signal]), uncharged: with no slot, no
// lease, and nothing that looks for it. The next run finds the checkpoint with [Task.Checkpoint], and what it was told with
// [RunInfo.Heard]. Both stay with it while the run is repeated; they go when it succeeds, fails for good, yields or waits again. A
// signal that came before is not missed: see [SignalKept].
func Await(signal Signal, checkpoint any) error {
	data, err := encodeCheckpoint("await", checkpoint)
	if err != nil {
		return err
	}
	if err := signal.check(); err != nil {
		return Cancel(fmt.Errorf("await: %w", err))
	}
	return &awaitError{signal: signal, checkpoint: data}
}

// check refuses what cannot be waited for.
func (n *Signal) check() error {
	if err := validID("key", n.Key); err != nil {
		return err
	}
	switch {
	case n.Timeout < 0 || n.Timeout > mostAwait:
		return invalid("timeout", "must be between 0 and %s, not %s", store.ShortDuration(mostAwait), n.Timeout)
	case n.OnTimeout != "" && n.OnTimeout != TimeoutRun && n.OnTimeout != TimeoutFail && n.OnTimeout != TimeoutCancel:
		return invalid("on_timeout", "must be run, fail or cancel, not %q", clip(string(n.OnTimeout)))
	case n.From != "" && n.From != FromApproval:
		return invalid("from", "must be %s, or left out, not %q", FromApproval, clip(n.From))
	default:
		return nil
	}
}

// awaitError is Await's.
type awaitError struct {
	signal     Signal
	checkpoint []byte
}

func (e *awaitError) Error() string { return "waits for the signal " + e.signal.Key }

// Heard is what a task has waited for.
type Heard struct {
	Key string
	// Told says that somebody has sent the signal, with the payload. If not, the task was told to run before, unless TimedOut.
	Told     bool
	Payload  json.RawMessage
	TimedOut bool // nobody came in time
	// How it was sent, and by whom: the name of a credential, the task of a run (agent/id), or a process. A page has no name: whoever has its
	// address may answer.
	How Means
	By  string
	// Question is what the page showed that was answered.
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

// Heard returns what the run was told that its task has waited for; false if it has not waited. See [Await].
func (t *RunInfo) Heard() (Heard, bool) {
	if t == nil || t.extra == nil || t.extra.heard == nil {
		return Heard{}, false
	}
	return *t.extra.heard, true
}

// heard is what it was told; nil if it has not waited.
func (t *RunInfo) heard() *Heard {
	if t.extra == nil {
		return nil
	}
	return t.extra.heard
}

// Signalled is what became of a signal.
type Signalled struct {
	Resumed int  `json:"resumed"` // tasks that are due now
	Kept    bool `json:"kept"`    // nobody waits for it yet: it is kept for whoever does first, for SignalKept
}

// SignalTakenError says that a signal is kept already that came before, and that nobody has waited for. Nothing was changed.
type SignalTakenError struct{ Agent, Key string }

// Error names it.
func (e *SignalTakenError) Error() string {
	return fmt.Sprintf("a signal %q of agent %q is kept already, and nothing has waited for it yet", e.Key, e.Agent)
}

// The errors of answers. Nothing was changed.
var (
	// ErrClosed says that a question was answered, or that its task waits for it no more.
	ErrClosed = errors.New("this question is no longer open")
	// ErrNotOpen says that a task is about to wait for the answer to a question, and does not yet.
	ErrNotOpen = errors.New("this question is not open yet: try again in a moment")
	// ErrUnapproved says that whoever waits for a signal wants an approval: see [FromApproval].
	ErrUnapproved = errors.New("the task waits for an approval: the page of its question, or a credential with the scope approve, sends one")
)

// Question is what one wait of a task asks a person.
type Question struct {
	Agent, ID, Key string
	// Fence is that of the run that asks ([RunInfo.Fence]), or of the wait ([Awaiting.Fence]): no other wait of the task is answered.
	Fence Fence
	Text  string // that is shown
}

// Open returns nil if a question can be answered now, [ErrNotOpen] while the run that asks it has not ended, and [ErrClosed] after that.
func (s *Scheduler) Open(ctx context.Context, q Question) error {
	t, _, err := s.look(ctx, store.Get{Agent: q.Agent, IDs: []string{q.ID}, Explain: true})
	switch {
	case errors.Is(err, ErrNotFound):
		return ErrClosed
	case err != nil:
		return err
	case t.Status == StatusInProgress && t.Fence == q.Fence:
		return ErrNotOpen
	}
	a := inform(&t).Awaiting
	if a == nil || a.Key != q.Key || a.Fence != q.Fence {
		return ErrClosed
	}
	told, err := s.store.Heard(ctx, []store.Wait{{Agent: q.Agent, ID: q.ID, Key: q.Key}})
	if err == nil && told[0] != nil {
		return ErrClosed
	}
	return err
}

// Answer sends the answer of a person to a question, which the page of the question has verified. It is told to the one wait that the question is of,
// and kept for no other: without it the call fails as [Scheduler.Open] does.
func (s *Scheduler) Answer(ctx context.Context, q Question, payload json.RawMessage) error {
	payload, err := signalPayload(payload)
	if err != nil {
		return err
	}
	from := record.Sender{How: string(ByPage), Question: q.Text}
	answers, err := s.store.Signal(ctx, []store.Signal{{
		Agent: q.Agent, Key: q.Key, ID: q.ID, Wait: q.Fence, Payload: payload, Note: from.Encode(), Approval: true,
	}})
	if err != nil {
		return err
	}
	if answers[0].Code == store.SignalResumed {
		s.emit(Event{Type: EventSignal, Agent: q.Agent, Key: q.Key, By: string(ByPage), Count: answers[0].Resumed})
		return nil
	}
	if err := s.Open(ctx, q); err != nil {
		return err
	}
	return ErrNotOpen // it has begun to wait meanwhile
}

// sender is who sends a signal, and whether that counts as an approval. A run approves nothing, whatever the rights of its process are.
func (s *Scheduler) sender(ctx context.Context, agent string) (record.Sender, bool) {
	approves := s.Authorize(ctx, Access{Action: ActionApprove, Agent: agent}) == nil
	if principalOf(ctx) != nil {
		return record.Sender{How: string(ByCredential), By: orderOf(ctx, Order{}).By}, approves
	}
	if origin := originOf(ctx); origin != nil {
		return record.Sender{How: string(ByHandler), By: origin.By.String()}, false
	}
	return record.Sender{How: string(ByProcess), By: s.config.Name}, approves
}

// Signal tells all tasks of an agent that wait for a key to continue, each with the payload, which is JSON or nothing. They are due now; one
// that is paused waits for the end of that, and so does one whose agent has quiet hours. If none waits the signal is kept for the
// first that does; if one is kept already it fails with a *[SignalTakenError], and if all that wait want an approval, which the caller
// may not give, with [ErrUnapproved]. After an error that is not about the input the outcome is
// unknown: sent again, tasks that were told are not told twice, but the signal may be kept for the next that waits.
func (s *Scheduler) Signal(ctx context.Context, agent, key string, payload json.RawMessage) (Signalled, error) {
	if err := validID("agent_id", agent); err != nil {
		return Signalled{}, err
	}
	if err := validID("key", key); err != nil {
		return Signalled{}, err
	}
	payload, err := signalPayload(payload)
	if err != nil {
		return Signalled{}, err
	}
	from, approves := s.sender(ctx, agent)
	var out Signalled
	for rest := false; ; rest = true {
		answers, err := s.store.Signal(ctx, []store.Signal{{
			Agent: agent, Key: key, Payload: payload, Note: from.Encode(), Approval: approves, Keep: SignalKept, Rest: rest,
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
			return out, &SignalTakenError{Agent: agent, Key: key}
		case a.Code == store.SignalUnapproved:
			return out, ErrUnapproved
		case a.Code == store.SignalKept:
			out.Kept = true
		}
		s.emit(Event{Type: EventSignal, Agent: agent, Key: key, By: orderOf(ctx, Order{}).By, Count: out.Resumed})
		return out, nil
	}
}

// signalPayload is a payload without the blanks between its parts; null for none.
func signalPayload(payload json.RawMessage) (json.RawMessage, error) {
	if len(payload) == 0 {
		return json.RawMessage("null"), nil
	}
	if len(payload) > MaxSignalPayload {
		return nil, invalid("payload", "is %d bytes long: the limit is %d", len(payload), MaxSignalPayload)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, payload); err != nil {
		return nil, invalid("payload", "must be JSON: %v", err)
	}
	return b.Bytes(), nil
}

// hear asks what a run was told, if it has waited. Without an answer it is tried again in a while: its task waits on.
func (p *pull) hear(ctx context.Context, r *run, w *record.Await) error {
	if w == nil {
		return nil
	}
	told, err := p.s.store.Heard(ctx, []store.Wait{{Agent: r.claimed.Agent, ID: r.claimed.ID, Key: w.Key}})
	if err != nil {
		return &snoozeError{after: hearAgain}
	}
	heard := Heard{Key: w.Key}
	if told[0] != nil {
		from := record.DecodeSender(told[0].Note)
		heard.Told, heard.Payload = true, told[0].Payload
		heard.How, heard.By, heard.Question = Means(from.How), from.By, from.Question
	} else {
		heard.TimedOut = w.Until != 0 && w.Until <= p.s.storeNow()
	}
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

// hearAgain is how long a run waits that could not find out what it was told.
const hearAgain = 5 * time.Second

// await has the task wait for a signal.
func (d *decision) await(v *verdict, e *awaitError) {
	d.heard(v)
	d.state.Checkpoint = e.checkpoint
	d.state.Await = &record.Await{Key: e.signal.Key, Then: string(e.signal.OnTimeout), Fence: d.fence, From: e.signal.From}
	d.note(v, OutcomeAwaiting, nil)
	d.sameOccurrence()
	w := wait(v)
	w.Key, w.Wait, w.Approval = e.signal.Key, d.fence, e.signal.From == FromApproval
	if e.signal.Timeout == 0 {
		d.again(v, store.When{At: store.Never})
		return
	}
	d.state.Await.Until = d.now.Add(e.signal.Timeout)
	d.again(v, store.When{At: d.state.Await.Until})
}

// heard ends the wait of a task, if it has waited.
func (d *decision) heard(v *verdict) {
	if d.state.Await != nil {
		wait(v).Heard, d.state.Await = true, nil
	}
}

// wait is how the task of a verdict waits from now on.
func wait(v *verdict) *store.Await {
	if v.settlement.Await == nil {
		v.settlement.Await = &store.Await{}
	}
	return v.settlement.Await
}
