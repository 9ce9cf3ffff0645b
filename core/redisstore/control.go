package redisstore

// The commands of operators: one script call for each task or scope, as each is atomic by itself.

import (
	"context"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Replay makes dead tasks live again; see [store.Operator].
func (s *Store) Replay(ctx context.Context, tasks []store.Replay) ([]store.Effect, error) {
	calls := make([]call, len(tasks))
	for i := range tasks {
		t, activity := &tasks[i], ""
		if t.Activity {
			activity = "1"
		}
		calls[i] = call{script: &s.scripts.replay, partition: s.partitionOf(t.Agent), args: []any{
			s.config.Retention.Milliseconds(), encode(t.Agent), t.ID, record(t.Level, t.ID, t.Kind, t.Key, t.Body), groupKey(t.Agent, t.Group),
			storedState(t.State), activity,
		}}
	}
	return s.effects(ctx, calls, func(reply []any) (store.Effect, error) {
		due := number(reply[1])
		if due <= 0 {
			return store.Effect{}, nil
		}
		return store.Effect{Code: store.EffectDone, Due: store.Millis(due)}, nil
	})
}

// Orders of order.lua.
const (
	orderRun    = "run"
	orderCancel = "cancel"
	orderDelete = "delete"
)

// RunNow makes waiting tasks due now; see [store.Operator].
func (s *Store) RunNow(ctx context.Context, tasks []store.RunNow) ([]store.Effect, error) {
	calls := make([]call, len(tasks))
	for i, t := range tasks {
		queue := ""
		if t.Queue {
			queue = "1"
		}
		calls[i] = s.order(orderRun, t.Agent, t.ID, t.Group, queue, nil, nil)
	}
	return s.effects(ctx, calls, parseEffect)
}

// Cancel ends tasks as cancelled; see [store.Operator].
func (s *Store) Cancel(ctx context.Context, tasks []store.Cancellation) ([]store.Effect, error) {
	calls := make([]call, len(tasks))
	for i, t := range tasks {
		calls[i] = s.order(orderCancel, t.Agent, t.ID, t.Group, t.Version, t.Record, t.Order)
	}
	return s.effects(ctx, calls, parseEffect)
}

// Delete forgets tasks; see [store.Operator].
func (s *Store) Delete(ctx context.Context, tasks []store.Deletion) ([]store.Effect, error) {
	calls := make([]call, len(tasks))
	for i, t := range tasks {
		calls[i] = s.order(orderDelete, t.Agent, t.ID, t.Group, "", nil, nil)
	}
	return s.effects(ctx, calls, parseEffect)
}

// order is the call that gives an order for one task. how is the version to cancel, or says whether to queue a run.
func (s *Store) order(name, agent, id, group, how string, rec, note []byte) call {
	return call{script: &s.scripts.order, partition: s.partitionOf(agent), args: []any{
		name, encode(agent), id, groupKey(agent, group), s.config.Retention.Milliseconds(), s.config.kept(), how, rec, note,
	}}
}

// effects carries out calls, and returns what each did. What is left of an answer behind the time is for parse.
func (s *Store) effects(ctx context.Context, calls []call, parse func(reply []any) (store.Effect, error)) ([]store.Effect, error) {
	replies, err := s.eval(ctx, verbControl, calls)
	if err != nil {
		return nil, err
	}
	out := make([]store.Effect, len(calls))
	for i, reply := range replies {
		err = errMalformed
		if len(reply) >= 2 {
			out[i], err = parse(reply)
		}
		if err != nil {
			return nil, wrap(verbControl, err)
		}
	}
	return out, nil
}

// effects are what order.lua and hold.lua answer.
var effects = []store.EffectCode{
	store.EffectNone, store.EffectDone, store.EffectOrdered, store.EffectRunning, store.EffectChanged, store.EffectEnding,
}

func parseEffect(reply []any) (store.Effect, error) {
	code := number(reply[1])
	if code < 0 || code >= int64(len(effects)) {
		return store.Effect{}, errMalformed
	}
	effect := store.Effect{Code: effects[code]}
	if len(reply) > 2 {
		effect.Due = store.Millis(number(reply[2]))
	}
	return effect, nil
}

// Operations of hold.lua.
const (
	holdBegin   = "hold"
	holdProlong = "prolong"
	holdEnd     = "unhold"
)

// Hold lets no task of some targets be claimed; see [store.Operator].
func (s *Store) Hold(ctx context.Context, holds []store.Hold) ([]store.Effect, error) {
	return s.inScopes(ctx, len(holds), func(i int) (store.Target, []any) {
		h, name := &holds[i], holdBegin
		if h.Prolong {
			name = holdProlong
		}
		return h.Target, []any{name, scopeArg(h.Target), dueArg(h.Until), h.Note}
	})
}

// Unhold ends holds; see [store.Operator].
func (s *Store) Unhold(ctx context.Context, targets []store.Target) ([]store.Effect, error) {
	return s.inScopes(ctx, len(targets), func(i int) (store.Target, []any) {
		return targets[i], []any{holdEnd, scopeArg(targets[i]), dueArg(store.When{}), nil}
	})
}

// inScopes runs hold.lua for n targets: in the partition of its agent, or in all of them. What is changed in one of these is
// changed.
func (s *Store) inScopes(ctx context.Context, n int, ask func(i int) (store.Target, []any)) ([]store.Effect, error) {
	var calls []call
	var of []int // the target of each call
	for i := range n {
		target, args := ask(i)
		first, last := 0, len(s.parts)-1
		if target.Agent != "" {
			first = s.partitionOf(target.Agent)
			last = first
		}
		for p := first; p <= last; p++ {
			calls, of = append(calls, call{script: &s.scripts.hold, partition: p, args: args}), append(of, i)
		}
	}
	done, err := s.effects(ctx, calls, parseEffect)
	if err != nil {
		return nil, err
	}
	out := make([]store.Effect, n)
	for k, effect := range done {
		if effect.Code != store.EffectNone {
			out[of[k]] = effect
		}
	}
	return out, nil
}

// scopeArg names a scope as the scripts do.
func scopeArg(s store.Target) string {
	switch {
	case s.ID != "":
		return "t:" + encode(s.Agent) + ":" + s.ID
	case s.Agent != "":
		return "a:" + encode(s.Agent)
	case s.Kind != "":
		return "k:" + s.Kind
	case s.Key != "":
		return "s:" + encode(s.Key)
	default:
		return "*"
	}
}

// parseScope is the inverse of scopeArg.
func parseScope(name string) (store.Target, error) {
	letter, rest, _ := strings.Cut(name, ":")
	switch letter {
	case "t":
		agent, id, _ := strings.Cut(rest, ":")
		agent, err := decode(agent)
		return store.Target{Agent: agent, ID: id}, err
	case "a":
		agent, err := decode(rest)
		return store.Target{Agent: agent}, err
	case "k":
		return store.Target{Kind: rest}, nil
	case "s":
		key, err := decode(rest)
		return store.Target{Key: key}, err
	default:
		return store.Target{}, nil
	}
}
