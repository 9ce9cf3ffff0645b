package redisstore

import (
	"context"
	"slices"
	"sort"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core"
)

// Read returns tasks of one agent; see [core.Store].
func (s *Store) Read(ctx context.Context, q core.Query) (core.Page, error) {
	if q.IDs != nil {
		now, tasks, err := s.read(ctx, q.Agent, q.IDs)
		return core.Page{Now: now, Tasks: tasks}, err
	}
	page, ids, err := s.list(ctx, q)
	if err != nil || len(ids) == 0 {
		return page, err
	}
	_, tasks, err := s.read(ctx, q.Agent, ids)
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

func (s *Store) read(ctx context.Context, agent string, ids []string) (core.Millis, []core.Stored, error) {
	const fields = 4
	args := []any{encode(agent), s.config.Retention.Milliseconds()}
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
	case "d":
		verb, at, rec, err := parseFinished(text(fields[1]))
		t.Status, t.Finished, t.Record = statusOf(string(verb)), at, rec
		return t, err
	default:
		l, err := parseLive(text(fields[1]))
		if err != nil {
			return t, err
		}
		t.Status, t.Parked = statusOf(place), place == "p"
		t.Kind, t.Level, t.Submitted, t.Body = l.kind, l.level, l.submitted, l.body
		t.Crashes, t.State = parseState(text(fields[3]))
		t.Due, err = millis(fields[2])
		return t, err
	}
}

// Stats reads the counters of all partitions, in one round trip.
func (s *Store) Stats(ctx context.Context) (core.Stats, error) {
	pipe := s.client.Pipeline()
	now := pipe.Time(ctx)
	type part struct {
		counters *redis.MapStringStringCmd
		agents   *redis.IntCmd
		parked   *redis.StringSliceCmd
		next     *redis.ZSliceCmd
	}
	parts := make([]part, len(s.parts))
	for i, p := range s.parts {
		parts[i] = part{
			counters: pipe.HGetAll(ctx, p.key("counters")),
			agents:   pipe.HLen(ctx, p.key("agents")),
			parked:   pipe.HVals(ctx, p.key("parked")),
			next:     pipe.ZRangeWithScores(ctx, p.key("agenda"), 0, 0),
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return core.Stats{}, wrap("stats", err)
	}
	st := core.Stats{Now: core.Millis(now.Val().UnixMilli()), Partitions: len(s.parts)}
	for _, p := range parts {
		add(&st, p.counters.Val())
		st.Agents += p.agents.Val()
		for _, n := range p.parked.Val() {
			st.Parked += toInt(n)
		}
		if z := p.next.Val(); len(z) > 0 && (st.NextDue == 0 || core.Millis(z[0].Score) < st.NextDue) {
			st.NextDue = core.Millis(z[0].Score)
		}
	}
	return st, nil
}

// add adds the counters of one partition, whose names are those that the scripts give them.
func add(st *core.Stats, c map[string]string) {
	live, running := toInt(c["live"]), toInt(c["running"])
	st.Waiting += live - running
	st.InProgress += running
	st.Completed += toInt(c["completed"])
	st.Failed += toInt(c["failed"])
	st.Cancelled += toInt(c["cancelled"])
	st.Submitted += toInt(c["submitted"])
	st.Again += toInt(c["again"])
	st.Released += toInt(c["released"])
	st.Recovered += toInt(c["recovered"])
	st.Replayed += toInt(c["replayed"])
	st.Trimmed += toInt(c["trimmed"])
	st.Malformed += toInt(c["malformed"])
}

func toInt(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // a missing counter is zero
	return n
}
