package redisstore

// Claims that the plain script can answer.

import (
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// claimCall is the call for a request: a plain one if it asks for nothing that only claim.lua knows.
func (s *Store) claimCall(r *store.ClaimRequest) call.Call {
	full := func() call.Call {
		return call.Call{Script: &s.db.Scripts.Claim, Partition: r.Partition, Args: claimArgs(r, "")}
	}
	usual := len(r.Most) == 0 && len(r.Leave) == 0 && len(r.Kinds) > 0 && (r.Agents == nil || len(r.Agents) > 0) &&
		!r.Urgent && !r.Serial && r.After == 0 && r.PerAgent == 0 && r.Limit > 0
	if memory := &s.plain[r.Partition].Claim; usual && memory.WorthTrying() {
		return call.Call{Script: &s.db.Scripts.PlainClaim, Partition: r.Partition, Args: plainClaimArgs(r), Full: full, Plain: memory}
	}
	return full()
}

func plainClaimArgs(r *store.ClaimRequest) []any {
	args := append(make(layout.Arguments, 0, 8+len(r.Kinds)+len(r.Agents)), r.Nonce).Number(int64(r.Limit))
	if len(r.Leases) == 0 {
		args = args.Number(r.Lease.Milliseconds())
	} else {
		args = append(args, ownLeases(r))
	}
	// guard: plain-fence-seen
	args = args.Stamped(r.Fence, r.Stamp)
	if ahead(r) {
		args = append(args.Number(-int64(len(r.Kinds))), r.Kinds...)
		return args.Number(r.Ahead.Milliseconds()).Number(int64(r.AheadMost)).Number(r.AheadLease.Milliseconds()).Pointers()
	}
	args = append(args.Number(int64(len(r.Kinds))), r.Kinds...)
	for _, agent := range r.Agents {
		args = append(args, layout.Encode(agent))
	}
	return args.Pointers()
}

// ahead reports whether a claim takes tasks before they are due. One that names agents does not: it has no look at what comes next.
func ahead(r *store.ClaimRequest) bool {
	return r.Ahead > 0 && r.AheadMost > 0 && r.Agents == nil
}

// ownLeases is the lease of a claim, and a line for each kind that has another one.
func ownLeases(r *store.ClaimRequest) string {
	b := strconv.AppendInt(nil, r.Lease.Milliseconds(), 10)
	for _, kind := range r.Kinds {
		if lease, own := r.Leases[kind]; own && lease != r.Lease {
			b = strconv.AppendInt(append(b, '\n'), lease.Milliseconds(), 10)
			b = append(append(b, '|'), kind...)
		}
	}
	return string(b)
}

// inline is in front of the only task of an agent, which the script returns in its stored form.
const inline = "S"

// parsePlainClaim reads the reply of plainclaim.lua.
func parsePlainClaim(partition int, reply []any) (store.Claim, error) {
	c := store.Claim{Look: store.Look{Partition: partition}}
	if len(reply) != 10 {
		return c, layout.ErrMalformed
	}
	c.Now = moment.Millis(layout.Number(reply[0]))
	var err error
	if c.NextDue, err = layout.Millis(reply[1]); err != nil {
		return c, err
	}
	if c.NextLease, err = layout.Millis(reply[2]); err != nil {
		return c, err
	}
	if c.AgentsDue, err = layout.AllMillis(reply[8]); err != nil {
		return c, err
	}
	fence := layout.Text(reply[3])
	if fence == "" {
		return c, nil
	}
	if parseFence(&c, fence) != nil {
		return c, layout.ErrMalformed
	}
	agents, _ := reply[4].([]any)
	dues, _ := reply[5].([]any)
	lives, _ := reply[6].([]any)
	states, _ := reply[7].([]any) // none if no task of the partition has one
	if len(agents) != len(lives) || len(dues) != len(lives) || len(states) > 0 && len(states) != len(lives) {
		return c, layout.ErrMalformed
	}
	c.Tasks = make([]store.Claimed, len(lives))
	for i := range lives {
		state := ""
		if len(states) > 0 {
			state = layout.Text(states[i])
		}
		t := &c.Tasks[i]
		live := strings.TrimPrefix(layout.Text(lives[i]), inline)
		if err := readClaimed(t, layout.Text(agents[i]), live, dues[i], state); err != nil {
			return c, err
		}
		t.Partition, t.Fence, t.Index = partition, c.Fence, i
	}
	return c, addProfiles(&c, reply[9])
}
