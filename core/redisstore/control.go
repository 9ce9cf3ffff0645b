package redisstore

import (
	"context"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
)

// Control carries out an operator's commands; see [core.Store].
func (s *Store) Control(ctx context.Context, commands []core.Command) ([]core.Effect, error) {
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
	out := make([]core.Effect, len(commands))
	for k, reply := range replies {
		effect, err := parseEffect(&commands[of[k]], reply)
		if err != nil {
			return nil, wrap("control", err)
		}
		if effect.Code != core.EffectNone || effect.Audited != nil {
			out[of[k]] = effect
		}
	}
	return out, nil
}

// control are the calls that carry out a command: one, but for holds that are about agents of all partitions.
func (s *Store) control(c *core.Command) []call {
	p := s.partitionOf(c.Agent)
	switch c.Op {
	case core.OpReplay:
		activity := ""
		if c.Pulse != nil {
			activity = "1"
		}
		return []call{{script: &s.scripts.replay, partition: p, args: []any{
			s.config.Retention.Milliseconds(), encode(c.Agent), c.ID, record(&c.Submission), groupKey(c.Agent, c.Group), storedState(c.State), activity,
		}}}
	case core.OpHold, core.OpProlong, core.OpUnhold:
		args := []any{string(c.Op), scopeArg(c.Scope), dueArg(c.Until), c.Hold}
		if c.Scope.Agent != "" {
			return []call{{script: &s.scripts.hold, partition: s.partitionOf(c.Scope.Agent), args: args}}
		}
		calls := make([]call, len(s.parts))
		for i := range calls {
			calls[i] = call{script: &s.scripts.hold, partition: i, args: args}
		}
		return calls
	case core.OpAudit:
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
var effects = []core.EffectCode{core.EffectNone, core.EffectDone, core.EffectOrdered, core.EffectRunning, core.EffectChanged, core.EffectEnding}

func parseEffect(c *core.Command, reply []any) (core.Effect, error) {
	if len(reply) < 2 {
		return core.Effect{}, errMalformed
	}
	code := number(reply[1])
	switch {
	case c.Op == core.OpAudit:
		return parseAudited(reply)
	case c.Op == core.OpReplay && code > 0:
		return core.Effect{Code: core.EffectDone, Due: core.Millis(code)}, nil
	case code < 0 || code >= int64(len(effects)):
		return core.Effect{}, errMalformed
	case c.Op == core.OpRun && len(reply) > 2:
		return core.Effect{Code: effects[code], Due: core.Millis(number(reply[2]))}, nil
	default:
		return core.Effect{Code: effects[code]}, nil
	}
}

// scopeArg names a scope as the scripts do.
func scopeArg(s core.Scoped) string {
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
func parseScope(name string) (core.Scoped, error) {
	letter, rest, _ := strings.Cut(name, ":")
	switch letter {
	case "t":
		agent, id, _ := strings.Cut(rest, ":")
		agent, err := decode(agent)
		return core.Scoped{Agent: agent, ID: id}, err
	case "a":
		agent, err := decode(rest)
		return core.Scoped{Agent: agent}, err
	case "k":
		return core.Scoped{Kind: rest}, nil
	case "s":
		key, err := decode(rest)
		return core.Scoped{Key: key}, err
	default:
		return core.Scoped{}, nil
	}
}
