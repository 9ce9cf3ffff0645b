package redisstore

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core"
)

// Claim leases due tasks; see [core.Store]. When every request only looks, it costs two commands, however many
// partitions, agents and tasks there are: the time, and one read of all partitions.
func (s *Store) Claim(ctx context.Context, requests []core.ClaimRequest) ([]core.Claim, error) {
	look := true
	for i := range requests {
		look = look && requests[i].Limit == 0
	}
	if look {
		return s.look(ctx, requests)
	}
	calls := make([]call, len(requests), len(requests)+1)
	for i := range requests {
		calls[i] = call{script: &s.scripts.claim, partition: requests[i].Partition, args: claimArgs(&requests[i])}
	}
	calls = s.sweep(calls, requests)
	replies, err := s.eval(ctx, "claim", calls)
	s.sweptTo(calls[len(requests):], replies[len(requests):])
	out := make([]core.Claim, len(requests))
	failed := 0
	for i := range requests {
		if out[i] = answered(requests[i].Partition, replies[i], err); out[i].Err != nil {
			failed++
		}
	}
	if failed == len(requests) {
		return nil, out[0].Err
	}
	return out, nil
}

// answered is the claim in a reply, or one that failed if there is none.
func answered(partition int, reply []any, err error) core.Claim {
	if reply == nil {
		return core.Claim{Partition: partition, Err: err}
	}
	c, err := parseClaim(partition, reply)
	if err != nil {
		return core.Claim{Partition: partition, Err: wrap("claim", err)}
	}
	return c
}

func claimArgs(r *core.ClaimRequest) []any {
	args := make([]any, 0, 6+len(r.Kinds)+len(r.Leave)+len(r.Agents))
	args = append(args, r.Nonce, r.Limit, r.PerAgent, r.Lease.Milliseconds(), core.RaiseAfter.Milliseconds(), len(r.Kinds)+len(r.Leave))
	for _, kind := range r.Kinds {
		args = append(args, "+"+kind)
	}
	for _, kind := range r.Leave {
		args = append(args, "-"+kind)
	}
	for _, agent := range r.Agents {
		args = append(args, encode(agent))
	}
	return args
}

// The reply of claim.lua: a head, then fields for each task.
const (
	claimHead   = 7
	claimFields = 4
)

func parseClaim(partition int, reply []any) (core.Claim, error) {
	c := core.Claim{Partition: partition}
	if len(reply) < claimHead || (len(reply)-claimHead)%claimFields != 0 {
		return c, errMalformed
	}
	c.Now = core.Millis(number(reply[0]))
	var err error
	if c.NextDue, err = millis(reply[1]); err != nil {
		return c, err
	}
	if c.NextLease, err = millis(reply[2]); err != nil {
		return c, err
	}
	if fence := text(reply[3]); fence != "" {
		n, err := strconv.ParseInt(fence, 10, 64)
		if err != nil {
			return c, errMalformed
		}
		c.Fence = core.Fence(n)
	}
	c.Recovered, c.Parked = int(number(reply[4])), int(number(reply[5]))
	ended, _ := reply[6].([]any) // pairs of a task's place, from 1, and what was said
	orders := make(map[int64][]byte, len(ended)/2)
	for i := 0; i+1 < len(ended); i += 2 {
		orders[number(ended[i])] = []byte(text(ended[i+1]))
	}
	for i := claimHead; i < len(reply); i += claimFields {
		if text(reply[i+1]) == "" {
			continue // a repeated claim: this task has ended
		}
		t, err := parseClaimed(reply[i : i+claimFields])
		if err != nil {
			return c, err
		}
		t.Partition, t.Fence, t.Index = partition, c.Fence, (i-claimHead)/claimFields
		if order, ok := orders[int64(t.Index)+1]; ok {
			t.Cancelled, t.Order = true, data(string(order))
		}
		c.Tasks = append(c.Tasks, t)
	}
	return c, nil
}

func parseClaimed(fields []any) (core.Claimed, error) {
	var t core.Claimed
	agent, err := decode(text(fields[0]))
	if err != nil {
		return t, err
	}
	l, err := parseLive(text(fields[1]))
	if err != nil {
		return t, err
	}
	if t.Due, err = millis(fields[2]); err != nil {
		return t, err
	}
	t.Agent, t.ID, t.Kind, t.Level, t.Submitted, t.Body = agent, l.id, l.kind, l.level, l.submitted, l.body
	t.Crashes, t.State = parseState(text(fields[3]))
	return t, nil
}

// look reads when the partitions are next due, without taking anything.
func (s *Store) look(ctx context.Context, requests []core.ClaimRequest) ([]core.Claim, error) {
	keys := make([]string, len(requests))
	for i := range requests {
		keys[i] = s.parts[requests[i].Partition].key("due")
	}
	for attempt := 1; ; attempt++ {
		now, hints, err := s.readDue(ctx, keys)
		if err == nil {
			out := make([]core.Claim, len(requests))
			for i := range requests {
				out[i] = hint(requests[i], now, text(hints[i]))
			}
			return out, nil
		}
		if attempt == attempts || !passing(err) || !wait(ctx, attempt) {
			return nil, wrap("claim", err)
		}
	}
}

func (s *Store) readDue(ctx context.Context, keys []string) (core.Millis, []any, error) {
	pipe := s.client.Pipeline()
	now := pipe.Time(ctx)
	var together *redis.SliceCmd
	var single []*redis.StringCmd
	if s.shared {
		together = pipe.MGet(ctx, keys...)
	} else {
		for _, key := range keys {
			single = append(single, pipe.Get(ctx, key))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && err != redis.Nil { //nolint:errorlint // go-redis returns it unwrapped
		return 0, nil, err
	}
	at := core.Millis(now.Val().UnixMilli())
	if together != nil {
		return at, together.Val(), nil
	}
	hints := make([]any, len(keys))
	for i, cmd := range single {
		if err := cmd.Err(); err != nil && err != redis.Nil { //nolint:errorlint // go-redis returns it unwrapped
			return 0, nil, err
		}
		hints[i] = cmd.Val()
	}
	return at, hints, nil
}

// hint turns the `due` key of a partition into a claim that took nothing: the time, then the parked kinds. A parked
// task of a kind that is asked for is due now.
func hint(r core.ClaimRequest, now core.Millis, value string) core.Claim {
	c := core.Claim{Partition: r.Partition, Now: now}
	ms, kinds, _ := strings.Cut(value, "|")
	if n, err := strconv.ParseInt(ms, 10, 64); err == nil {
		c.NextDue = core.Millis(n)
	}
	if kinds == "" {
		return c
	}
	for parked := range strings.SplitSeq(kinds, "|") {
		for _, kind := range r.Kinds {
			if kind == parked && (c.NextDue == 0 || c.NextDue > now) {
				c.NextDue = now
			}
		}
	}
	return c
}
