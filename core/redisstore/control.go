package redisstore

import (
	"context"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Control carries out an operator's commands; see [store.Store].
func (s *Store) Control(ctx context.Context, commands []store.Command) ([]store.Effect, error) {
	var calls []call
	var of []int // the command of each call
	for i := range commands {
		for _, c := range s.control(&commands[i]) {
			calls, of = append(calls, c), append(of, i)
		}
	}
	replies, err := s.eval(ctx, "control", calls)
	if err != nil {
		return nil, err
	}
	out := make([]store.Effect, len(commands))
	for k, reply := range replies {
		effect, err := parseEffect(&commands[of[k]], reply)
		if err != nil {
			return nil, wrap("control", err)
		}
		if effect.Code != store.EffectNone || effect.Audited != nil {
			out[of[k]] = effect
		}
	}
	return out, nil
}

// control are the calls that carry out a command: one, but for holds that are about agents of all partitions.
func (s *Store) control(c *store.Command) []call {
	p := s.partitionOf(c.Agent)
	switch c.Op {
	case store.OpReplay:
		activity := ""
		if c.Pulse != nil {
			activity = "1"
		}
		return []call{{script: &s.scripts.replay, partition: p, args: []any{
			s.config.Retention.Milliseconds(), encode(c.Agent), c.ID, record(&c.Submission), groupKey(c.Agent, c.Group), storedState(c.State), activity,
		}}}
	case store.OpHold, store.OpProlong, store.OpUnhold:
		args := []any{string(c.Op), scopeArg(c.Scope), dueArg(c.Until), c.Hold}
		if c.Scope.Agent != "" {
			return []call{{script: &s.scripts.hold, partition: s.partitionOf(c.Scope.Agent), args: args}}
		}
		calls := make([]call, len(s.parts))
		for i := range calls {
			calls[i] = call{script: &s.scripts.hold, partition: i, args: args}
		}
		return calls
	case store.OpAudit:
		return []call{s.auditPage(c.Audit)}
	default:
		queue := c.Version
		if c.Queue {
			queue = "1"
		}
		return []call{{script: &s.scripts.order, partition: p, args: []any{
			string(c.Op), encode(c.Agent), c.ID, groupKey(c.Agent, c.Group), s.config.Retention.Milliseconds(), s.config.kept(),
			queue, c.Record, c.Order,
		}}}
	}
}

// effects are what order.lua answers.
var effects = []store.EffectCode{store.EffectNone, store.EffectDone, store.EffectOrdered, store.EffectRunning, store.EffectChanged, store.EffectEnding}

func parseEffect(c *store.Command, reply []any) (store.Effect, error) {
	if len(reply) < 2 {
		return store.Effect{}, errMalformed
	}
	code := number(reply[1])
	switch {
	case c.Op == store.OpAudit:
		return parseAudited(reply)
	case c.Op == store.OpReplay && code > 0:
		return store.Effect{Code: store.EffectDone, Due: store.Millis(code)}, nil
	case code < 0 || code >= int64(len(effects)):
		return store.Effect{}, errMalformed
	case c.Op == store.OpRun && len(reply) > 2:
		return store.Effect{Code: effects[code], Due: store.Millis(number(reply[2]))}, nil
	default:
		return store.Effect{Code: effects[code]}, nil
	}
}

// scopeArg names a scope as the scripts do.
func scopeArg(s store.Scoped) string {
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
func parseScope(name string) (store.Scoped, error) {
	letter, rest, _ := strings.Cut(name, ":")
	switch letter {
	case "t":
		agent, id, _ := strings.Cut(rest, ":")
		agent, err := decode(agent)
		return store.Scoped{Agent: agent, ID: id}, err
	case "a":
		agent, err := decode(rest)
		return store.Scoped{Agent: agent}, err
	case "k":
		return store.Scoped{Kind: rest}, nil
	case "s":
		key, err := decode(rest)
		return store.Scoped{Key: key}, err
	default:
		return store.Scoped{}, nil
	}
}
