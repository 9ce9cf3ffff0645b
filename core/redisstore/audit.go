package redisstore

// Audit: each page is one script call, and the script bounds how much it reads.

import (
	"cmp"
	"context"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// auditPageSize is about how many agents or tasks one step of an audit looks at, so that no script is long: a task that is held
// costs up to 60 us.
const auditPageSize = 50

// Audit looks at pages of live tasks; see [store.Operator]. A cursor is one of Redis, behind the letter of the hash that it is
// for.
func (s *Store) Audit(ctx context.Context, pages []store.AuditPage) ([]store.Audited, error) {
	calls := make([]call, len(pages))
	for i, p := range pages {
		repair := ""
		if p.Repair {
			repair = "1"
		}
		calls[i] = call{script: &s.scripts.audit, partition: p.Partition, args: []any{
			cmp.Or(p.Cursor, "t0"), auditPageSize, repair, s.config.Retention.Milliseconds(),
		}}
	}
	replies, err := s.eval(ctx, verbControl, calls)
	if err != nil {
		return nil, err
	}
	out := make([]store.Audited, len(pages))
	for i, reply := range replies {
		if out[i], err = parseAudited(reply); err != nil {
			return nil, wrap(verbControl, err)
		}
	}
	return out, nil
}

func parseAudited(reply []any) (store.Audited, error) {
	const head, fields = 3, 3
	if len(reply) < head || (len(reply)-head)%fields != 0 {
		return store.Audited{}, errMalformed
	}
	a := store.Audited{Next: text(reply[1]), Tasks: int(number(reply[2]))}
	for i := head; i < len(reply); i += fields {
		agent, err := decode(text(reply[i]))
		if err != nil { // it is not ours: told as it is
			agent = text(reply[i])
		}
		a.Faults = append(a.Faults, store.Fault{Agent: agent, ID: text(reply[i+1]), Code: store.FaultCode(text(reply[i+2]))})
	}
	return a, nil
}
