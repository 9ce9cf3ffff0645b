package redisstore

// Submits that the plain script can carry out.

import "github.com/seed-6f6f2c11/duly/core/store"

// plainSubmission reports whether the plain script can store a task, as far as the task itself shows.
func plainSubmission(t *store.Submission) bool {
	// guard: breaker-plain
	return t.Mark == "" && t.Conflict == store.ConflictKeep && t.State == nil && t.Hold == nil && t.Group == "" && t.Root == nil && !t.Owed && weight(len(t.Body)) == 0
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
	records := texts{bytes: make([]byte, 0, size), ends: make([]int, 0, len(members))}
	for _, i := range members {
		t := &tasks[i]
		records.bytes = appendRecord(records.bytes, t.Level, t.ID, t.Kind, t.Key, t.Body)
		records.end()
	}
	args := make(arguments, 0, 3+2*len(kinds)+4*len(members))
	args = args.number(int64(s.config.MaxTasks)).number(int64(s.few)).number(int64(len(kinds)))
	for i := range kinds {
		args = append(args, kinds[i]).number(int64(counts[i]))
	}
	next := records.reader()
	for _, i := range members {
		args = append(args, encode(tasks[i].Agent), tasks[i].ID, dueArg(tasks[i].Due), next())
	}
	return args.pointers()
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
