package redisstore

// Claim: its arguments, and how its reply is read.

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/bounds"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Claim leases due tasks; see [store.Queue]. It is a turn in which nothing is settled.
func (s *Store) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	_, claims, err := s.Turn(ctx, nil, requests)
	return claims, err
}

// claimCalls adds a call for each request.
func (s *Store) claimCalls(calls []call.Call, requests []store.ClaimRequest) []call.Call {
	for i := range requests {
		if requests[i].New != nil {
			calls = append(calls, s.startCall(&requests[i]))
		} else {
			calls = append(calls, s.claimCall(&requests[i]))
		}
	}
	return calls
}

// answered is the claim in a reply to a request, or one that failed if there is none.
func (s *Store) answered(c *call.Call, r *store.ClaimRequest, reply []any, err error) store.Claim {
	if reply == nil {
		return store.Claim{Look: store.Look{Partition: c.Partition, Err: err}}
	}
	var claim store.Claim
	switch {
	case r.New != nil:
		claim, err = s.parseStarted(c, r, reply)
	case c.Full != nil:
		if claim, err = parsePlainClaim(c.Partition, reply); ahead(r) {
			claim.Ahead = claim.Now.Add(r.Ahead)
		}
	default:
		claim, err = parseClaim(c.Partition, reply)
	}
	if err != nil {
		return store.Claim{Look: store.Look{Partition: c.Partition, Err: call.Wrap(call.VerbClaim, err)}}
	}
	return claim
}

// claimArgs are the arguments of claim.lua; brought is what span.take reads of them.
func claimArgs(r *store.ClaimRequest, brought string) []any {
	args := make([]any, 0, 10+len(r.Kinds)+len(r.Leave)+len(r.Leases)+len(r.Agents))
	letters := ""
	if r.Urgent {
		letters += "u"
	}
	if r.Serial {
		letters += "s"
	}
	if r.Tell {
		letters += "t"
	}
	// guard: fence-seen
	letters += strconv.FormatInt(int64(r.Fence), 10)
	if r.Stamp != "" {
		letters += "!" + r.Stamp
	}
	args = append(args, r.Nonce, r.Limit, r.PerAgent, r.Lease.Milliseconds(), store.RaiseAfter.Milliseconds(), letters, afterArg(r), brought+expected(r.Expect),
		noticeArg(r), len(r.Kinds)+len(r.Leave)+len(r.Leases))
	for _, kind := range r.Kinds {
		if most, bounded := r.Most[kind]; bounded {
			args = append(args, fmt.Sprintf("~%05d%s", min(max(most, 0), store.MaxClaim), kind))
		} else {
			args = append(args, "+"+kind)
		}
	}
	for _, kind := range r.Leave {
		args = append(args, "-"+kind)
	}
	for kind, lease := range r.Leases {
		args = append(args, fmt.Sprintf("=%d|%s", lease.Milliseconds(), kind))
	}
	for _, agent := range r.Agents {
		args = append(args, layout.Encode(agent))
	}
	return args
}

// afterArg is up to which place a claim passes over agents.
func afterArg(r *store.ClaimRequest) string {
	after := strconv.FormatInt(int64(r.After), 10)
	if r.AfterName != "" {
		after += "|" + r.AfterName
	}
	return after
}

// noticeArg is how a claim treats leases that are over, and how many suspects it takes of each sort, if that is bounded.
func noticeArg(r *store.ClaimRequest) string {
	notice := strconv.FormatInt(r.Notice.Milliseconds(), 10)
	if r.Suspects == nil {
		return notice
	}
	rooms := r.Suspects
	return fmt.Sprintf("%s|%d|%d|%d|%d", notice, max(rooms[0], 0), max(rooms[1], 0), max(rooms[2], 0), r.MaxCrashes)
}

// expected is the expected use of runs, as span.take reads it.
func expected(all []bound.Expected) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "=%s\t%s\t%d\n", e.Kind, e.Unit, e.Amount)
	}
	return b.String()
}

// The reply of claim.lua: a head, then fields for each task.
const (
	unstamped    = "?" // in place of the fence
	claimSpans   = 12  // in it: the news of buckets that span partitions
	claimNoticed = 14
	claimFrom    = 15
	claimHead    = 16
	claimFields  = 4
)

func parseClaim(partition int, reply []any) (store.Claim, error) {
	c := store.Claim{Look: store.Look{Partition: partition}}
	if len(reply) < claimHead || (len(reply)-claimHead)%claimFields != 0 {
		return c, layout.ErrMalformed
	}
	if err := parseClaimHead(&c, reply); err != nil {
		return c, err
	}
	ended, _ := reply[6].([]any) // pairs of a task's place, from 1, and the note of its cancel
	orders := make(map[int64][]byte, len(ended)/2)
	for i := 0; i+1 < len(ended); i += 2 {
		orders[layout.Number(ended[i])] = []byte(layout.Text(ended[i+1]))
	}
	for i := claimHead; i < len(reply); i += claimFields {
		if layout.Text(reply[i+1]) == "" {
			continue // a repeated claim: this task has ended
		}
		var t store.Claimed
		if err := readClaimed(&t, layout.Text(reply[i]), layout.Text(reply[i+1]), reply[i+2], layout.Text(reply[i+3])); err != nil {
			return c, err
		}
		t.Partition, t.Fence, t.Index = partition, c.Fence, (i-claimHead)/claimFields
		if order, ok := orders[int64(t.Index)+1]; ok {
			t.Cancelled, t.Order = true, layout.Data(string(order))
		}
		c.Tasks = append(c.Tasks, t)
	}
	crossed, _ := reply[11].([]any)
	for i := 0; i+1 < len(crossed); i += 2 {
		if one, err := bounds.ParseCrossing(crossed[i], crossed[i+1]); err == nil {
			c.Crossed = append(c.Crossed, one)
		}
	}
	return c, addProfiles(&c, reply[10])
}

// parseClaimHead reads what a claim reports about its partition.
func parseClaimHead(c *store.Claim, reply []any) error {
	c.Now = moment.Millis(layout.Number(reply[0]))
	c.Recovered, c.Left, c.Suspects = int(layout.Number(reply[4])), int(layout.Number(reply[7])), int(layout.Number(reply[13]))
	c.Noticed = int(layout.Number(reply[claimNoticed]))
	from, _ := reply[claimFrom].([]any)
	for _, tag := range from {
		if c.From == nil {
			c.From = map[string]int{}
		}
		c.From[layout.Text(tag)]++
	}
	if !parseAside(c, parkedIn(reply[5])) {
		return layout.ErrMalformed
	}
	var errs [6]error
	c.NextDue, errs[0] = layout.Millis(reply[1])
	c.NextLease, errs[1] = layout.Millis(reply[2])
	passed, next := reply[8], ""
	if s, both := passed.(string); both {
		s, c.PassedName, _ = strings.Cut(s, "|")
		passed, next, _ = strings.Cut(s, "-")
	}
	c.Passed, errs[2] = layout.Millis(passed)
	c.UrgentNext, errs[3] = layout.Millis(next)
	c.AgentsDue, errs[4] = layout.AllMillis(reply[9])
	if fence := layout.Text(reply[3]); fence == unstamped {
		c.Unstamped = true
	} else if fence != "" {
		errs[5] = parseFence(c, fence)
	}
	for _, err := range errs {
		if err != nil {
			return layout.ErrMalformed
		}
	}
	return nil
}

// turns is in front of the fence of a claim in which tenants took turns.
const turns = "t"

// parseFence reads the fence of a claim.
func parseFence(c *store.Claim, text string) error {
	text, c.Turns = strings.CutPrefix(text, turns)
	n, err := strconv.ParseInt(text, 10, 64)
	c.Fence = store.Fence(n)
	return err
}

// bothParked is how many tasks two claims have parked, and which if they return them.
func bothParked(a, b any) any {
	x, y := parkedIn(a), parkedIn(b)
	return append(append([]any{layout.Number(x[0]) + layout.Number(y[0])}, x[1:]...), y[1:]...)
}

// parkedIn is how many tasks a claim has parked, and which.
func parkedIn(v any) []any {
	if told, ok := v.([]any); ok && len(told) > 0 {
		return told
	}
	return []any{v}
}

// parseAside reads how many tasks were parked, and which: three fields for each.
func parseAside(c *store.Claim, told []any) bool {
	if len(told)%3 != 1 {
		return false
	}
	c.Parked = int(layout.Number(told[0]))
	for i := 1; i < len(told); i += 3 {
		agent, err := layout.Decode(layout.Text(told[i]))
		why := layout.Text(told[i+2])
		if err != nil || len(why) != 1 {
			return false
		}
		c.Aside = append(c.Aside, store.Aside{Agent: agent, ID: layout.Text(told[i+1]), Why: store.Why(why[0])})
	}
	return true
}

// readClaimed reads a task as a claim returns it: the agent as its name in keys, the task, when it was due, and its state.
func readClaimed(t *store.Claimed, agent, task string, due any, state string) error {
	l, err := layout.ParseLive(task)
	if err != nil {
		return err
	}
	if t.Agent, err = layout.Decode(agent); err != nil {
		return err
	}
	if text, is := due.(string); is {
		due, t.Lined = strings.CutPrefix(text, "l")
	}
	if t.Due, err = layout.Millis(due); err != nil {
		return err
	}
	t.Ref = layout.RunRef(agent, task)
	t.ID, t.Kind, t.Level, t.Submitted, t.Body = l.ID, l.Kind, l.Level, l.Submitted, l.Body
	t.Crashes, _, t.State = layout.ParseState(state)
	return nil
}
