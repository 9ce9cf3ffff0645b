package redisstore

import (
	"context"
	"errors"
	"strconv"

	"github.com/seed-6f6f2c11/duly/core"
)

// Modes of submit.lua.
const (
	modeEach  = "each"
	modeAll   = "all"
	modeCheck = "check"
)

// What submit.lua answers for a task that it did not create.
const (
	submitExists  = 0
	submitLimited = -1
)

// Submit stores new tasks; see [core.Store]. A single task joins those of other goroutines in one script call.
func (s *Store) Submit(ctx context.Context, tasks []core.Submission) ([]core.Placed, error) {
	switch len(tasks) {
	case 0:
		return nil, nil
	case 1:
		a, err := s.submits[s.partitionOf(tasks[0].Agent)%submitLanes].do(ctx, tasks[0])
		if err != nil {
			return nil, submitError(err)
		}
		if a.limited {
			return nil, s.limit(tasks[0])
		}
		return []core.Placed{a.Placed}, nil
	}
	if s.spans(tasks) {
		if _, err := s.submitAll(ctx, tasks, modeCheck); err != nil {
			return nil, err
		}
	}
	return s.submitAll(ctx, tasks, modeAll)
}

// submitted is the answer for one task.
type submitted struct {
	core.Placed
	limited bool
}

// submitError is the error of a joined submit: the store's, or that of the caller's own context.
func submitError(err error) error {
	if _, ok := errors.AsType[*core.StoreError](err); ok {
		return err
	}
	return &core.StoreError{Verb: "submit", Err: err}
}

func (s *Store) limit(t core.Submission) error {
	return &core.LimitError{Agent: t.Agent, Limit: s.config.MaxTasks}
}

// spans reports whether tasks lie in more than one partition.
func (s *Store) spans(tasks []core.Submission) bool {
	first := s.partitionOf(tasks[0].Agent)
	for i := range tasks {
		if s.partitionOf(tasks[i].Agent) != first {
			return true
		}
	}
	return false
}

func (s *Store) submitAll(ctx context.Context, tasks []core.Submission, mode string) ([]core.Placed, error) {
	answers, err := s.submit(ctx, tasks, mode)
	if err != nil {
		return nil, err
	}
	placed := make([]core.Placed, len(tasks))
	for i, a := range answers {
		if a.limited {
			return nil, s.limit(tasks[i])
		}
		placed[i] = a.Placed
	}
	return placed, nil
}

// submitEach stores tasks that have nothing to do with one another.
func (s *Store) submitEach(ctx context.Context, tasks []core.Submission) ([]submitted, error) {
	return s.submit(ctx, tasks, modeEach)
}

func (s *Store) submit(ctx context.Context, tasks []core.Submission, mode string) ([]submitted, error) {
	calls, members := s.byPartition(&s.scripts.submit, len(tasks), func(i int) string { return tasks[i].Agent },
		[]any{mode, s.config.MaxTasks, s.config.Retention.Milliseconds()},
		func(args []any, i int) []any {
			t := &tasks[i]
			var rec []byte
			if mode != modeCheck { // payloads are sent once
				rec = record(t.Level, t.ID, t.Kind, t.Body)
			}
			return append(args, encode(t.Agent), dueArg(t.Due), rec, groupKey(t.Agent, t.Group), t.ID)
		})
	replies, err := s.eval(ctx, "submit", calls)
	if err != nil {
		return nil, err
	}
	out := make([]submitted, len(tasks))
	for c, reply := range replies {
		if len(reply) != len(members[c])+1 {
			return nil, wrap("submit", errMalformed)
		}
		for k, i := range members[c] {
			switch due := number(reply[k+1]); due {
			case submitExists:
			case submitLimited:
				out[i].limited = true
			default:
				out[i].Placed = core.Placed{Created: true, Due: core.Millis(due)}
			}
		}
	}
	return out, nil
}

// byPartition makes one call of a script for each partition that n items lie in: the head arguments, then those that
// add appends for each item. It also returns which items each call has, in order.
func (s *Store) byPartition(
	script *script, n int, agent func(i int) string, head []any, add func(args []any, i int) []any,
) ([]call, [][]int) {
	var calls []call
	var members [][]int
	at := make([]int, len(s.parts))
	for i := range n {
		p := s.partitionOf(agent(i))
		if at[p] == 0 {
			calls = append(calls, call{script: script, partition: p, args: append(make([]any, 0, len(head)+8*n/len(s.parts)+8), head...)})
			members = append(members, nil)
			at[p] = len(calls)
		}
		c := at[p] - 1
		calls[c].args = add(calls[c].args, i)
		members[c] = append(members[c], i)
	}
	return calls, members
}

func formatFence(f core.Fence) string { return strconv.FormatInt(int64(f), 10) }
