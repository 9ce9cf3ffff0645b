package core

// Gates: functions that decide before a run whether it has anything to do, and what follows from their answer.

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
)

// Gate registers the gate of a kind: it is called before each run and returns whether the run has anything to do, as a bool
// or with a [GateAnswer]. If it has nothing to do the occurrence is skipped and recorded, and the gate is called
// less and less often: see [IdleBackoff]. An error, or a panic, is a failed attempt; an error such as Snooze means the same as from a handler. It
// panics as Handle does.
//
// With an overlap policy that makes each occurrence a task of its own, the gate is called before that task is made, and
// before it runs.
func Gate[A bool | GateAnswer](s *Scheduler, kind string, ask func(ctx context.Context, t *RunInfo) (A, error)) {
	if err := check.ValidKind("kind", kind); err != nil {
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

// gate decides whether a run is worth starting.
type gate func(ctx context.Context, t *RunInfo) (GateAnswer, error)

// gate is the gate of a kind; nil if it has none.
func (s *Scheduler) gate(kind string) gate {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.gates[kind]
}

// extra is the input and the answer of a run's gate, and the values of its bindings. Runs of kinds that have neither have none, so that
// they are no larger for it. It is never changed once it is shared: see run.give.
type extra struct {
	payload json.RawMessage
	tag     string
	answer  *GateAnswer // nil without one
	bound   Values
	origin  *Origin // of its task
	heard   *Heard  // what it received after waiting; nil if it has not waited
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

// answer is the answer of the gate; nil without one.
func (t *RunInfo) answer() *GateAnswer {
	if t == nil || t.extra == nil {
		return nil
	}
	return t.extra.answer
}
