package memstore

// Submit: what is refused, created or replaced. A call stores all of its tasks or none.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Submit stores new tasks; see [store.Store].
func (s *Store) Submit(ctx context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "submit", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// All are checked before the first is stored.
	if err := s.refuses(tasks); err != nil {
		return nil, err
	}
	now := s.now()
	out := make([]store.Submitted, len(tasks))
	byPartition := map[*partition][]int{}
	for i := range tasks {
		p := s.partitionOf(tasks[i].Agent)
		byPartition[p] = append(byPartition[p], i)
	}
	// In the order of partitions, in which Redis' scripts are called.
	for _, p := range s.parts {
		if members := byPartition[p]; len(members) > 0 {
			p.submitAll(tasks, members, out, now)
		}
	}
	return out, nil
}

// submitAll stores those of the tasks that lie in the partition.
func (p *partition) submitAll(tasks []store.Submission, members []int, out []store.Submitted, now store.Millis) {
	// Numbers are given in the caller's order, whatever is stored first:
	// equal due times run in that order.
	first := p.ticks(len(members), now)
	seq := make(map[int]int64, len(members))
	for k, i := range members {
		seq[i] = first + int64(k)
	}
	var earliest store.Millis
	for _, i := range inTurn(tasks, members) {
		out[i] = p.submit(tasks[i], seq[i], now)
		if due := out[i].Due; due != 0 && (earliest == 0 || due < earliest) {
			earliest = due
		}
	}
	if earliest != 0 {
		p.store.announce(p, earliest)
	}
}

// inTurn are some of the tasks in the order in which they are stored: what is replaced comes first.
// A replacement may free room for a new task of the same call.
func inTurn(tasks []store.Submission, some []int) []int {
	var first, rest []int
	for _, i := range some {
		if tasks[i].Conflict == store.ConflictReplace {
			first = append(first, i)
		} else {
			rest = append(rest, i)
		}
	}
	return append(first, rest...)
}

// everyOne are the indexes of n tasks.
func everyOne(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// refuses finds the first task that its conflict rule does not allow, or
// that is more than its agent may have.
func (s *Store) refuses(tasks []store.Submission) error {
	also := map[string]*gain{}
	errs := make([]error, len(tasks))
	for _, i := range inTurn(tasks, everyOne(len(tasks))) {
		t := &tasks[i]
		if also[t.Agent] == nil {
			also[t.Agent] = &gain{}
		}
		errs[i] = s.partitionOf(t.Agent).refuses(t, also[t.Agent], s.now())
	}
	// The first in the caller's order, not in the order in which they were looked at.
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// gain is what the tasks before this one, in the same call, add to an agent.
type gain struct{ tasks, kib int }

// refuses finds out why a task is not stored, if it is not, and adds it to what its agent is to get if it is.
func (p *partition) refuses(t *store.Submission, also *gain, now store.Millis) error {
	// A task that exists and is kept adds nothing.
	known, err := p.conflict(t, now)
	if err != nil || known && t.Conflict != store.ConflictReplace {
		return err
	}
	live := 0
	if a := p.agents[t.Agent]; a != nil {
		live = len(a.tasks)
	}
	if limit := p.store.config.MaxTasks; !known && live+also.tasks >= limit {
		return &store.LimitError{Agent: t.Agent, Limit: limit}
	}
	kib := p.heavier(t)
	if err := p.tooHeavy(t.Agent, kib, also.kib); err != nil {
		return err
	}
	also.kib += kib
	if !known {
		also.tasks++
	}
	return nil
}

// heavier is by how many KiB a task makes an agent heavier: a replacement
// counts without its old definition.
func (p *partition) heavier(sub *store.Submission) int {
	kib := weight(len(sub.Body))
	if t := p.task(sub.Agent, sub.ID); t != nil {
		kib -= weight(len(t.Body))
	}
	return kib
}

// tooHeavy refuses what would give an agent too many bytes, on top of what it has and of what else it is to get.
func (p *partition) tooHeavy(agent string, kib, also int) error {
	a := p.agents[agent]
	// What adds no weight is never refused, also where an agent has too much already.
	if kib <= 0 {
		return nil
	}
	have := also
	if a != nil {
		for _, t := range a.tasks {
			have += weight(len(t.Body))
		}
	}
	if limit := p.store.config.MaxBytes; have+kib > limit>>10 {
		return &store.LimitError{Agent: agent, Limit: limit, Bytes: true}
	}
	return nil
}

// conflict reports whether a submission's task already exists, so that it is not created, or why the call is refused.
// It is asked twice in a submit: first for all tasks, then for each as it is stored.
func (p *partition) conflict(sub *store.Submission, now store.Millis) (bool, error) {
	live := p.task(sub.Agent, sub.ID)
	_, _, finished := p.remembered(sub.Agent, sub.ID, now)
	switch {
	case sub.Conflict == store.ConflictFail && (live != nil || finished):
		return true, &store.ConflictError{Agent: sub.Agent, ID: sub.ID, Reason: "already exists"}
	case sub.Conflict != store.ConflictReplace:
		return live != nil || finished, nil
	// Version is what the caller has read: if the task is another by now, its decision no longer holds.
	case live == nil && sub.Version != "" || live != nil && live.version() != sub.Version:
		return true, store.ErrChanged
	case live != nil && live.claim != nil && live.ending():
		return true, &store.ConflictError{Agent: sub.Agent, ID: sub.ID, Reason: store.ConflictEnding}
	default:
		return live != nil, nil
	}
}

// submit stores one task that was not refused; an empty answer says that it exists already.
func (p *partition) submit(sub store.Submission, seq int64, now store.Millis) store.Submitted {
	known, _ := p.conflict(&sub, now) // it refuses nothing: that was looked at first
	if known && sub.Conflict != store.ConflictReplace {
		return store.Submitted{}
	}
	due := max(sub.Due.At, now)
	// Nobody gets ahead of others by a time that is long past.
	if sub.Due.At == 0 {
		due = now.Add(max(sub.Due.After, 0))
	}
	if known {
		return p.replace(sub, due, now)
	}
	p.create(sub, seq, due)
	p.counts.Submitted++
	p.join(sub, now)
	return store.Submitted{Created: true, Due: due}
}

// replace gives a live task a new definition, at once or when its run ends.
// A run under way keeps the old definition; what it settles is looked at again by core.
func (p *partition) replace(sub store.Submission, due, now store.Millis) store.Submitted {
	t := p.task(sub.Agent, sub.ID)
	if sub.Group != t.Group {
		p.leave(sub.Agent, t.Group, now)
		p.join(sub, now)
	}
	running := t.claim != nil
	if !running {
		p.lift(t)
		t.state, t.crashes, t.order = slices.Clone(sub.State), 0, nil
	} else {
		// Counters of kinds follow the definition from now on, also while the old one runs.
		p.stats(t.Kind).Running--
		p.stats(sub.Kind).Running++
		t.order = &order{op: orderReplace, due: due, note: slices.Clone(sub.State)}
	}
	p.stats(t.Kind).Live--
	p.stats(sub.Kind).Live++
	if t.dozing() { // it answers to activity no more
		p.stats(t.Kind).Resting--
	}
	state := t.state
	t.Submission, t.state, t.pulse = sub, state, nil
	t.agent.many = t.agent.many || weight(len(sub.Body)) > 0
	if !running {
		p.place(t, due)
	}
	return store.Submitted{Replaced: true, Due: due}
}

// join adds a live task to its group; nil if it has none.
// A group that was over is used again, with the counts that it had.
func (p *partition) join(sub store.Submission, now store.Millis) *group {
	g := p.group(sub.Agent, sub.Group, now)
	if g != nil {
		g.Live++
		g.over = 0
	}
	return g
}

// create adds a live task that waits.
// A finished record of the same id goes: the task starts again from the beginning.
func (p *partition) create(sub store.Submission, seq int64, due store.Millis) *task {
	a := p.agent(sub.Agent)
	p.unrecord(sub.Agent, sub.ID) // it begins again
	t := &task{Submission: sub, agent: a, seq: seq, state: slices.Clone(sub.State), at: -1}
	a.many = len(a.tasks) > 0 || a.many || weight(len(sub.Body)) > 0
	a.tasks[sub.ID] = t
	p.place(t, due)
	p.live++
	p.stats(sub.Kind).Live++
	return t
}

// version changes whenever the definition or the state of a task does. It differs from that of
// redisstore, as callers only compare it with one that they were given by the same store.
func (t *task) version() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		strconv.Itoa(int(t.Level)), t.Kind, t.Key, string(t.Body), string(t.state),
	}, "\x00")))
	return hex.EncodeToString(sum[:])
}
