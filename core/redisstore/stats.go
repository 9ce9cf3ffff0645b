package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core"
)

// Stats reads the counters of all partitions, in one round trip.
func (s *Store) Stats(ctx context.Context) (core.Stats, error) {
	pipe := s.client.Pipeline()
	now := pipe.Time(ctx)
	kinds := make([]call, len(s.parts))
	for i := range kinds {
		kinds[i] = call{script: &s.scripts.kinds, partition: i}
	}
	tables, err := s.eval(ctx, "stats", kinds)
	if err != nil {
		return core.Stats{}, err
	}
	type part struct {
		counters *redis.MapStringStringCmd
		agents   *redis.IntCmd
		parked   *redis.MapStringStringCmd
		next     *redis.ZSliceCmd
	}
	parts := make([]part, len(s.parts))
	for i, p := range s.parts {
		parts[i] = part{
			counters: pipe.HGetAll(ctx, p.key("counters")),
			agents:   pipe.HLen(ctx, p.key("agents")),
			parked:   pipe.HGetAll(ctx, p.key("parked")),
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
		for name, n := range p.parked.Val() {
			st.Parked += toInt(n)
			if name == "@" {
				st.Held += toInt(n)
			}
		}
		if z := p.next.Val(); len(z) > 0 && (st.NextDue == 0 || core.Millis(z[0].Score) < st.NextDue) {
			st.NextDue = core.Millis(z[0].Score)
		}
	}
	if st.Kinds, err = parseKinds(tables); err == nil {
		st.CountResting()
	}
	return st, err
}

// parseKinds adds up the counters of kinds in all partitions.
func parseKinds(tables [][]any) ([]core.KindStats, error) {
	const fields = 6
	var all core.KindTable
	for _, table := range tables {
		if len(table)%fields != 1 {
			return nil, wrap("stats", errMalformed)
		}
		for i := 1; i < len(table); i += fields {
			all.Add(parseKind(table[i : i+fields]))
		}
	}
	return all.Sorted(), nil
}

func parseKind(fields []any) *core.KindStats {
	k := &core.KindStats{Kind: text(fields[0]), Live: number(fields[1]), Running: number(fields[2]), Resting: max(number(fields[3]), 0)}
	if s, ok := fields[4].([]any); ok && len(s) == 11 {
		n := func(i int) int64 { return toInt(text(s[i])) }
		ms := func(i int) time.Duration { return time.Duration(n(i)) * time.Millisecond }
		k.Runs, k.Failures = n(0), n(1)
		k.Duration, k.Shortest, k.Longest, k.Lag, k.LongestLag = ms(2), ms(3), ms(4), ms(5), ms(6)
		k.At, k.Every, k.Cron, k.Activity = n(7), n(8), n(9), n(10)
	}
	failed, _ := fields[5].([]any)
	for _, f := range failed {
		const head = 13
		if v := text(f); len(v) >= head {
			k.Failed = append(k.Failed, core.Failure{At: core.Millis(toInt(v[:head])), Note: data(v[head:])})
		}
	}
	return k
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
	st.Deleted += toInt(c["deleted"])
	st.Trimmed += toInt(c["trimmed"])
	st.LastTrimmed = max(st.LastTrimmed, core.Millis(toInt(c["trimmed_at"])))
	st.Malformed += toInt(c["malformed"])
}

func toInt(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // a missing counter is zero
	return n
}
