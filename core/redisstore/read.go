package redisstore

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
)

// Read returns tasks of one agent; see [core.Store].
func (s *Store) Read(ctx context.Context, q core.Query) (core.Page, error) {
	switch {
	case q.Pauses:
		return s.pauses(ctx, q)
	case q.Agent == "":
		return s.agents(ctx, q)
	}
	if q.IDs != nil {
		now, tasks, err := s.read(ctx, q.Agent, q.IDs, q.Explain)
		return core.Page{Now: now, Tasks: tasks}, err
	}
	page, ids, err := s.list(ctx, q)
	if err != nil || len(ids) == 0 {
		return page, err
	}
	_, tasks, err := s.read(ctx, q.Agent, ids, false)
	for _, t := range tasks {
		if t.Status != "" { // it may have been dropped since
			page.Tasks = append(page.Tasks, t)
		}
	}
	return page, err
}

// list returns the ids of the next page, and the rest of the page without its tasks.
func (s *Store) list(ctx context.Context, q core.Query) (core.Page, []string, error) {
	replies, err := s.eval(ctx, "read", []call{{script: &s.scripts.list, partition: s.partitionOf(q.Agent), args: []any{
		encode(q.Agent), s.config.Retention.Milliseconds(), groupKey(q.Agent, q.Group),
	}}})
	if err != nil {
		return core.Page{}, nil, err
	}
	reply := replies[0]
	if len(reply) < 2 || len(reply)%2 != 0 {
		return core.Page{}, nil, wrap("read", errMalformed)
	}
	page := core.Page{Now: core.Millis(number(reply[0]))}
	if counts, ok := reply[1].([]any); ok && len(counts) == 4 {
		page.Group = core.GroupCounts{
			Live: number(counts[0]), Completed: number(counts[1]), Failed: number(counts[2]), Cancelled: number(counts[3]),
		}
	}
	var ids []string
	for i := 2; i < len(reply); i += 2 {
		id := text(reply[i])
		if id > q.After && (q.Statuses == nil || slices.Contains(q.Statuses, statusOf(text(reply[i+1])))) {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	if len(ids) > q.Limit {
		ids, page.More = ids[:q.Limit], true
	}
	return page, ids, nil
}

// statusOf is the status for a place in the replies of list.lua and read.lua, or a verb of a finished record.
func statusOf(place string) core.Status {
	switch place {
	case "w", "p":
		return core.StatusWaiting
	case "r":
		return core.StatusInProgress
	case "c":
		return core.StatusCompleted
	case "f":
		return core.StatusFailed
	case "x":
		return core.StatusCancelled
	default:
		return ""
	}
}

func (s *Store) read(ctx context.Context, agent string, ids []string, explain bool) (core.Millis, []core.Stored, error) {
	const fields = 11
	args := []any{encode(agent), s.config.Retention.Milliseconds(), explain}
	for _, id := range ids {
		args = append(args, id)
	}
	replies, err := s.eval(ctx, "read", []call{{script: &s.scripts.read, partition: s.partitionOf(agent), args: args}})
	if err != nil {
		return 0, nil, err
	}
	reply := replies[0]
	if len(reply) != 1+fields*len(ids) {
		return 0, nil, wrap("read", errMalformed)
	}
	tasks := make([]core.Stored, len(ids))
	for i, id := range ids {
		if tasks[i], err = parseStored(agent, id, reply[1+fields*i:]); err != nil {
			return 0, nil, wrap("read", err)
		}
	}
	return core.Millis(number(reply[0])), tasks, nil
}

func parseStored(agent, id string, fields []any) (core.Stored, error) {
	t := core.Stored{Agent: agent, ID: id}
	switch place := text(fields[0]); place {
	case "":
		return t, nil
	case "d", "g":
		verb, at, rec, err := parseFinished(text(fields[1]))
		t.Status, t.Finished, t.Record, t.Dropped = statusOf(string(verb)), at, rec, place == "g"
		return t, err
	default:
		l, err := parseLive(text(fields[1]))
		if err != nil {
			return t, err
		}
		t.Status, t.Parked = statusOf(place), place == "p"
		t.Kind, t.Key, t.Level, t.Submitted, t.Body = l.kind, l.key, l.level, l.submitted, l.body
		t.Crashes, t.State = parseState(text(fields[3]))
		t.Version = version(text(fields[1]), text(fields[3]))
		if order, ok := strings.CutPrefix(text(fields[5]), "x"); ok {
			t.Order = data(order)
		}
		t.Resting, t.Ahead = number(fields[6]) == 1, number(fields[10])
		fence, _ := strconv.ParseInt(text(fields[8]), 10, 64) // empty unless it was asked for
		t.Fence, t.Holder = core.Fence(fence), text(fields[9])
		if t.Holds, err = parseHolds(fields[4]); err != nil {
			return t, err
		}
		if t.Lease, err = millis(fields[7]); err != nil {
			return t, err
		}
		t.Due, err = millis(fields[2])
		return t, err
	}
}

// parseHolds reads pairs of a scope and a hold.
func parseHolds(v any) ([]core.Held, error) {
	pairs, _ := v.([]any)
	var out []core.Held
	for pair := range slices.Chunk(pairs, 2) {
		held, err := parseHeld(pair)
		if err != nil {
			return nil, err
		}
		out = append(out, held)
	}
	return out, nil
}

// parseHeld reads a scope and its hold.
func parseHeld(pair []any) (core.Held, error) {
	const head = 26 // until and since
	if len(pair) != 2 || len(text(pair[1])) < head {
		return core.Held{}, errMalformed
	}
	value := text(pair[1])
	until, err1 := strconv.ParseInt(value[:13], 10, 64)
	since, err2 := strconv.ParseInt(value[13:head], 10, 64)
	scope, err3 := parseScope(text(pair[0]))
	if errors.Join(err1, err2, err3) != nil {
		return core.Held{}, errMalformed
	}
	return core.Held{Scope: scope, Since: core.Millis(since), Until: core.Millis(until), Hold: data(value[head:])}, nil
}
