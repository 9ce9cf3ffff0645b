package redisstore

// Submit: its arguments, one call for each partition, and how the reply for each task is read.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/view"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Modes of submit.lua.
// How submit.lua treats several tasks: each by itself, all or none, or a check that stores nothing. A
// batch over several partitions is checked in all of them before the first one stores.
const (
	modeEach  = "each"
	modeAll   = "all"
	modeCheck = "check"
)

// The answers of submit.lua and touch.lua for a task that they did not store.
// Anything positive is when the task is due.
const (
	submitExists  = 0
	submitLimited = -1
	submitRefused = -2
	submitChanged = -3
	submitHeavy   = -4
	submitEnding  = -5
)

// Submit stores new tasks; see [store.Queue]. A single task joins those of other goroutines in one script call.
func (s *Store) Submit(ctx context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	switch len(tasks) {
	case 0:
		return nil, nil
	case 1:
		// The common case of a server that gets one task a request.
		a, err := s.submits.of(tasks[0].Agent).do(ctx, &tasks[0])
		if err != nil {
			return nil, submitError(err)
		}
		return []store.Submitted{a.Submitted}, s.refusedTask(&tasks[0], &a)
	}
	// In one partition the script itself is all or nothing. In several, each is checked
	// first; a task that another process submits in between can still make one partition
	// refuse after others have stored theirs.
	if s.spans(tasks) {
		if _, err := s.submitAll(ctx, tasks, modeCheck); err != nil {
			return nil, err
		}
	}
	return s.submitAll(ctx, tasks, modeAll)
}

// submitted is the answer for one task; code is negative if it was refused.
type submitted struct {
	store.Submitted
	reason store.Reason // of a touch
	code   int64
	room   moment.Millis // when its root has room again, of one that was refused for that
	quota  string        // what the quota of its agent says to one that it refuses
}

// refusedTask is the refusal of a submission, whose root may be the reason.
func (s *Store) refusedTask(t *store.Submission, a *submitted) error {
	if a.room != 0 && t.Root != nil {
		return &breaker.Error{Agent: t.Root.Agent, ID: t.Root.ID, Limit: t.Root.Most, Until: a.room, Quota: t.Root.Quota}
	}
	if a.quota != "" {
		return quotaRefusal(t.Agent, a.quota)
	}
	return s.refused(t.Agent, t.ID, a.code)
}

// refused is the error for an answer; nil for one that stored the task or found it.
// The texts are core/store's; only which limit it was is known here.
func (s *Store) refused(agent, id string, code int64) error {
	switch code {
	case submitLimited:
		return &store.LimitError{Agent: agent, Limit: s.config.MaxTasks}
	case submitHeavy:
		return &store.LimitError{Agent: agent, Limit: s.config.MaxBytes, Bytes: true}
	case submitRefused:
		return &store.ConflictError{Agent: agent, ID: id, Reason: "already exists"}
	case submitChanged:
		return store.ErrChanged
	case submitEnding:
		return &store.ConflictError{Agent: agent, ID: id, Reason: store.ConflictEnding}
	// The task was stored, or existed and is kept: both are what the caller wanted.
	default:
		return nil
	}
}

// submitError is the error of a joined submit: the store's, or that of the caller's own context.
func submitError(err error) error {
	// An error of the store names the failed verb already.
	if _, ok := errors.AsType[*store.Error](err); ok {
		return err
	}
	return &store.Error{Verb: call.VerbSubmit, Err: err}
}

// spans reports whether tasks lie in more than one partition.
// One partition is one script call, and needs no check in front.
func (s *Store) spans(tasks []store.Submission) bool {
	first := s.db.PartitionOf(tasks[0].Agent)
	for i := range tasks {
		if s.db.PartitionOf(tasks[i].Agent) != first {
			return true
		}
	}
	return false
}

// submitAll stores tasks of which none may be refused.
// The first refusal is the one to report: it belongs to the first task in the order of the caller.
func (s *Store) submitAll(ctx context.Context, tasks []store.Submission, mode string) ([]store.Submitted, error) {
	placed := make([]store.Submitted, len(tasks))
	var refused error
	outcomes := s.submit(ctx, tasks, mode)
	for i := range tasks {
		o := &outcomes[i]
		if o.err != nil {
			return nil, o.err
		}
		if err := s.refusedTask(&tasks[i], &o.answer); err != nil && refused == nil {
			refused = err
		}
		placed[i] = o.answer.Submitted
	}
	if refused != nil {
		return nil, refused
	}
	return placed, nil
}

// submitEach stores tasks that have nothing to do with one another.
func (s *Store) submitEach(ctx context.Context, tasks []store.Submission) []outcome[submitted] {
	return s.submit(ctx, tasks, modeEach)
}

// submit stores tasks in one script call for each partition, or in several if they are large. It
// returns an outcome for each task, in order.
func (s *Store) submit(ctx context.Context, tasks []store.Submission, mode string) []outcome[submitted] {
	script := &s.db.Scripts.Submit
	// One task that replaces is enough to need the longer script: the mode is the
	// batch's, the rule each task's own.
	for i := range tasks {
		if tasks[i].Conflict == store.ConflictReplace {
			script = &s.db.Scripts.Replace
		}
	}
	room := mostPayload
	if mode != modeEach { // tasks that belong together are one step in each partition: core bounds it
		room = math.MaxInt
	}
	calls, members := s.byPartition(len(tasks), room,
		func(i int) (string, int) { return tasks[i].Agent, submitSize(&tasks[i]) },
		func(partition int, members []int) call.Call {
			full := func() call.Call {
				return call.Call{Script: script, Partition: partition, Args: s.submitArgs(tasks, members, mode)}
			}
			memory := &s.plain[partition].Submit
			if script != &s.db.Scripts.Submit || mode == modeCheck || !plainBatch(tasks, members) || !memory.WorthTrying() {
				return full()
			}
			return call.Call{
				Script: &s.db.Scripts.PlainSubmit, Partition: partition, Args: s.plainSubmitArgs(tasks, members), Plain: memory, Full: full,
			}
		})
	return s.place(ctx, calls, members, 1, func(answer []any) (submitted, error) { return parseSubmitted(answer[0]) },
		func(i int, profiles map[string][]byte, a *submitted) {
			if a.Created || a.Replaced {
				a.Profile = profiles[tasks[i].Agent]
			}
		})
}

// submitArgs are the arguments of submit.lua for some tasks, given by their places.
func (s *Store) submitArgs(tasks []store.Submission, members []int, mode string) []any {
	const head, fields = 4, 7
	args := make([]any, 0, head+fields*len(members))
	bounds := s.live()
	if !slices.ContainsFunc(members, func(i int) bool { return !tasks[i].Owed }) {
		bounds += "o"
	}
	args = append(args, mode, bounds, s.config.Retention.Milliseconds(), quotaFlags(tasks, members))
	for _, i := range members {
		t := &tasks[i]
		// A check needs the size of a task, not its bytes.
		rec := strconv.AppendInt(nil, int64(layout.Weight(len(t.Body))), 10)
		if mode != modeCheck { // payloads are sent once
			rec = layout.Record(t.Level, t.ID, t.Kind, t.Key, t.Body)
		}
		args = append(args, layout.Encode(t.Agent), layout.DueArg(t.Due), rec, layout.GroupKey(t.Agent, t.Group), t.ID, t.Kind, ruleArg(t))
	}
	return args
}

// place runs calls that store tasks, and returns the outcome for each task: an error of a partition stops its own only. Each
// reply has the time, then some fields for each of the call's members, which parse gets, and may have the profiles of their agents
// after them, which profiled adds to the answer of the member with that place.
func (s *Store) place(
	ctx context.Context, calls []call.Call, members [][]int, fields int, parse func(answer []any) (submitted, error),
	profiled func(i int, profiles map[string][]byte, a *submitted),
) []outcome[submitted] {
	n := 0
	for c := range members {
		n += len(members[c])
	}
	out := make([]outcome[submitted], n)
	replies, errs := s.db.RunAll(ctx, call.VerbSubmit, calls)
	for c, reply := range replies {
		var profiles map[string][]byte
		profiles, errs[c] = profilesBehind(reply, 1+fields*len(members[c]), errs[c])
		// The members of a call have the places that the caller counts by.
		for k, i := range members[c] {
			if out[i].err = errs[c]; errs[c] != nil {
				continue
			}
			var err error
			if out[i].answer, err = parse(reply[1+fields*k:]); err != nil {
				out[i].err = call.Wrap(call.VerbSubmit, err)
			}
			if len(profiles) > 0 {
				profiled(i, profiles, &out[i].answer)
			}
		}
	}
	return out
}

// profilesBehind are the profiles in a reply that has so much in front of them, unless it has failed.
func profilesBehind(reply []any, front int, err error) (map[string][]byte, error) {
	var list any
	switch {
	case err != nil:
		return nil, err
	case len(reply) == front+1:
		list = reply[front]
	case len(reply) != front:
		return nil, call.Wrap(call.VerbSubmit, layout.ErrMalformed)
	}
	profiles, err := view.ProfilesIn(list)
	if err != nil {
		err = call.Wrap(call.VerbSubmit, err)
	}
	return profiles, err
}

// parseSubmitted reads the answer for one task: "=" and a time for one that was replaced, "~" and a time for one whose root
// has room again then, "!" and what a quota says, a positive time for a new one, and otherwise one of the codes above.
func parseSubmitted(v any) (submitted, error) {
	if due, ok := strings.CutPrefix(layout.Text(v), "="); ok {
		at, err := layout.Millis(due)
		return submitted{Submitted: store.Submitted{Replaced: true, Due: at}}, err
	}
	if room, full := strings.CutPrefix(layout.Text(v), "~"); full {
		at, err := layout.Millis(room)
		return submitted{room: at}, err
	}
	if says, refused := strings.CutPrefix(layout.Text(v), "!"); refused {
		return submitted{quota: says}, nil
	}
	due := layout.Number(v)
	if due <= submitExists {
		return submitted{code: due}, nil
	}
	return submitted{Submitted: store.Submitted{Created: true, Due: moment.Millis(due)}}, nil
}

// ruleArg is a submission's rule for a task that already exists; empty for leaving it, no first state, no root and the bounds of its agent.
// Most tasks have no rule, and the empty argument costs the script one comparison.
func ruleArg(t *store.Submission) []byte {
	if t.Conflict == store.ConflictKeep && t.State == nil && t.Root == nil && t.Hold == nil && !t.Owed {
		return nil
	}
	root, most := "", 0
	if t.Root != nil {
		root, most = layout.Encode(t.Root.Agent)+":"+layout.Encode(t.Root.ID), t.Root.Most
	}
	name := map[store.Conflict]byte{store.ConflictKeep: 'k', store.ConflictFail: 'f', store.ConflictReplace: 'r'}[t.Conflict]
	if t.Owed && t.Conflict == store.ConflictKeep {
		name = 'o'
	}
	return layout.Lengthened([]byte{name}, string(layout.StoredState(t.State)), t.Version, layout.GroupKey(t.Agent, t.OldGroup), root, strconv.Itoa(most), heldArg(t.Hold))
}

// heldArg is the hold that a new task has from the beginning; empty for none.
func heldArg(h *store.Hold) string {
	if h == nil {
		return ""
	}
	return fmt.Sprintf("%013d", h.Until.At) + string(h.Note)
}

// byPartition makes calls for the partitions that n tasks lie in, one for each if it has room for as many bytes. task returns the
// agent of a task, and its size. It also returns which tasks each call has, in order.
// It keeps the caller's order within each partition, which is the order in which equal tasks run.
func (s *Store) byPartition(
	n, room int, task func(i int) (agent string, size int), build func(partition int, members []int) call.Call,
) ([]call.Call, [][]int) {
	var members [][]int
	var sizes, parts []int
	// at has, for each partition, its latest call counted from one: zero is "none yet".
	at := map[int]int{}
	for i := range n {
		agent, size := task(i)
		p := s.db.PartitionOf(agent)
		// A task larger than room gets a call of its own: a limit on one task is core's to set.
		if at[p] == 0 || sizes[at[p]-1]+size > room {
			members, sizes, parts = append(members, nil), append(sizes, 0), append(parts, p)
			at[p] = len(members)
		}
		c := at[p] - 1
		sizes[c] += size
		members[c] = append(members[c], i)
	}
	var calls []call.Call
	for c, p := range parts {
		calls = append(calls, build(p, members[c]))
	}
	return calls, members
}

// submitSize is how many bytes submitting a task stores, and reads of the one that it replaces.
// Both take Redis time in proportion to their length, which is what the room of a call bounds.
func submitSize(t *store.Submission) int { return len(t.Body) + len(t.State) + t.OldLen }

// formatFence writes all digits: Lua's own way of printing numbers would round a fence.
func formatFence(f store.Fence) string { return strconv.FormatInt(int64(f), 10) }
