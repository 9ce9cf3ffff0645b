package redisstore

// Audit: each page is one script call, and the script bounds how much it reads.

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/view"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
)

// auditPageSize is about how many agents or tasks one step of an audit looks at, so that no script is long: a task that is held
// costs up to 60 us.
const auditPageSize = 40

// Audit looks at pages of live tasks; see [store.Operator]. A cursor is one of Redis, after the letter of the hash that it is
// for.
func (s *Store) Audit(ctx context.Context, pages []audit.Page) ([]audit.Result, error) {
	calls := make([]call.Call, len(pages))
	for i, p := range pages {
		if !auditCursor(p.Cursor) {
			return nil, view.ErrCursor
		}
		// Scripts have no booleans among their arguments: an empty string
		// is false, anything else is true.
		repair := ""
		if p.Repair {
			repair = "1"
		}
		calls[i] = call.Call{Script: &s.db.Scripts.Audit, Partition: p.Partition, Args: []any{
			// t0 is the beginning of a round: the letter of the hash of tasks,
			// and the first cursor of HSCAN.
			cmp.Or(p.Cursor, "t0"), auditPageSize, repair, s.config.Retention.Milliseconds(),
		}}
	}
	replies, err := s.db.Run(ctx, call.VerbControl, calls)
	if err != nil {
		return nil, err
	}
	out := make([]audit.Result, len(pages))
	for i, reply := range replies {
		if out[i], err = parseAudited(reply); err != nil {
			return nil, call.Wrap(call.VerbControl, err)
		}
	}
	return out, nil
}

// auditCursor reports whether a cursor, which comes from a client, is one of the script: a letter, a cursor of Redis, and the name of
// a round after an @. A script that met another would fail in the middle.
func auditCursor(cursor string) bool {
	if cursor == "" {
		return true
	}
	scan, round, _ := strings.Cut(cursor[1:], "@")
	_, err := strconv.ParseUint(scan, 10, 64)
	strange := func(r rune) bool { return r <= ' ' || r > '~' }
	return err == nil && strings.Contains(auditPhases, cursor[:1]) && len(round) <= longestRound && !strings.ContainsFunc(round, strange)
}

// The parts of a cursor of an audit: see scripts/audit.lua.
const (
	auditPhases  = "tagpqkms"
	longestRound = 128
)

// parseAudited reads one page of an audit: where the next one begins, how many tasks were
// looked at, and three fields for each fault.
func parseAudited(reply []any) (audit.Result, error) {
	const head, fields = 3, 3
	if len(reply) < head || (len(reply)-head)%fields != 0 {
		return audit.Result{}, layout.ErrMalformed
	}
	a := audit.Result{Next: layout.Text(reply[1]), Tasks: int(layout.Number(reply[2]))}
	for i := head; i < len(reply); i += fields {
		agent, err := layout.Decode(layout.Text(reply[i]))
		if err != nil {
			// The audit exists for damage, so a name that decode refuses is no reason to
			// fail the page: it is reported undecoded.
			agent = layout.Text(reply[i])
		}
		a.Faults = append(a.Faults, audit.Fault{Agent: agent, ID: layout.Text(reply[i+1]), Code: audit.Code(layout.Text(reply[i+2]))})
	}
	return a, nil
}
