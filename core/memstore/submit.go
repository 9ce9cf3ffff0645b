package memstore

// Submit: which tasks are refused, created or replaced. A call stores all of its tasks or none.

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
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
			submitting{p, now}.submitAll(tasks, members, out)
		}
	}
	return out, nil
}

// submitting is a partition to which tasks are submitted at some time.
type submitting struct {
	*partition

	now moment.Millis
}

// submitAll stores those of the tasks that lie in the partition.
func (p submitting) submitAll(tasks []store.Submission, members []int, out []store.Submitted) {
	// Numbers are given in the caller's order, not in the order of storing:
	// equal due times run in that order.
	first := p.ticks(len(members), p.now)
	seq := make(map[int]int64, len(members))
	for k, i := range members {
		seq[i] = first + int64(k)
	}
	var earliest moment.Millis
	// All replaced tasks leave their places before any gets one: an agent without other waiting tasks loses its own.
	for _, i := range members {
		if t := p.task(tasks[i].Agent, tasks[i].ID); tasks[i].Conflict == store.ConflictReplace && t != nil && t.claim == nil && !t.lifted {
			p.lift(t)
			t.lifted = true
		}
	}
	for _, i := range p.store.inTurn(tasks, members) {
		out[i] = p.submit(tasks[i], seq[i])
		if due := out[i].Due; due != 0 && (earliest == 0 || due < earliest) {
			earliest = due
		}
	}
	if earliest != 0 {
		p.store.announce(p.partition, earliest)
	}
}

// inTurn are some of the tasks in the order in which they are stored: replacements come first.
// A replacement may free room for a new task of the same call. A replacement that finds no task comes next.
func (s *Store) inTurn(tasks []store.Submission, some []int) []int {
	var first, next, rest []int
	for _, i := range some {
		t := &tasks[i]
		switch {
		case t.Conflict != store.ConflictReplace:
			rest = append(rest, i)
		case s.partitionOf(t.Agent).task(t.Agent, t.ID) != nil:
			first = append(first, i)
		default:
			next = append(next, i)
		}
	}
	return slices.Concat(first, next, rest)
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
	also, spawned := map[string]*gain{}, map[rootName]int{}
	errs := make([]error, len(tasks))
	for _, i := range s.inTurn(tasks, everyOne(len(tasks))) {
		t := &tasks[i]
		if also[t.Agent] == nil {
			also[t.Agent] = &gain{spawned: spawned}
		}
		errs[i] = submitting{s.partitionOf(t.Agent), s.now()}.refuses(t, also[t.Agent])
	}
	// The first in the caller's order, not in the order in which they were looked at.
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// gain is how much the tasks before this one, in the same call, add to an agent.
type gain struct {
	tasks, kib         int
	recurring, submits int              // that count for its quota
	spawned            map[rootName]int // of the whole call
}

// refuses finds out why a task is not stored, if it is not, and adds it to its agent's gain if it is.
func (p submitting) refuses(t *store.Submission, also *gain) error {
	// A task that exists and is kept adds nothing.
	known, err := p.conflict(t)
	if err != nil || known && t.Conflict != store.ConflictReplace {
		return err
	}
	owed := t.Owed && t.Conflict == store.ConflictKeep
	live := p.liveOf(t.Agent) + also.tasks
	// guard: limit
	if limit := p.store.config.MaxTasks; !known && !owed && live >= limit {
		return &store.LimitError{Agent: t.Agent, Limit: limit}
	}
	w := wanted{id: t.ID, bound: t.Bound, mark: t.Mark, recurs: t.Recurs, fresh: !known}
	if err := p.quotas.refuses(t.Agent, w, live, also, p.now); err != nil {
		return err
	}
	root := p.rootOf(t)
	if err := p.roots.refuses(t.Root, also.spawned[root], p.now); err != nil {
		return err
	}
	kib := p.heavier(t)
	if err := p.tooHeavy(t.Agent, kib, also.kib); err != nil && !owed {
		return err
	}
	if err := p.quotas.tooHeavy(p.partition, t.Agent, kib, also.kib, t.Bound); err != nil {
		return err
	}
	also.spawned[root]++
	own := p.quotas.of[t.Agent]
	also.recurring += own.adds(w)
	if t.Bound {
		also.submits++
	}
	also.kib += kib
	if !known {
		also.tasks++
	}
	return nil
}

// liveOf is how many live tasks an agent has. To ask does not make it an agent.
func (p *partition) liveOf(agent string) int {
	if a := p.agents[agent]; a != nil {
		return len(a.tasks)
	}
	return 0
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

// tooHeavy refuses a task that would give an agent too many bytes, on top of those that it has and those that the call adds.
func (p *partition) tooHeavy(agent string, kib, also int) error {
	// A task that adds no weight is never refused, also where an agent has too much already.
	if kib <= 0 {
		return nil
	}
	if limit := p.store.config.MaxBytes; also+weightOf(p, agent)+kib > limit>>10 {
		return &store.LimitError{Agent: agent, Limit: limit, Bytes: true}
	}
	return nil
}

// weightOf is how many KiB the live tasks of an agent weigh.
func weightOf(p *partition, agent string) (kib int) {
	if a := p.agents[agent]; a != nil {
		for _, t := range a.tasks {
			kib += weight(len(t.Body))
		}
	}
	return kib
}

// conflict reports whether a submission's task already exists, so that it is not created, or why the call is refused.
// It is called twice in a submit: first for all tasks, then for each as it is stored.
func (p submitting) conflict(sub *store.Submission) (bool, error) {
	live := p.task(sub.Agent, sub.ID)
	ended, _, finished := p.records(p.now).remembered(sub.Agent, sub.ID)
	version := "" // of a task that is not known
	switch {
	case live != nil:
		version = live.version()
	case finished:
		version = ended.version()
	}
	switch {
	case sub.Conflict == store.ConflictFail && (live != nil || finished):
		return true, &store.ConflictError{Agent: sub.Agent, ID: sub.ID, Reason: "already exists"}
	case sub.Conflict != store.ConflictReplace:
		return live != nil || finished, nil
	// Version is the one that the caller has read: if the task has changed by now, its decision no longer holds.
	case version != sub.Version:
		return true, store.ErrChanged
	case live != nil && live.claim != nil && live.ending():
		return true, &store.ConflictError{Agent: sub.Agent, ID: sub.ID, Reason: store.ConflictEnding}
	default:
		return live != nil, nil
	}
}

// submit stores one task that was not refused; an empty answer means that it exists already.
func (p submitting) submit(sub store.Submission, seq int64) store.Submitted {
	known, _ := p.conflict(&sub) // it refuses nothing: that was looked at first
	if known && sub.Conflict != store.ConflictReplace {
		return store.Submitted{}
	}
	due := max(sub.Due.At, p.now)
	// No task gets ahead of others by a time that is long past.
	if sub.Due.At == 0 {
		due = p.now.Add(max(sub.Due.After, 0))
	}
	p.roots.count(sub.Root, p.now)
	p.quotas.pass(sub.Agent, sub.Bound, p.now)
	if known {
		return p.replace(sub, due)
	}
	p.create(sub, seq, due)
	if sub.Hold != nil {
		sc := scope{kind: 't', name: sub.Agent, id: sub.ID}
		p.hold(sc, newHold(sc, sub.Hold, p.now), p.now, false)
	}
	p.counts.Submitted++
	p.join(sub, p.now)
	return store.Submitted{Created: true, Due: due, Profile: slices.Clone(p.profiles[sub.Agent])}
}

// replace gives a live task a new definition, at once or when its run ends.
// A run under way keeps the old definition; core looks again at its settlement.
func (p submitting) replace(sub store.Submission, due moment.Millis) store.Submitted {
	t := p.task(sub.Agent, sub.ID)
	if sub.Group != t.Group {
		p.leave(sub.Agent, t.Group, p.now)
		p.join(sub, p.now)
	}
	running := t.claim != nil
	if !running {
		if !t.lifted { // otherwise its place was given up before
			p.lift(t)
		}
		t.lifted = false
		p.unwait(t)
		t.state, t.order = slices.Clone(sub.State), nil
		p.cleared(t)
	} else {
		// Counters of kinds follow the definition from now on, also while the old one runs.
		p.stats(t.Kind).Running--
		p.stats(sub.Kind).Running++
		withdraw(p.partition, p.now)
		t.order = &order{op: orderReplace, due: due, note: slices.Clone(sub.State)}
	}
	p.stats(t.Kind).Live--
	p.stats(sub.Kind).Live++
	if t.dozing() { // it no longer answers to activity
		p.stats(t.Kind).Resting--
	}
	state := t.state
	// guard: replace
	t.Submission, t.state, t.pulse = sub, state, nil
	p.quotas.count(sub.Agent, sub.ID, sub.Recurs)
	t.changed = p.now
	p.spreadFor(t.agent, t.ID, sub.Level, len(sub.Body))
	if !running {
		p.place(t, due)
	}
	return store.Submitted{Replaced: true, Due: due, Profile: slices.Clone(p.profiles[sub.Agent])}
}

// join adds a live task to its group; nil if it has none.
// A group that was over is used again, with the counts that it had.
func (p *partition) join(sub store.Submission, now moment.Millis) *group {
	g := p.group(sub.Agent, sub.Group, now)
	if g != nil {
		g.Live++
		g.over = 0
	}
	return g
}

// create adds a live task that waits.
// A finished record of the same id goes: the task starts again from the beginning.
func (p *partition) create(sub store.Submission, seq int64, due moment.Millis) *task {
	a := p.agent(sub.Agent)
	p.unrecord(sub.Agent, sub.ID) // it begins again
	t := &task{Submission: sub, agent: a, seq: seq, state: slices.Clone(sub.State), at: -1}
	t.entry = &entry{agent: a, task: t, name: a.name, at: -1}
	// The first one has the agent's own name, unless it is long.
	if len(a.tasks) > 0 || recordHead+len(sub.ID)+len(sub.Kind)+len(sub.Key)+len(sub.Body) >= inlineMost {
		t.entry.name = a.name + ":" + string(binary.BigEndian.AppendUint64(nil, uint64(seq))[1:]) + sub.ID //nolint:gosec // it is positive
	}
	p.spreadFor(a, sub.ID, sub.Level, len(sub.Body))
	a.tasks[sub.ID] = t
	p.quotas.count(sub.Agent, sub.ID, sub.Recurs)
	p.place(t, due)
	p.live++
	p.stats(sub.Kind).Live++
	return t
}

// What Redis holds with its agent: see layout.lua, which says why. recordHead is what a record there has besides these texts.
const (
	inlineMost = 1024
	recordHead = 6
)

// few is how many live tasks an agent has in the agenda by themselves.
// guard: flood
const few = 32

// spreadFor makes an agent one with many tasks if a task that it gets, or has again, does not fit with the others: it is large, of
// another level, or one too many.
func (p *partition) spreadFor(a *agent, id string, level store.Level, size int) {
	if a.many { // it stays so; thousands of tasks would be looked at for each that it gets
		return
	}
	others := 0
	fits := weight(size) == 0
	for _, t := range a.tasks {
		if t.ID != id {
			others++
			fits = fits && t.Level == level
		}
	}
	if !fits || others >= few {
		p.spread(a)
	}
}

// spread makes an agent one with many tasks: its waiting tasks have queues from now on, and one entry together.
func (p *partition) spread(a *agent) {
	if a.many {
		return
	}
	a.many = true
	// In an order, as the same calls are to give the same state, byte by byte.
	// guard: spread-in-memory
	for _, t := range slices.SortedFunc(maps.Values(a.tasks), func(x, y *task) int { return strings.Compare(x.ID, y.ID) }) {
		p.agenda.remove(t.entry)
	}
	if first, ok := a.earliest(); ok {
		p.show(a.entry, first)
	}
}

// version is when the task ended.
func (f finished) version() string { return strconv.FormatInt(int64(f.at), 10) }

// version changes whenever the definition or the state of a task does. It differs from that of
// redisstore, as callers only compare it with one that they were given by the same store.
func (t *task) version() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		strconv.Itoa(int(t.Level)), t.Kind, t.Key, string(t.Body), string(t.state),
	}, "\x00")))
	return hex.EncodeToString(sum[:])
}
