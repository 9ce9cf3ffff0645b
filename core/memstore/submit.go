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
	for _, p := range s.parts {
		if members := byPartition[p]; len(members) > 0 {
			p.submitAll(tasks, members, out, now)
		}
	}
	return out, nil
}

// submitAll stores those of the tasks that lie in the partition.
func (p *partition) submitAll(tasks []store.Submission, members []int, out []store.Submitted, now store.Millis) {
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

func everyOne(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// refuses finds a task that its conflict rule does not allow, or that is one too many for its agent.
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
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// gain is what else an agent is to get by a call.
type gain struct{ tasks, kib int }

// refuses finds out why a task is not stored, if it is not, and adds it to what its agent is to get if it is.
func (p *partition) refuses(t *store.Submission, also *gain, now store.Millis) error {
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

// heavier is how many KiB more an agent would have with a task, whose old definition goes.
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
func (p *partition) conflict(sub *store.Submission, now store.Millis) (bool, error) {
	live := p.task(sub.Agent, sub.ID)
	_, _, finished := p.remembered(sub.Agent, sub.ID, now)
	switch {
	case sub.Conflict == store.ConflictFail && (live != nil || finished):
		return true, &store.ConflictError{Agent: sub.Agent, ID: sub.ID, Reason: "already exists"}
	case sub.Conflict != store.ConflictReplace:
		return live != nil || finished, nil
	case live == nil && sub.Version != "" || live != nil && live.version() != sub.Version:
		return true, store.ErrChanged
	case live != nil && live.claim != nil && live.ending():
		return true, &store.ConflictError{Agent: sub.Agent, ID: sub.ID, Reason: store.ConflictEnding}
	default:
		return live != nil, nil
	}
}

func (p *partition) submit(sub store.Submission, seq int64, now store.Millis) store.Submitted {
	known, _ := p.conflict(&sub, now) // it refuses nothing: that was looked at first
	if known && sub.Conflict != store.ConflictReplace {
		return store.Submitted{}
	}
	due := max(sub.Due.At, now) // nobody gets ahead of others by a time long past
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
func (p *partition) join(sub store.Submission, now store.Millis) *group {
	g := p.group(sub.Agent, sub.Group, now)
	if g != nil {
		g.Live++
		g.over = 0
	}
	return g
}

// create adds a live task that waits.
func (p *partition) create(sub store.Submission, seq int64, due store.Millis) *task {
	a := p.agent(sub.Agent)
	p.unrecord(sub.Agent, sub.ID) // it begins anew
	t := &task{Submission: sub, agent: a, seq: seq, state: slices.Clone(sub.State), at: -1}
	a.many = len(a.tasks) > 0 || a.many || weight(len(sub.Body)) > 0
	a.tasks[sub.ID] = t
	p.place(t, due)
	p.live++
	p.stats(sub.Kind).Live++
	return t
}

// version changes whenever what a task is or knows does.
func (t *task) version() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		strconv.Itoa(int(t.Level)), t.Kind, t.Key, string(t.Body), string(t.state),
	}, "\x00")))
	return hex.EncodeToString(sum[:])
}
