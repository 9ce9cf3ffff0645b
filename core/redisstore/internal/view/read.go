package view

// Get: tasks by their ids, as many in a step as fit into its bounds.

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/bounds"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Get returns tasks of one agent by their ids; see [store.Reader]. They are read so many at a time that no step is long.
func (s *View) Get(ctx context.Context, q store.Get) (store.Found, error) {
	// Explaining reads holds and queues for each task as well, which makes
	// a step cost several times more.
	var found store.Found
	most := mostRead
	if q.Explain {
		most = mostExplained
	}
	// Each step returns at least one task, so the loop ends after as many
	// steps as there are ids, at most.
	for {
		left := q.IDs[len(found.Tasks):]
		now, tasks, _, err := s.read(ctx, q.Agent, left[:min(len(left), most)], reading{explain: q.Explain, room: store.PageBytes, first: true})
		if err != nil {
			return store.Found{}, err
		}
		found.Now, found.Tasks = now, append(found.Tasks, tasks...)
		if len(found.Tasks) == len(q.IDs) {
			return found, nil
		}
	}
}

// statusOf is the status for a place in the replies of list.lua and read.lua, or a verb of a finished record.
// p is a waiting task that is parked; the verbs c, f and x are those of a settlement that ended a task.
func statusOf(place string) store.Status {
	switch place {
	case "w", "p":
		return store.StatusWaiting
	case "r":
		return store.StatusInProgress
	case "c":
		return store.StatusCompleted
	case "f":
		return store.StatusFailed
	case "x":
		return store.StatusCancelled
	// Neither live nor finished: the task does not exist.
	default:
		return ""
	}
}

// Bounds of what one step reads.
const (
	mostRead      = 64
	mostExplained = 10
)

// reading says how tasks are read.
type reading struct {
	// explain also reads the holder of the lease, and the line or hold that the task waits for.
	explain bool
	claimed bool // the caller knows under which claims they run
	room    int  // most bytes
	first   bool // the first task is wanted however large it is
}

// read returns the first of the tasks with some ids, at least one if it fits, and how many bytes they take.
func (s *View) read(ctx context.Context, agent string, ids []string, how reading) (moment.Millis, []store.Stored, int, error) {
	replies, err := s.db.Run(ctx, "read", []call.Call{s.readCall(agent, ids, how)})
	if err != nil {
		return 0, nil, 0, err
	}
	s.linesAtHome(ctx, replies[0])
	tasks, size, err := parseRead(agent, ids, replies[0], how.explain)
	// Fewer than requested is fine: the step was full. None at all would make Get ask for ever.
	if err == nil && how.first && len(tasks) == 0 && len(ids) > 0 {
		err = layout.ErrMalformed
	}
	if err != nil {
		return 0, nil, 0, call.Wrap("read", err)
	}
	return moment.Millis(layout.Number(replies[0][0])), tasks, size, nil
}

// readCall asks for tasks of an agent.
func (s *View) readCall(agent string, ids []string, how reading) call.Call {
	room := strconv.Itoa(how.room)
	// The plus is how read.lua recognises that the first task is wanted in any case.
	if how.first {
		room = "+" + room
	}
	look := ""
	switch {
	case how.explain:
		look = "1"
	case how.claimed:
		look = "-"
	}
	args := []any{layout.Encode(agent), s.retention.Milliseconds(), look, room}
	for _, id := range ids {
		args = append(args, id)
	}
	return call.Call{Script: &s.db.Scripts.Read, Partition: s.db.PartitionOf(agent), Args: args}
}

// parseRead reads the answer: the first of these tasks, and how many bytes they take.
func parseRead(agent string, ids []string, reply []any, explain bool) ([]store.Stored, int, error) {
	const fields = readFields
	n := (len(reply) - 1) / fields
	if len(reply) != 1+fields*n || n > len(ids) {
		return nil, 0, layout.ErrMalformed
	}
	tasks, size := make([]store.Stored, n), 0
	for i := range tasks {
		var err error
		if tasks[i], err = parseStored(agent, ids[i], reply[1+fields*i:]); err != nil {
			return nil, 0, err
		}
		if !explain { // the claim of a run was only looked for to know when that was
			tasks[i].Lease, tasks[i].Fence, tasks[i].Holder = 0, 0, ""
		}
		// The same sum as the script's, so that both agree on how much room a page has left.
		size += len(tasks[i].Body) + len(tasks[i].State) + len(tasks[i].Record) + len(tasks[i].Order)
	}
	return tasks, size, nil
}

// parseStored reads the thirteen fields of one task. Which of them have a value
// depends on the first: where the task is.
func parseStored(agent, id string, fields []any) (store.Stored, error) {
	t := store.Stored{Agent: agent, ID: id}
	switch place := layout.Text(fields[0]); place {
	case "":
		return t, nil
	// g is a task whose record had to make room for newer ones: its status is known, its record is not.
	case "d", "g":
		verb, at, rec, err := layout.ParseFinished(layout.Text(fields[1]))
		t.Status, t.Finished, t.Record, t.Dropped = statusOf(string(verb)), at, rec, place == "g"
		t.Version, t.Updated = strconv.FormatInt(int64(at), 10), at
		return t, err
	default:
		l, err := layout.ParseLive(layout.Text(fields[1]))
		if err != nil {
			return t, err
		}
		t.Status, t.Parked = statusOf(place), place == "p"
		t.Kind, t.Key, t.Level, t.Submitted, t.Body = l.Kind, l.Key, l.Level, l.Submitted, l.Body
		t.Crashes, t.Updated, t.State = layout.ParseState(layout.Text(fields[3]))
		t.Version = layout.Version(layout.Text(fields[1]), layout.Text(fields[3]))
		// Only an order to cancel has a note for readers of the task; the
		// others are the scripts' own business.
		if order, ok := strings.CutPrefix(layout.Text(fields[5]), "x"); ok {
			t.Order = layout.Data(order)
		}
		t.Resting, t.Ahead = layout.Number(fields[6]) == 1, layout.Number(fields[10])
		fence, _ := strconv.ParseInt(layout.Text(fields[8]), 10, 64) // empty unless requested
		t.Fence, t.Holder = store.Fence(fence), layout.Text(fields[9])
		t.LastActivity = moment.Millis(layout.Number(fields[11]))
		t.Updated = max(t.Updated, t.Submitted, t.LastActivity)
		if t.Status == store.StatusInProgress {
			t.Updated = max(t.Updated, layout.ClaimedAt(t.Fence))
		}
		if t.Holds, err = parseHolds(fields[4]); err != nil {
			return t, err
		}
		if t.Lease, err = layout.Millis(fields[7]); err != nil {
			return t, err
		}
		if t.Line, err = bounds.ParseLine(fields[12]); err != nil {
			return t, err
		}
		t.Due, err = layout.Millis(fields[2])
		return t, err
	}
}

// parseHolds reads pairs of a scope and a hold.
func parseHolds(v any) ([]store.Held, error) {
	pairs, _ := v.([]any)
	var out []store.Held
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
func parseHeld(pair []any) (store.Held, error) {
	// Two times of 13 digits each: what follows is opaque to the store.
	const head = 26 // until and since
	if len(pair) != 2 || len(layout.Text(pair[1])) < head {
		return store.Held{}, layout.ErrMalformed
	}
	value := layout.Text(pair[1])
	until, err1 := strconv.ParseInt(value[:13], 10, 64)
	since, err2 := strconv.ParseInt(value[13:head], 10, 64)
	scope, err3 := layout.ParseScope(layout.Text(pair[0]))
	if errors.Join(err1, err2, err3) != nil {
		return store.Held{}, layout.ErrMalformed
	}
	return store.Held{Target: scope, Since: moment.Millis(since), Until: moment.Millis(until), Note: layout.Data(value[head:])}, nil
}
