package redisstore

// Folding: the counts of all partitions go into the first copy, and the amount stored is counted.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// countersOf are those of each partition.
func countersOf(ctx context.Context, db *call.DB) ([]map[string]string, error) {
	pipe := db.Client.Pipeline()
	asked := make([]*redis.Cmd, len(db.Parts))
	for i, p := range db.Parts {
		asked[i] = pipe.Do(ctx, "HGETALL", p.Key("counters"))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, call.Wrap(verbRepartition, err)
	}
	all := make([]map[string]string, len(asked))
	for i, a := range asked {
		all[i] = layout.FieldsOf(a)
	}
	return all, nil
}

// folded adds up the counters of partitions. Counts of live tasks are left to the audit, which counts.
func folded(counters []map[string]string) map[string]int64 {
	sum := map[string]int64{}
	for _, of := range counters {
		for name, value := range of {
			switch n := layout.Int(value); name {
			case "live", "running", "stamps": // definitions are stored and stamped by the next process
			case "clock", "trimmed_at", "ordered":
				sum[name] = max(sum[name], n)
			default:
				sum[name] += n
			}
		}
	}
	return sum
}

// fold writes the sums into the copies. The clock of every copy is the highest of all, so that fences keep growing, and holds begin
// later than the orders before them.
func (m *copier) fold(ctx context.Context, counters []map[string]string, st *count.Stats) error {
	b, first := batch{}, m.copies.db.Parts[0]
	sums := folded(counters)
	for name, n := range sums {
		b.add("HSET", first.Key("counters"), name, n)
	}
	for _, p := range m.copies.db.Parts {
		b.add("HSET", p.Key("counters"), "clock", sums["clock"], "ordered", sums["ordered"])
	}
	for i := range st.Kinds {
		foldKind(b, first, &st.Kinds[i])
		if (i+1)%pageEntries == 0 {
			if err := write(ctx, &m.old.db, b); err != nil {
				return err
			}
			b = batch{}
		}
	}
	return write(ctx, &m.old.db, b)
}

// foldKind writes the statistics of a kind. One that nothing is known of any more keeps its name.
func foldKind(b batch, p layout.Partition, k *count.KindStats) {
	b.add("HSET", p.Key("kinds"), "l"+k.Kind, 0)
	if k.Runs > 0 {
		b.add("HSET", p.Key("kinds"), "s"+k.Kind, packRuns(k))
	}
	for _, f := range k.Failed {
		b.add("RPUSH", p.Key("failures:"+k.Kind), fmt.Sprintf("%013d", f.At)+string(f.Note))
	}
}

// packRuns is the tally of a kind as the scripts read it: eleven numbers in MessagePack; see parseRuns.
func packRuns(k *count.KindStats) []byte {
	const elevenOf, float = 0x9b, 0xcb
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	out := []byte{elevenOf}
	for _, n := range []int64{
		k.Runs, k.Failures, ms(k.Duration), ms(k.Shortest), ms(k.Longest), ms(k.Lag), ms(k.LongestLag), k.At, k.Every, k.Cron, k.Activity,
	} {
		out = append(out, float) // all numbers of Lua are of this sort
		out = binary.BigEndian.AppendUint64(out, math.Float64bits(float64(n)))
	}
	return out
}

// counted is how much is stored, with the entries in lists of ends: these are the one thing that grows if it is written twice.
type counted struct {
	Moved
	listed int64
}

// countAll counts what is stored: agents, live tasks, and records.
func countAll(ctx context.Context, db *call.DB) (counted, error) {
	counters, err := countersOf(ctx, db)
	if err != nil {
		return counted{}, err
	}
	var moved counted
	for i, p := range db.Parts {
		moved.Tasks += layout.Int(counters[i]["live"])
		agents, err := db.Client.Do(ctx, "HLEN", p.Key("agents")).Int64()
		if err != nil {
			return counted{}, call.Wrap(verbRepartition, err)
		}
		moved.Agents += agents
		if err := countRecords(ctx, db, p, &moved); err != nil {
			return counted{}, err
		}
	}
	return moved, nil
}

// countRecords adds the records of a partition.
func countRecords(ctx context.Context, db *call.DB, p layout.Partition, moved *counted) error {
	var pipe redis.Pipeliner
	var records, lists []*redis.Cmd
	st := &stream{form: 'h', key: p.Key("finished"), each: func(_ batch, agent, value string) {
		if value != "*" {
			moved.Records++
			return
		}
		records = append(records, pipe.Do(ctx, "HLEN", p.Key("history:"+agent)))
		lists = append(lists, pipe.Do(ctx, "LLEN", p.Key("ends:"+agent)), pipe.Do(ctx, "LLEN", p.Key("dead:"+agent)))
	}}
	for last := false; !last; {
		pipe, records, lists = db.Client.Pipeline(), nil, nil
		var err error
		if last, err = st.take(db.Client.Do(ctx, st.ask()...), nil); err != nil {
			return err
		}
		if len(records) == 0 {
			continue
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return call.Wrap(verbRepartition, err)
		}
		moved.Records += total(records)
		moved.listed += total(lists)
	}
	return nil
}

// total adds up the answers of a pipeline that has not failed.
func total(lengths []*redis.Cmd) int64 {
	var n int64
	for _, length := range lengths {
		some, _ := length.Int64()
		n += some
	}
	return n
}

// formatMillis is a score as a command takes it.
func formatMillis(t moment.Millis) string { return strconv.FormatInt(int64(t), 10) }
