package redisstore

// Submits that the plain script can carry out.

import (
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// plainSubmission reports whether the plain script can store a task, as far as the task itself shows.
func plainSubmission(t *store.Submission) bool {
	// guard: breaker-plain
	return t.Mark == "" && t.Conflict == store.ConflictKeep && t.State == nil && t.Hold == nil && t.Group == "" && t.Root == nil && !t.Owed && layout.Weight(len(t.Body)) == 0
}

// plainSubmitArgs are the arguments of plainsubmit.lua for some tasks, given by their places.
func (s *Store) plainSubmitArgs(tasks []store.Submission, members []int) []any {
	kinds, counts := make([]string, 0, 2), make([]int, 0, 2)
	for _, i := range members {
		at := 0
		for at < len(kinds) && kinds[at] != tasks[i].Kind {
			at++
		}
		if at == len(kinds) {
			kinds, counts = append(kinds, tasks[i].Kind), append(counts, 0)
		}
		counts[at]++
	}
	// The records are made in one piece: each by itself would be two allocations.
	size := 0
	for _, i := range members {
		size += 6 + len(tasks[i].ID) + len(tasks[i].Kind) + len(tasks[i].Key) + len(tasks[i].Body)
	}
	records := layout.Texts{Bytes: make([]byte, 0, size), Ends: make([]int, 0, len(members))}
	for _, i := range members {
		t := &tasks[i]
		records.Bytes = layout.AppendRecord(records.Bytes, t.Level, t.ID, t.Kind, t.Key, t.Body)
		records.End()
	}
	args := make(layout.Arguments, 0, 3+2*len(kinds)+4*len(members))
	args = args.Number(int64(s.config.MaxTasks)).Number(int64(s.few)).Number(int64(len(kinds)))
	for i := range kinds {
		args = append(args, kinds[i]).Number(int64(counts[i]))
	}
	next := records.Reader()
	for _, i := range members {
		args = append(args, layout.Encode(tasks[i].Agent), tasks[i].ID, layout.DueArg(tasks[i].Due), next())
	}
	return args.Pointers()
}

// plainBatch reports whether all tasks of a batch are plain.
func plainBatch(tasks []store.Submission, members []int) bool {
	for _, i := range members {
		if !plainSubmission(&tasks[i]) {
			return false
		}
	}
	return true
}
