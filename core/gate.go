package core

// Gates: what says before a run whether there is anything to do, and what becomes of its answer.

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Bounds of what a gate answers.
const (
	MaxGateInput = 64 << 10 // bytes of JSON
	MaxGateTag   = 1 << 10  // bytes
)

// GateAnswer is what a gate says about a run.
type GateAnswer struct {
	// Open lets the run start. Otherwise the occurrence is skipped and recorded, and the gate is asked again later: see
	// [IdleBackoff].
	Open bool
	// Input is handed to the handler, by [RunInfo.GateInput]: JSON of at most MaxGateInput bytes. It is not stored: another
	// attempt asks the gate again.
	Input json.RawMessage
	// Tag is kept with the task and handed to the gate by [RunInfo.GateTag] at the next run, so that it can tell what has changed since:
	// at most MaxGateTag bytes, such as an ETag. That of an open gate is kept once the run has succeeded, so that nothing is
	// passed over whose run failed or crashed. An empty one of a closed gate leaves the one that is kept unchanged.
	Tag string
}

// Gate registers the gate of a kind: it is asked before each run whether there is anything to do, and answers with that
// alone, or with a [GateAnswer]. If there is nothing to do the occurrence is skipped and recorded, and the gate is asked
// less and less often: see [IdleBackoff]. An error, or a panic, is a failed attempt; one such as Snooze means the same as that of a handler. It
// panics as Handle does.
//
// With an overlap policy that makes each occurrence a task of its own, the gate is asked before that task is made, and
// before it runs.
func Gate[A bool | GateAnswer](s *Scheduler, kind string, ask func(ctx context.Context, t *RunInfo) (A, error)) {
	if err := validKind("kind", kind); err != nil {
		panic("duly: Gate: " + err.Error())
	}
	if ask == nil {
		panic(fmt.Sprintf("duly: Gate: the function for the kind %q is nil", kind))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.gates[kind]; taken {
		panic(fmt.Sprintf("duly: Gate: the kind %q already has a gate", kind))
	}
	s.gates[kind] = func(ctx context.Context, t *RunInfo) (GateAnswer, error) {
		said, err := ask(ctx, t)
		if open, plain := any(said).(bool); plain {
			return GateAnswer{Open: open, Tag: t.GateTag()}, err
		}
		answer, _ := any(said).(GateAnswer)
		return answer, err
	}
}

// gate says whether a run is worth starting.
type gate func(ctx context.Context, t *RunInfo) (GateAnswer, error)

// gate is the gate of a kind; nil if it has none.
func (s *Scheduler) gate(kind string) gate {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.gates[kind]
}

// extra is what the gate of a run gets and has said, and what its bindings gave. Runs of kinds that have neither have none, so that
// they are no larger for it. It is never changed once it is shared: see run.give.
type extra struct {
	payload json.RawMessage
	tag     string
	answer  *GateAnswer // nil while there is none
	bound   Values
	origin  *Origin // of its task
	heard   *Heard  // what it was told that it has waited for; nil if it has not waited
}

// GateInput returns what the gate of the task's kind handed on for this run, as JSON; nil for nothing. See [GateAnswer].
func (t *RunInfo) GateInput() json.RawMessage {
	if a := t.answer(); a != nil {
		return a.Input
	}
	return nil
}

// GateTag returns the tag that is kept of an earlier answer of the gate; empty for none. It is for gates. See [GateAnswer].
func (t *RunInfo) GateTag() string {
	if t == nil || t.extra == nil {
		return ""
	}
	return t.extra.tag
}

// RawPayload returns the payload of the task as JSON; nil if it has none. It is for gates, whose tasks are not decoded.
func (t *RunInfo) RawPayload() json.RawMessage {
	if t == nil || t.extra == nil {
		return nil
	}
	return t.extra.payload
}

// answer is what the gate has said; nil if there is none.
func (t *RunInfo) answer() *GateAnswer {
	if t == nil || t.extra == nil {
		return nil
	}
	return t.extra.answer
}

// check refuses an answer that cannot be handed on or kept. What a closed gate hands on is for nobody.
func (a *GateAnswer) check() error {
	switch {
	case len(a.Tag) > MaxGateTag:
		return fmt.Errorf("the tag is %d bytes long: the limit is %d", len(a.Tag), MaxGateTag)
	case !a.Open || len(a.Input) == 0:
		return nil
	case len(a.Input) > MaxGateInput:
		return fmt.Errorf("the input is %d bytes long: the limit is %d", len(a.Input), MaxGateInput)
	case !utf8.Valid(a.Input) || !json.Valid(a.Input):
		return fmt.Errorf("the input must be JSON, not %.40q", a.Input)
	default:
		return nil
	}
}
