// Package output keeps the output of runs in Redis: a stream for each of the last two runs of a task, whose entries are named by the fence of the
// run and the number of the chunk. Redis takes no entry that is not behind the last one, so that a run which was taken over writes over nothing, and
// a chunk that is sent again is there once. No script is needed, as none of this is decided with anything else.
//
//	output:P:A:ID  STREAM fence-number h: attempt(1) claimed(1) at(1) last, with spaces between; d: bytes. P is 0 or 1: of two runs in a row each has one
//	printed:A      ZSET P:ID, by when the run was claimed: the outputs of agent A
//
// Both go by themselves when nothing has been printed for as long as finished tasks are remembered; order.lua deletes those of a task with it.
package output

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// Outputs are those of a store.
type Outputs struct {
	Client redis.UniversalClient
	// Key is the full name of a key of an agent, and Member that of the agent in keys.
	Key    func(agent, name string) string
	Member func(agent string) string
	Keep   time.Duration
	// Failed makes an error of Redis one of core/store.
	Failed func(verb string, err error) error
}

// slack is how many outputs of an agent more than are kept there may be, so that they are dropped several at a time.
const slack = 32

// Print adds chunks in one round trip; see [output.Keeper].
func (o *Outputs) Print(ctx context.Context, chunks []output.Chunk) ([]error, error) {
	pipe := o.Client.Pipeline()
	added, counted := make([]*redis.Cmd, len(chunks)), make([]*redis.Cmd, len(chunks))
	ms := o.Keep.Milliseconds()
	for i := range chunks {
		c := &chunks[i]
		key := o.key(c.Agent, c.ID, c.Place())
		last := 0
		if c.Last {
			last = 1
		}
		head := fmt.Sprintf("%d %d %d %d", c.Attempt, c.Claimed, c.At, last)
		added[i] = pipe.Do(ctx, "XADD", key, "MINID", fmt.Sprintf("%d-%d", c.Fence, c.Keep), fmt.Sprintf("%d-%d", c.Fence, c.Number), "h", head, "d", c.Data)
		pipe.Do(ctx, "PEXPIRE", key, ms)
		// guard: output-bound
		if c.Bound {
			pipe.Do(ctx, "XTRIM", key, "MAXLEN", output.MostChunks)
		}
		if c.Whole() {
			all := o.all(c.Agent)
			pipe.Do(ctx, "ZADD", all, int64(c.Claimed), member(c.ID, c.Place()))
			pipe.Do(ctx, "PEXPIRE", all, ms)
			counted[i] = pipe.Do(ctx, "ZCARD", all)
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	errs := make([]error, len(chunks))
	for i := range chunks {
		switch err := added[i].Err(); {
		case err != nil && strings.Contains(err.Error(), "equal or smaller"):
			errs[i] = store.ErrLeaseLost
		case err != nil:
			errs[i] = o.Failed("print", err)
		}
		if n, err := numberOf(counted[i]); err == nil && n > output.MostRuns+slack {
			o.trim(ctx, chunks[i].Agent)
		}
	}
	return errs, nil
}

// trim drops the oldest outputs of an agent that has too many. What fails is done again by the next run that prints.
func (o *Outputs) trim(ctx context.Context, agent string) {
	all := o.all(agent)
	oldest, err := o.Client.Do(ctx, "ZRANGE", all, 0, -output.MostRuns-1).StringSlice()
	if err != nil || len(oldest) == 0 {
		return
	}
	pipe := o.Client.Pipeline()
	remove := []any{"ZREM", all}
	for _, name := range oldest {
		remove = append(remove, name)
		pipe.Do(ctx, "DEL", o.named(agent, name))
	}
	pipe.Do(ctx, remove...)
	_, _ = pipe.Exec(ctx)
}

// Printed returns what is kept of a task, in one round trip; see [output.Keeper].
func (o *Outputs) Printed(ctx context.Context, agent, id string) ([]output.Run, error) {
	pipe := o.Client.Pipeline()
	var answers [2]*redis.Cmd
	for place := range answers {
		answers[place] = pipe.Do(ctx, "XRANGE", o.key(agent, id, place), "-", "+")
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, o.Failed("read", err)
	}
	var runs []output.Run
	for _, answer := range answers {
		entries, err := answer.Slice()
		if err == nil && len(entries) > 0 {
			var run output.Run
			run, err = parse(entries)
			runs = append(runs, run)
		}
		if err != nil {
			return nil, o.Failed("read", err)
		}
	}
	slices.SortFunc(runs, func(a, b output.Run) int { return cmp.Compare(b.Fence, a.Fence) })
	return runs, nil
}

// errMalformed reports what no version has written.
var errMalformed = errors.New("malformed output")

// parse reads the entries of a stream, which are of one run.
func parse(entries []any) (output.Run, error) {
	var run output.Run
	for _, e := range entries {
		entry, _ := e.([]any)
		if len(entry) != 2 {
			return run, errMalformed
		}
		name, _ := entry[0].(string)
		fields, _ := entry[1].([]any)
		if len(fields) != 4 {
			return run, errMalformed
		}
		head, _ := fields[1].(string)
		data, _ := fields[3].(string)
		var number int64
		var last int
		piece := output.Piece{Data: []byte(data)}
		if _, err := fmt.Sscanf(name+" "+head, "%d-%d %d %d %d %d", &run.Fence, &number, &run.Attempt, &run.Claimed, &piece.At, &last); err != nil {
			return run, errMalformed
		}
		piece.Last = last == 1
		run.Pieces = append(run.Pieces, piece)
	}
	return run, nil
}

func numberOf(c *redis.Cmd) (int64, error) {
	if c == nil {
		return 0, redis.Nil
	}
	return c.Int64()
}

// member names an output among those of its agent.
func member(id string, place int) string { return strconv.Itoa(place) + ":" + id }

// all is the key of the names of all outputs of an agent.
func (o *Outputs) all(agent string) string { return o.Key(agent, "printed:"+o.Member(agent)) }

// key is the key of an output.
func (o *Outputs) key(agent, id string, place int) string { return o.named(agent, member(id, place)) }

// named is the key of an output with a name of member.
func (o *Outputs) named(agent, name string) string {
	place, id, _ := strings.Cut(name, ":")
	return o.Key(agent, "output:"+place+":"+o.Member(agent)+":"+id)
}
