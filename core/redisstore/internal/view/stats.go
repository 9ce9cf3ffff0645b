package view

// Stats: the counters of all partitions and kinds, added up.

import (
	"context"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Stats reads the counters of all partitions. Those of kinds come in pages, those of all partitions together.
// They are read side by side, not at one moment: between two counters a task may change its state.
func (s *View) Stats(ctx context.Context) (count.Stats, error) {
	// The pipeline is filled now and sent below: the pages of kinds take
	// round trips of their own first.
	pipe := s.db.Client.Pipeline()
	now := pipe.Do(ctx, "TIME")
	kinds, err := s.kinds(ctx)
	if err != nil {
		return count.Stats{}, err
	}
	// part has the answers that one partition owes.
	type part struct {
		counters *redis.Cmd
		agents   *redis.Cmd
		parked   *redis.Cmd
		next     *redis.Cmd
	}
	parts := make([]part, len(s.db.Parts))
	for i, p := range s.db.Parts {
		parts[i] = part{
			counters: pipe.Do(ctx, "HGETALL", p.Key("counters")),
			agents:   pipe.Do(ctx, "HLEN", p.Key("agents")),
			parked:   pipe.Do(ctx, "HGETALL", p.Key("parked")),
			next:     pipe.Do(ctx, "ZRANGE", p.Key("agenda"), 0, 0, "WITHSCORES"),
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return count.Stats{}, call.Wrap("stats", err)
	}
	st := count.Stats{Counters: count.Counters{Partitions: len(s.db.Parts)}, Now: layout.ParseTime(now)}
	for _, p := range parts {
		// Counters grow for as long as the prefix exists; the others are the current state.
		counters := layout.FieldsOf(p.counters)
		add(&st, counters)
		// Who waits in line for a limit is parked too, but neither paused nor without a handler.
		lined := layout.Int(counters["lined"])
		st.Parked, st.Held = st.Parked-lined, st.Held-lined
		agents, _ := p.agents.Int64() // the pipeline has no error
		st.Agents += agents
		for name, n := range layout.FieldsOf(p.parked) {
			st.Parked += layout.Int(n)
			// "@" is the entry for tasks that a hold keeps; every other name
			// is a kind without a handler.
			if name == "@" {
				st.Held += layout.Int(n)
			}
		}
		if z := layout.ScoresOf(p.next); len(z) > 0 && (st.NextDue == 0 || z[0].Score < st.NextDue) {
			st.NextDue = z[0].Score
		}
	}
	st.Kinds = kinds
	// Resting activity tasks are live but have nothing to do, so they are subtracted from the waiting ones.
	st.CountResting()
	return st, nil
}

// kindCounter names a counter of a kind in a partition, as kinds.lua does.
// It identifies a counter, so that one that two pages show is counted
// once: HSCAN may return a field twice.
type kindCounter struct {
	partition  int
	what, kind string
}

// kinds adds up the counters of kinds in all partitions, a page of each at a time. A counter that a page repeats is the same one.
// The script returns a page to stay below its bound of 5 ms, however many kinds a tenant invents.
func (s *View) kinds(ctx context.Context) ([]count.KindStats, error) {
	found := map[kindCounter][]any{}
	calls := make([]call.Call, len(s.db.Parts))
	for i := range calls {
		calls[i] = call.Call{Script: &s.db.Scripts.Kinds, Partition: i, Args: []any{"0"}}
	}
	for len(calls) > 0 {
		replies, err := s.db.Run(ctx, "stats", calls)
		if err != nil {
			return nil, err
		}
		// Only partitions that have more are asked again, all of them in one round trip.
		var more []call.Call
		for i, reply := range replies {
			cursor, err := takeCounters(found, calls[i].Partition, reply)
			if err != nil {
				return nil, err
			}
			if cursor != "0" {
				more = append(more, call.Call{Script: calls[i].Script, Partition: calls[i].Partition, Args: []any{cursor}})
			}
		}
		calls = more
	}
	var all count.Table
	counters := slices.Collect(maps.Keys(found))
	sort.Slice(counters, func(i, k int) bool { return counters[i].partition < counters[k].partition }) // it is smaller than a sort of its own
	for _, c := range counters {                                                                       // in order, as failures of the same time stay in it
		all.Add(parseKind(c, found[c]))
	}
	return all.Sorted(), nil
}

// takeCounters adds a page of counters to those found, and returns where the next one starts.
// Each has four fields: what it counts, the kind, and two values whose meaning depends on the first.
func takeCounters(found map[kindCounter][]any, partition int, reply []any) (string, error) {
	const head, fields = 2, 4
	if len(reply) < head || (len(reply)-head)%fields != 0 {
		return "", call.Wrap("stats", layout.ErrMalformed)
	}
	for f := range slices.Chunk(reply[head:], fields) {
		found[kindCounter{partition, layout.Text(f[0]), layout.Text(f[1])}] = f[2:]
	}
	return layout.Text(reply[1]), nil
}

// parseKind reads one counter of a kind; the fields that it is not about stay
// zero, so that count.Table can add them up.
func parseKind(counter kindCounter, fields []any) *count.KindStats {
	k := &count.KindStats{KindCounters: count.KindCounters{Kind: counter.kind}}
	switch counter.what {
	case "l":
		k.Live = layout.Number(fields[0])
	case "r":
		k.Running = layout.Number(fields[0])
	// A count below zero would be a fault that an audit corrects; it is never returned.
	case "z":
		k.Resting = max(layout.Number(fields[0]), 0)
	default:
		parseRuns(k, fields)
	}
	return k
}

// parseRuns reads the statistics of the runs of a kind, and of the last that failed.
// The eleven numbers are runs, failures, total, shortest and longest duration, total and longest lag,
// and runs of each sort of schedule. Durations are in ms.
func parseRuns(k *count.KindStats, fields []any) {
	if s, ok := fields[0].([]any); ok && len(s) == 11 {
		n := func(i int) int64 { return layout.Int(layout.Text(s[i])) }
		ms := func(i int) time.Duration { return time.Duration(n(i)) * time.Millisecond }
		k.Runs, k.Failures = n(0), n(1)
		k.Duration, k.Shortest, k.Longest, k.Lag, k.LongestLag = ms(2), ms(3), ms(4), ms(5), ms(6)
		k.At, k.Every, k.Cron, k.Activity = n(7), n(8), n(9), n(10)
	}
	failed, _ := fields[1].([]any)
	for _, f := range failed {
		// The time, 13 digits of ms, then a note of core's.
		const head = 13
		if v := layout.Text(f); len(v) >= head {
			k.Failed = append(k.Failed, count.Failure{At: moment.Millis(layout.Int(v[:head])), Note: layout.Data(v[head:])})
		}
	}
}

// add adds the counters of one partition, whose names are those that the scripts give them.
// A counter that a newer binary has added is passed over.
func add(st *count.Stats, c map[string]string) {
	// The scripts count live and running, as those change in one place each; waiting is the difference.
	live, running := layout.Int(c["live"]), layout.Int(c["running"])
	st.Waiting += live - running
	st.InProgress += running
	st.Completed += layout.Int(c["completed"])
	st.Failed += layout.Int(c["failed"])
	st.Cancelled += layout.Int(c["cancelled"])
	st.Submitted += layout.Int(c["submitted"])
	st.Again += layout.Int(c["again"])
	st.Released += layout.Int(c["released"])
	st.Recovered += layout.Int(c["recovered"])
	st.Replayed += layout.Int(c["replayed"])
	st.Deleted += layout.Int(c["deleted"])
	st.Trimmed += layout.Int(c["trimmed"])
	// The latest of all partitions.
	st.LastTrimmed = max(st.LastTrimmed, moment.Millis(layout.Int(c["trimmed_at"])))
	st.Malformed += layout.Int(c["malformed"])
}
