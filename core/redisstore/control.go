package redisstore

// The commands of operators: one script call for each task or scope, as each is atomic by itself.

import (
	"context"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Replay makes dead tasks live again; see [store.Operator].
func (s *Store) Replay(ctx context.Context, tasks []store.Replay) ([]store.Effect, error) {
	calls := make([]call.Call, len(tasks))
	for i := range tasks {
		t, activity, counts := &tasks[i], "", ""
		if t.Bound || t.Recurs {
			counts = string(quotaFlag(t.Recurs, t.Bound))
		}
		// An activity task has no due time of its own to come back to, so the script has to know.
		if t.Activity {
			activity = "1"
		}
		calls[i] = call.Call{Script: &s.db.Scripts.Replay, Partition: s.db.PartitionOf(t.Agent), Args: []any{
			s.config.Retention.Milliseconds(), s.few, layout.Encode(t.Agent), t.ID, layout.Record(t.Level, t.ID, t.Kind, t.Key, t.Body), layout.GroupKey(t.Agent, t.Group),
			layout.StoredState(t.State), activity, counts,
		}}
	}
	at := -1 // replies come in the order of the calls
	return s.effects(ctx, calls, func(reply []any) (store.Effect, error) {
		at++
		if says, refused := strings.CutPrefix(layout.Text(reply[1]), "!"); refused {
			return store.Effect{Refused: quotaRefusal(tasks[at].Agent, says)}, nil
		}
		due := layout.Number(reply[1])
		// 0 is the script's answer for a task in any state but dead:
		// nothing has changed.
		if due <= 0 {
			return store.Effect{}, nil
		}
		return store.Effect{Code: store.EffectDone, Due: moment.Millis(due)}, nil
	})
}

// Orders of order.lua.
const (
	// orderRun makes a waiting task due now.
	orderRun = "run"
	// orderCancel ends a waiting task at once, and marks a running one, which its
	// process notices at the next heartbeat.
	orderCancel = "cancel"
	// orderDelete removes a task, live or finished; a run under way learns it at its next heartbeat.
	orderDelete = "delete"
)

// RunNow makes waiting tasks due now; see [store.Operator].
func (s *Store) RunNow(ctx context.Context, tasks []store.RunNow) ([]store.Effect, error) {
	calls := make([]call.Call, len(tasks))
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
	calls := make([]call.Call, len(tasks))
	for i, t := range tasks {
		calls[i] = s.order(orderCancel, t.Agent, t.ID, t.Group, t.Version, t.Record, t.Order)
	}
	return s.effects(ctx, calls, parseEffect)
}

// Delete forgets tasks; see [store.Operator].
func (s *Store) Delete(ctx context.Context, tasks []store.Deletion) ([]store.Effect, error) {
	calls := make([]call.Call, len(tasks))
	for i, t := range tasks {
		calls[i] = s.order(orderDelete, t.Agent, t.ID, t.Group, "", nil, nil)
	}
	return s.effects(ctx, calls, parseEffect)
}

// order is the call that gives an order for one task. how is the version to cancel, or whether to queue a run.
// All three have the same arguments, so that the script unpacks them once; those
// that an order does not need are empty.
func (s *Store) order(name, agent, id, group, how string, rec, note []byte) call.Call {
	return call.Call{Script: &s.db.Scripts.Order, Partition: s.db.PartitionOf(agent), Args: []any{
		name, layout.Encode(agent), id, layout.GroupKey(agent, group), s.config.Retention.Milliseconds(), s.config.kept(), how, rec, note,
	}}
}

// effects carries out calls, and returns what each did. parse gets the rest of an answer, after the time.
// One malformed reply fails the whole call, although Redis has carried out the commands: the caller
// learns that the outcome is unknown, not that nothing happened.
func (s *Store) effects(ctx context.Context, calls []call.Call, parse func(reply []any) (store.Effect, error)) ([]store.Effect, error) {
	replies, err := s.db.Run(ctx, call.VerbControl, calls)
	if err != nil {
		return nil, err
	}
	out := make([]store.Effect, len(calls))
	for i, reply := range replies {
		err = layout.ErrMalformed
		if len(reply) >= 2 {
			out[i], err = parse(reply)
		}
		if err != nil {
			return nil, call.Wrap(call.VerbControl, err)
		}
	}
	return out, nil
}

// effects are the codes that order.lua and hold.lua answer with: a code is the index of its name. Its
// order is the contract with the scripts: new ones go to the end.
var effects = []store.EffectCode{
	store.EffectNone, store.EffectDone, store.EffectOrdered, store.EffectRunning, store.EffectChanged, store.EffectEnding, store.EffectStopped,
}

// parseEffect reads a code and, where the script knows it, when the task is due.
func parseEffect(reply []any) (store.Effect, error) {
	code := layout.Number(reply[1])
	if code < 0 || code >= int64(len(effects)) {
		return store.Effect{}, layout.ErrMalformed
	}
	effect := store.Effect{Code: effects[code]}
	if len(reply) > 2 {
		effect.Due = moment.Millis(layout.Number(reply[2]))
	}
	return effect, nil
}

// Operations of hold.lua.
const (
	// holdBegin sets a hold, in place of one that the target has.
	holdBegin = "hold"
	// holdProlong sets a hold only where it ends later than the one that exists.
	holdProlong = "prolong"
	// holdEnd removes a hold, and puts the held tasks back into their queues.
	holdEnd = "unhold"
)

// Hold lets no task of some targets be claimed; see [store.Operator].
func (s *Store) Hold(ctx context.Context, holds []store.Hold) ([]store.Effect, error) {
	return s.inScopes(ctx, len(holds), func(i int) (store.Target, []any) {
		h, name := &holds[i], holdBegin
		if h.Prolong {
			name = holdProlong
		}
		return h.Target, []any{name, scopeArg(h.Target), layout.DueArg(h.Until), h.Note}
	})
}

// Unhold ends holds; see [store.Operator].
func (s *Store) Unhold(ctx context.Context, targets []store.Target) ([]store.Effect, error) {
	return s.inScopes(ctx, len(targets), func(i int) (store.Target, []any) {
		return targets[i], []any{holdEnd, scopeArg(targets[i]), layout.DueArg(moment.When{}), nil}
	})
}

// inScopes runs hold.lua for n targets: in the partition of its agent, or in all of them for a target
// that has agents everywhere. ask returns the target with that number and the arguments of its call.
// The effect of a target is that of the last partition in which the hold changed something: a hold on a
// kind has changed even if one partition alone had none of it before.
func (s *Store) inScopes(ctx context.Context, n int, ask func(i int) (store.Target, []any)) ([]store.Effect, error) {
	var calls []call.Call
	var of []int // the target of each call
	for i := range n {
		target, args := ask(i)
		// All partitions, unless the target names its agent.
		first, last := 0, len(s.db.Parts)-1
		if target.Agent != "" {
			first = s.db.PartitionOf(target.Agent)
			last = first
		}
		for p := first; p <= last; p++ {
			calls, of = append(calls, call.Call{Script: &s.db.Scripts.Hold, Partition: p, Args: args}), append(of, i)
		}
	}
	done, err := s.effects(ctx, calls, parseEffect)
	if err != nil {
		return nil, err
	}
	out := make([]store.Effect, n)
	for k, effect := range done {
		// A partition that found nothing to change must not hide another that
		// did, so EffectNone never overwrites.
		if effect.Code != store.EffectNone {
			effect.Due = max(effect.Due, out[of[k]].Due)
			out[of[k]] = effect
		}
	}
	return out, nil
}

// scopeArg names a scope as the scripts do.
// The letter is the type of the rest: t a task, a an agent, k a kind, s a limit key, *
// everything. Ids and keys are encoded, as they may have a colon; a task's id is last and a kind
// has no colon, so both are written unchanged.
func scopeArg(s store.Target) string {
	switch {
	case s.ID != "":
		return "t:" + layout.Encode(s.Agent) + ":" + s.ID
	case s.Agent != "":
		return "a:" + layout.Encode(s.Agent)
	case s.Kind != "":
		return "k:" + s.Kind
	case s.Key != "":
		return "s:" + layout.Encode(s.Key)
	default:
		return "*"
	}
}
