package redisstore

import (
	"cmp"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// auditPageSize is about how many agents or tasks one step of an audit looks at, so that no script is long: a task that is held
// costs up to 60 us.
const auditPageSize = 50

// auditPage is the call that audits a page. The cursor is one of Redis, behind the letter of the hash that it is for.
func (s *Store) auditPage(a store.Audit) call {
	repair := ""
	if a.Repair {
		repair = "1"
	}
	return call{script: &s.scripts.audit, partition: a.Partition, args: []any{cmp.Or(a.Cursor, "t0"), auditPageSize, repair, s.config.Retention.Milliseconds()}}
}

func parseAudited(reply []any) (store.Effect, error) {
	const head, fields = 3, 3
	if len(reply) < head || (len(reply)-head)%fields != 0 {
		return store.Effect{}, errMalformed
	}
	a := &store.Audited{Next: text(reply[1]), Tasks: int(number(reply[2]))}
	for i := head; i < len(reply); i += fields {
		agent, err := decode(text(reply[i]))
		if err != nil { // it is not ours: told as it is
			agent = text(reply[i])
		}
		a.Faults = append(a.Faults, store.Fault{Agent: agent, ID: text(reply[i+1]), Code: store.FaultCode(text(reply[i+2]))})
	}
	effect := store.Effect{Code: store.EffectNone, Audited: a}
	if len(a.Faults) > 0 {
		effect.Code = store.EffectDone
	}
	return effect, nil
}
