package importer

// Job schedulers and repeatable jobs of BullMQ: a sorted set for each queue, and a hash for each scheduler.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// bullmq reads the schedulers of all queues, under any prefix.
func (f *Found) bullmq(ctx context.Context, c *redis.Client, agent string) error {
	keys, err := repeats(ctx, c)
	if err != nil {
		return err
	}
	for _, key := range keys {
		members, err := c.ZRangeWithScores(ctx, key, 0, mostKeys).Result()
		if err != nil {
			return err
		}
		for _, m := range members {
			if err := f.repeatable(ctx, c, key, fmt.Sprint(m.Member), int64(m.Score), agent); err != nil {
				return err
			}
		}
	}
	if len(f.Tasks) > 0 {
		f.left("handlers", "write what runs the kinds, which are queue and name, in the place of worker, or pull them by a worker. Remove the schedulers of BullMQ, or each runs twice")
	}
	return nil
}

// repeats are the sorted sets of schedulers: PREFIX:QUEUE:repeat. The hashes beside them begin in the same way.
func repeats(ctx context.Context, c *redis.Client) (keys []string, err error) {
	scan := c.ScanType(ctx, 0, "*:repeat", 1000, "zset").Iterator()
	for scan.Next(ctx) {
		if keys = append(keys, scan.Val()); len(keys) > mostKeys {
			return nil, errors.New("it has too many queues")
		}
	}
	slices.Sort(keys)
	return keys, scan.Err()
}

// repeatable reads one scheduler, whose next job is due at next.
func (f *Found) repeatable(ctx context.Context, c *redis.Client, key, id string, next int64, agent string) error {
	hash, err := c.HGetAll(ctx, key+":"+id).Result()
	if err != nil {
		return err
	}
	queue := strings.TrimSuffix(key, ":repeat")
	queue = queue[strings.IndexByte(queue, ':')+1:]
	where := "queue " + queue + ", scheduler " + id
	if len(hash) == 0 {
		if hash, err = repeatableOf(ctx, c, strings.TrimSuffix(key, "repeat"), id, next); err != nil || hash == nil {
			f.left(where, "left out: its definition is missing")
			return err
		}
		id = hash["name"]
	}
	t := Task{Agent: agent, ID: id, Kind: named(queue + ":" + hash["name"]), Zone: hash["tz"]}
	if !f.bullTime(where, hash, &t) {
		return nil
	}
	f.bullData(where, hash, &t)
	f.bullLeft(where, hash)
	h := f.work(t.Kind)
	var options struct{ Attempts int }
	if json.Unmarshal([]byte(hash["opts"]), &options) == nil && options.Attempts > 0 && options.Attempts <= 1000 {
		h.Attempts = options.Attempts
	}
	h.Worker = &struct{}{}
	f.Kinds[t.Kind] = h
	f.add(t)
	return nil
}

// repeatableOf is the definition of a repeatable job of BullMQ before 5.16: name:jobId:endDate:tz:schedule, where the schedule may be an expression. Its data and its
// options are those of its next job, which waits; nil for what is none.
func repeatableOf(ctx context.Context, c *redis.Client, queue, id string, next int64) (map[string]string, error) {
	parts := strings.SplitN(id, ":", 5)
	if len(parts) < 5 {
		return nil, nil //nolint:nilnil // it is none
	}
	hash := map[string]string{"name": parts[0], "endDate": parts[2], "tz": parts[3], "pattern": parts[4]}
	if _, err := strconv.ParseInt(parts[4], 10, 64); err == nil {
		hash["every"], hash["pattern"] = parts[4], ""
	}
	jobs, err := c.ZRange(ctx, queue+"delayed", 0, mostKeys).Result()
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		if !strings.HasPrefix(job, "repeat:") || !strings.HasSuffix(job, ":"+strconv.FormatInt(next, 10)) {
			continue
		}
		of, err := c.HMGet(ctx, queue+job, "name", "data", "opts").Result()
		if err != nil {
			return nil, err
		}
		if name, _ := of[0].(string); name == hash["name"] {
			hash["data"], _ = of[1].(string)
			hash["opts"], _ = of[2].(string)
		}
	}
	return hash, nil
}

// bullTime sets when a scheduler is due.
func (f *Found) bullTime(where string, hash map[string]string, t *Task) bool {
	if hash["every"] != "" {
		every, err := strconv.ParseInt(hash["every"], 10, 64)
		if err != nil || every > longest.Milliseconds() {
			f.left(where, "left out: %q is no interval", hash["every"])
			return false
		}
		t.From, t.Zone = "start", ""
		return f.every(where, t, time.Duration(every)*time.Millisecond)
	}
	t.Cron = hash["pattern"]
	if !f.cron(where, t.Cron, t.Zone) {
		return false
	}
	if t.Zone == "" {
		f.left(where, "it has no zone: BullMQ reads it in that of its machine, duly in `zone:` of the file, or UTC")
	}
	return true
}

// bullData sets the payload.
func (f *Found) bullData(where string, hash map[string]string, t *Task) {
	data := hash["data"]
	var payload map[string]any
	switch err := json.Unmarshal([]byte(data), &payload); {
	case data == "" && hash["ic"] == "":
		f.left(where, "no job of it waits, and another place does not have its data: write the payload")
	case data == "":
	case err == nil:
		t.Payload = payload
	default:
		t.Payload = map[string]any{"data": data}
		f.left(where, "its data is no JSON object: the payload has it as data")
	}
}

// bullLeft notes what duly does not keep.
func (f *Found) bullLeft(where string, hash map[string]string) {
	for _, l := range []struct{ key, what string }{
		{"limit", "it ends after %s runs: duly counts none, delete the task then"},
		{"startDate", "startDate %s: it is due from now on"},
		{"endDate", "endDate %s: duly ends no task at a time"},
		{"offset", "offset %s: its interval counts from its first run"},
	} {
		value := hash[l.key]
		if ms, err := strconv.ParseInt(value, 10, 64); err == nil && strings.HasSuffix(l.key, "Date") {
			value = time.UnixMilli(ms).UTC().Format(time.RFC3339)
		}
		if value != "" && value != "0" {
			f.left(where, l.what, value)
		}
	}
}
