package redisstore

// Start: a task that is stored and leased in one step, and how the reply is read.

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// startCall is the call for a request that brings its task: a plain one if that is enough, otherwise the submit alone.
func (s *Store) startCall(r *store.ClaimRequest) call.Call {
	t := r.New
	full := func() call.Call {
		return call.Call{Script: &s.db.Scripts.Submit, Partition: r.Partition, Args: s.submitArgs([]store.Submission{*t}, []int{0}, modeEach)}
	}
	usual := plainSubmission(t) && t.Due == (moment.When{}) && !r.Urgent && !r.Serial && len(r.Most) == 0 && len(r.Leave) == 0 && slices.Equal(r.Kinds, []string{t.Kind}) && r.Limit > 0
	memory := &s.plain[r.Partition].Start
	if !usual || !memory.WorthTrying() {
		return full()
	}
	args := make(layout.Arguments, 0, 10).Number(int64(s.config.MaxTasks)).Number(int64(s.few))
	args = append(args, layout.Encode(t.Agent), t.ID, t.Kind, t.Key, string(layout.Record(t.Level, t.ID, t.Kind, t.Key, t.Body)), r.Nonce)
	args = args.Number(r.Lease.Milliseconds()).Stamped(r.Fence, r.Stamp)
	return call.Call{Script: &s.db.Scripts.PlainStart, Partition: r.Partition, Args: args.Pointers(), Plain: memory, Full: full}
}

// parseStarted reads the reply to a start. One that was a submit alone has no tasks.
func (s *Store) parseStarted(c *call.Call, r *store.ClaimRequest, reply []any) (store.Claim, error) {
	claim := store.Claim{Look: store.Look{Partition: c.Partition}}
	if len(reply) < 2 {
		return claim, layout.ErrMalformed
	}
	claim.Now = moment.Millis(layout.Number(reply[0]))
	a, err := parseSubmitted(reply[1])
	if err != nil {
		return claim, err
	}
	if claim.Err = s.refusedTask(r.New, &a); claim.Err != nil {
		return claim, nil //nolint:nilerr // that a task is refused is an answer
	}
	claim.Submitted = &a.Submitted
	if c.Full == nil {
		profiles, err := profilesBehind(reply, 2, nil)
		if a.Created {
			a.Profile = profiles[r.New.Agent]
		}
		return claim, err
	}
	if len(reply) != 6 {
		return claim, layout.ErrMalformed
	}
	fence, err := strconv.ParseInt(layout.Text(reply[2]), 10, 64)
	if err != nil {
		return claim, layout.ErrMalformed
	}
	if claim.NextDue, err = layout.Millis(reply[4]); err != nil {
		return claim, err
	}
	if claim.NextLease, err = layout.Millis(reply[5]); err != nil {
		return claim, err
	}
	claim.Fence, claim.AgentsDue, claim.Tasks = store.Fence(fence), []moment.Millis{claim.NextDue}, make([]store.Claimed, 1)
	t := &claim.Tasks[0]
	if err := readClaimed(t, layout.Encode(r.New.Agent), strings.TrimPrefix(layout.Text(reply[3]), inline), reply[1], ""); err != nil {
		return claim, err
	}
	t.Partition, t.Fence = claim.Partition, claim.Fence
	return claim, nil
}

// startLeft claims the tasks that some requests have brought, where that was not one step.
func (s *Store) startLeft(ctx context.Context, requests []store.ClaimRequest, claims []store.Claim) {
	for i := range claims { // none if all have failed
		r, c := requests[i], &claims[i]
		if r.New == nil || c.Submitted == nil || !c.Submitted.Created || len(c.Tasks) > 0 {
			continue
		}
		// guard: start-lost
		r.Agents, r.New = []string{r.New.Agent}, nil
		rest, err := s.Claim(ctx, []store.ClaimRequest{r})
		if err != nil {
			continue // it is stored, which cannot be taken back; the next look finds it
		}
		rest[0].Submitted = c.Submitted
		*c = rest[0]
	}
}
