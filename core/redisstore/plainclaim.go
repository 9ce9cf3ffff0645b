package redisstore

// Claims that the plain script can answer.

import (
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// claimCall is the call for a request: a plain one if it asks for nothing that only claim.lua knows.
func (s *Store) claimCall(r *store.ClaimRequest) call {
	full := func() call { return call{script: &s.scripts.claim, partition: r.Partition, args: claimArgs(r, "")} }
	usual := len(r.Most) == 0 && len(r.Leave) == 0 && len(r.Kinds) > 0 && (r.Agents == nil || len(r.Agents) > 0) &&
		!r.Urgent && !r.Serial && r.After == 0 && r.PerAgent == 0 && r.Limit > 0
	if memory := &s.plain[r.Partition].claim; usual && memory.worthTrying() {
		return call{script: &s.scripts.plainClaim, partition: r.Partition, args: plainClaimArgs(r), full: full, plain: memory}
	}
	return full()
}

func plainClaimArgs(r *store.ClaimRequest) []any {
	args := append(make(arguments, 0, 8+len(r.Kinds)+len(r.Agents)), r.Nonce).number(int64(r.Limit))
	if len(r.Leases) == 0 {
		args = args.number(r.Lease.Milliseconds())
	} else {
		args = append(args, ownLeases(r))
	}
	// guard: plain-fence-seen
	args = args.stamped(r.Fence, r.Stamp)
	if ahead(r) {
		args = append(args.number(-int64(len(r.Kinds))), r.Kinds...)
		return args.number(r.Ahead.Milliseconds()).number(int64(r.AheadMost)).number(r.AheadLease.Milliseconds()).pointers()
	}
	args = append(args.number(int64(len(r.Kinds))), r.Kinds...)
	for _, agent := range r.Agents {
		args = append(args, encode(agent))
	}
	return args.pointers()
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
		return c, errMalformed
	}
	c.Now = store.Millis(number(reply[0]))
	var err error
	if c.NextDue, err = millis(reply[1]); err != nil {
		return c, err
	}
	if c.NextLease, err = millis(reply[2]); err != nil {
		return c, err
	}
	if c.AgentsDue, err = allMillis(reply[8]); err != nil {
		return c, err
	}
	fence := text(reply[3])
	if fence == "" {
		return c, nil
	}
	if parseFence(&c, fence) != nil {
		return c, errMalformed
	}
	agents, _ := reply[4].([]any)
	dues, _ := reply[5].([]any)
	lives, _ := reply[6].([]any)
	states, _ := reply[7].([]any) // none if no task of the partition has one
	if len(agents) != len(lives) || len(dues) != len(lives) || len(states) > 0 && len(states) != len(lives) {
		return c, errMalformed
	}
	c.Tasks = make([]store.Claimed, len(lives))
	for i := range lives {
		state := ""
		if len(states) > 0 {
			state = text(states[i])
		}
		t := &c.Tasks[i]
		live := strings.TrimPrefix(text(lives[i]), inline)
		if err := readClaimed(t, text(agents[i]), live, dues[i], state); err != nil {
			return c, err
		}
		t.Partition, t.Fence, t.Index = partition, c.Fence, i
	}
	return c, addProfiles(&c, reply[9])
}
