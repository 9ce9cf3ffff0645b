package view

// Look: when partitions are due, with two plain commands for all of them where no script is needed.

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Look returns when partitions are due; see [store.Queue]. For all agents it costs two commands, regardless of the number
// of partitions, agents and tasks: the time, and one read of all partitions. For named agents it costs
// one script for each partition.
func (s *View) Look(ctx context.Context, requests []store.LookRequest) ([]store.Look, error) {
	// Requests with and without agents need different calls, but share the slice of answers.
	out := make([]store.Look, len(requests))
	var hinted, named []int
	for i := range requests {
		out[i].Partition = requests[i].Partition
		if requests[i].Agents == nil {
			hinted = append(hinted, i)
		} else {
			named = append(named, i)
		}
	}
	s.hints(ctx, requests, hinted, out)
	s.nexts(ctx, requests, named, out)
	// One answer is enough to work with. Only if every partition failed is it an error of the whole.
	for i := range out {
		if out[i].Err == nil {
			return out, nil
		}
	}
	if len(out) == 0 {
		return out, nil
	}
	return nil, out[0].Err
}

// nexts asks when the agents of some requests are due.
// Each call takes time in proportion to the agents that it names, and none at
// all for the others of the partition.
func (s *View) nexts(ctx context.Context, requests []store.LookRequest, which []int, out []store.Look) {
	if len(which) == 0 {
		return
	}
	calls := make([]call.Call, len(which))
	for k, i := range which {
		r := &requests[i]
		args := make([]any, 0, 1+len(r.Kinds)+len(r.Agents))
		args = append(args, len(r.Kinds))
		for _, kind := range r.Kinds {
			args = append(args, kind)
		}
		for _, agent := range r.Agents {
			args = append(args, layout.Encode(agent))
		}
		calls[k] = call.Call{Script: &s.db.Scripts.Next, Partition: r.Partition, Args: args}
	}
	replies, errs := s.db.RunAll(ctx, call.VerbLook, calls)
	for k, i := range which {
		out[i] = nextOf(requests[i].Partition, replies[k], errs[k])
	}
}

// nextOf reads the answer of one call of next.lua: the time, the earliest due time, the end of the
// earliest lease, and a due time for each agent in the order in which they were named.
func nextOf(partition int, reply []any, err error) store.Look {
	c := store.Look{Partition: partition, Err: err}
	if reply == nil {
		return c
	}
	// It stays the answer unless everything below can be read.
	c.Err = call.Wrap(call.VerbLook, layout.ErrMalformed)
	if len(reply) != 4 {
		return c
	}
	var err1, err2, err3 error
	c.Now = moment.Millis(layout.Number(reply[0]))
	c.NextDue, err1 = layout.Millis(reply[1])
	c.NextLease, err2 = layout.Millis(reply[2])
	c.AgentsDue, err3 = layout.AllMillis(reply[3])
	if err1 == nil && err2 == nil && err3 == nil {
		c.Err = nil
	}
	return c
}

// hints reads the `due` keys of some requests' partitions, and reads those again that
// failed in a way that may pass. Such a hint may be out of date by the time it is used: it
// decides whether to claim, never what is due.
func (s *View) hints(ctx context.Context, requests []store.LookRequest, which []int, out []store.Look) {
	groups := s.db.ByNode(ctx, len(which), func(k int) int { return requests[which[k]].Partition })
	call.AtOnce(len(groups), func(g int) {
		mine := make([]int, len(groups[g].Members))
		for i, k := range groups[g].Members {
			mine[i] = which[k]
		}
		s.hintsOf(ctx, groups[g].Node, requests, mine, out)
	})
}

// hintsOf is hints for partitions of one node.
func (s *View) hintsOf(ctx context.Context, node redis.UniversalClient, requests []store.LookRequest, which []int, out []store.Look) {
	ctx, cancel := s.db.Patience(ctx, call.VerbLook)
	defer cancel()
	// The same attempts and pauses as those of scripts: a look is as
	// important as the claim that follows.
	for attempt := 1; len(which) > 0; attempt++ {
		keys := make([]string, len(which))
		for k, i := range which {
			keys[k] = s.db.Parts[requests[i].Partition].Key("due")
		}
		now, hints, errs := s.readDue(ctx, node, keys)
		s.askForKinds(ctx, node, requests, which, hints, errs)
		var failed []int
		// One error is enough to decide on waiting and on asking the
		// cluster again: they have the same node.
		var first error
		for k, i := range which {
			if errs[k] != nil {
				out[i].Err = call.Wrap(call.VerbLook, errs[k])
				failed, first = append(failed, i), cmp.Or(first, errs[k])
				continue
			}
			out[i] = hint(requests[i], now, layout.Text(hints[k]))
		}
		s.db.Cluster.Learn(ctx, first)
		if len(failed) == 0 || attempt == call.Attempts || !call.Passing(first) || !call.Wait(ctx, attempt) {
			return
		}
		which = failed
	}
}

// readDue reads keys and the time. If only the keys could be read, the time is estimated from the
// last answer: claims decide by the server's own clock, so an estimate costs an empty claim at
// worst. In a cluster it asks one node for both, so that no other node matters; a key that has
// moved away is read from wherever it is now.
func (s *View) readDue(ctx context.Context, node redis.UniversalClient, keys []string) (moment.Millis, []any, []error) {
	pipe := node.Pipeline()
	now := pipe.Do(ctx, "TIME")
	// One server has all keys, in any slot, and one MGET reads them.
	if s.db.Cluster == nil {
		args := make([]any, 0, 1+len(keys))
		args = append(args, "MGET")
		for _, key := range keys {
			args = append(args, key)
		}
		all := pipe.Do(ctx, args...)
		layout.SendAll(ctx, pipe) // each command holds its own error
		if err := all.Err(); err != nil {
			return s.timeOf(now), make([]any, len(keys)), slices.Repeat([]error{err}, len(keys))
		}
		hints, _ := all.Slice() // it has no error
		return s.timeOf(now), hints, make([]error, len(keys))
	}
	// The keys of different partitions have different slots, and a cluster refuses an
	// MGET across slots, also on one node.
	single := make([]*redis.Cmd, len(keys))
	for i, key := range keys {
		single[i] = pipe.Do(ctx, "GET", key)
	}
	layout.SendAll(ctx, pipe) // as above
	hints, errs := make([]any, len(keys)), make([]error, len(keys))
	for i, get := range single {
		if redis.HasErrorPrefix(get.Err(), "MOVED") || redis.HasErrorPrefix(get.Err(), "ASK") {
			get = s.db.Client.Do(ctx, "GET", keys[i])
		}
		// A missing key is no error: the partition has never had a task, and its hint is empty.
		if get.Err() != redis.Nil { //nolint:errorlint // go-redis returns it unwrapped
			hints[i], errs[i] = get.Val(), get.Err()
		}
	}
	return s.timeOf(now), hints, errs
}

// manyKinds is what a hint contains in place of the names of parked kinds
// when there are too many to list.
const manyKinds = "|*"

// askForKinds looks, where more kinds are parked than a hint names, whether those of the request are among them, and puts them
// into the hint.
// It costs a second round trip, but only in a partition where many kinds wait for a handler.
func (s *View) askForKinds(
	ctx context.Context, node redis.UniversalClient, requests []store.LookRequest, which []int, hints []any, errs []error,
) {
	pipe := node.Pipeline()
	// By the place in which, as not every partition is asked.
	asked := map[int]*redis.Cmd{}
	for k, i := range which {
		if errs[k] == nil && strings.HasSuffix(layout.Text(hints[k]), manyKinds) && len(requests[i].Kinds) > 0 {
			args := []any{"HMGET", s.db.Parts[requests[i].Partition].Key("parked")}
			for _, kind := range requests[i].Kinds {
				args = append(args, kind)
			}
			asked[k] = pipe.Do(ctx, args...)
		}
	}
	if len(asked) == 0 {
		return
	}
	layout.SendAll(ctx, pipe) // each command holds its own error
	for k, cmd := range asked {
		var counts []any
		if counts, errs[k] = cmd.Slice(); errs[k] == nil {
			// The hint is now as it would be if it listed the kinds that matter to this
			// process, and hint reads both alike.
			hints[k] = named(layout.Text(hints[k]), requests[which[k]].Kinds, counts)
		}
	}
}

// named is a hint with those of some kinds that are parked in place of the mark.
func named(hint string, kinds []string, counts []any) string {
	parts := []string{strings.TrimSuffix(hint, manyKinds)}
	for i, n := range counts {
		if n != nil {
			parts = append(parts, kinds[i])
		}
	}
	return strings.Join(parts, "|")
}

// timeOf is the server's time. In a cluster the node that was asked for it may be away while others are not: then it is
// worked out from the last answer.
func (s *View) timeOf(now *redis.Cmd) moment.Millis {
	local := time.Now() //nolint:forbidigo // the distance between two clocks
	if now.Err() != nil {
		// The local clock may be wrong by any amount: it only measures how much
		// time has passed since the last answer.
		return moment.Millis(local.UnixMilli() + s.ahead.Load())
	}
	at := int64(layout.ParseTime(now))
	s.ahead.Store(at - local.UnixMilli())
	return moment.Millis(at)
}

// hint turns the `due` key of a partition into a look: the time, then the parked kinds. A parked
// task of a requested kind is due now.
func hint(r store.LookRequest, now moment.Millis, value string) store.Look {
	c := store.Look{Partition: r.Partition, Now: now}
	// The value is "MS" or "MS|KIND|KIND": see `due` in layout.lua.
	ms, kinds, _ := strings.Cut(value, "|")
	if n, err := strconv.ParseInt(ms, 10, 64); err == nil {
		c.NextDue = moment.Millis(n)
	}
	if kinds == "" {
		return c
	}
	for parked := range strings.SplitSeq(kinds, "|") {
		for _, kind := range r.Kinds {
			// A process without a handler for the kind parked it. This one has a handler,
			// so there is work for it right now.
			if kind == parked && (c.NextDue == 0 || c.NextDue > now) {
				c.NextDue = now
			}
		}
	}
	return c
}
