package history_test

// The model: one task, as docs/guarantees.md and the comments of package core promise it.

import (
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// phase is where the task is in its life.
type phase string

// The phases; a finished task is where its status says.
const (
	absent    phase = "absent"
	waiting   phase = "waiting"
	running   phase = "running"
	completed       = phase(core.StatusCompleted)
	failed          = phase(core.StatusFailed)
	cancelled       = phase(core.StatusCancelled)
)

// state is all that the model knows of the task.
type state struct {
	phase  phase
	def    int   // the definition: the number in its payload
	next   int   // the definition that replaces it when its run ends; 0: none
	ending bool  // told to end while it ran
	held   bool  // paused
	forced bool  // to be taken although it is paused
	byHand bool  // its run was forced
	fence  int64 // of the claim that holds it
	until  int64 // running: its lease ends no sooner, ms
	last   int64 // the fence under which it was settled last
}

// input is what somebody asked: a client, or a worker's scheduler its store.
type input struct {
	verb    string
	def     int
	fence   int64
	settle  store.Verb
	renewed bool
	again   bool  // a settlement whose first answer was lost; a claim that may have been sent twice
	called  int64 // when, ms
}

// answer is what it was told.
type answer struct {
	code      core.Code // empty: it was done; unavailable: the outcome is unknown
	created   bool
	status    core.Status
	paused    bool
	def       int
	loose     bool  // given by HTTP or on the command line: the task was read once more, and a conflict may mean that it has changed
	cancelled bool  // a claim: to be settled as cancelled
	returned  int64 // when, ms
	why       error // of a settlement
}

// The verbs of clients; those of workers are the store's.
const (
	submitKeep    = "submit"
	submitReplace = "replace"
	cancel        = "cancel"
	pause         = "pause"
	resume        = "resume"
	remove        = "delete"
	runNow        = "run-now"
	replay        = "replay"
	get           = "get"
	claim         = "claim"
	settle        = "settle"
	extend        = "extend"
)

func (s state) live() bool { return s.phase == waiting || s.phase == running }

// expired is the task once its run has lost its lease: it waits, as what it was replaced by.
func (s state) expired() state {
	s.phase, s.forced, s.byHand, s.fence, s.until = waiting, s.byHand || s.forced, false, 0, 0
	return s.current()
}

// current is the task with the definition that was waiting for its run to end.
func (s state) current() state {
	if s.next != 0 {
		s.def, s.next = s.next, 0
	}
	return s
}

// as is the task in another phase, with nothing left of its run.
func (s state) as(p phase) state {
	return state{phase: p, def: s.def, held: s.held && p == waiting, last: s.last}
}

// step is every state that may follow one by an operation with this answer; none if the answer is wrong.
func step(s state, in input, out answer) []state {
	from := []state{s}
	if s.phase == running && out.returned >= s.until {
		from = append(from, s.expired())
	}
	var all []state
	for _, s := range from {
		if out.code == changed || out.loose && out.code == core.CodeConflict {
			all = append(all, s)
			continue
		}
		if out.code == core.CodeUnavailable { // it was done or not
			all = append(all, s)
			if in.verb == claim {
				all = append(all, taken(s)...)
			} else {
				all = append(all, done(s, in)...)
			}
			continue
		}
		all = append(all, told(s, in, out)...)
		if out.loose && out.code == core.CodeNotFound {
			out.code = ""
			all = append(all, told(s, in, out)...)
		}
	}
	return all
}

// done is what an operation may do to the task whose answer nobody has seen.
func done(s state, in input) []state {
	var all []state
	for _, code := range []core.Code{"", core.CodeNotFound, core.CodeConflict} {
		for _, created := range []bool{true, false} {
			for _, status := range []core.Status{"", core.StatusCancelled, core.StatusInProgress} {
				for _, next := range told(s, in, answer{code: code, created: created, status: status}) {
					if !slices.Contains(all, next) { // most answers leave the task the same
						all = append(all, next)
					}
				}
			}
		}
	}
	return all
}

// told is what the task is after an operation with an answer, if the answer is right.
func told(s state, in input, out answer) []state {
	switch in.verb {
	case submitKeep, submitReplace:
		return submitted(s, in, out)
	case get:
		return seen(s, out)
	case claim:
		return claimed(s, in, out)
	case settle:
		return settled(s, in, out)
	case extend:
		if s.phase == running && s.fence == in.fence && out.code == "" {
			s.until = in.called + lease.Milliseconds()
		}
		return []state{s}
	default:
		return ordered(s, in, out)
	}
}

func only(s state, right bool) []state {
	if right {
		return []state{s}
	}
	return nil
}

func submitted(s state, in input, out answer) []state {
	done := out.code == ""
	switch {
	case s.phase == absent:
		return only(state{phase: waiting, def: in.def, last: s.last}, done && out.created)
	case in.verb == submitKeep:
		return only(s, done && !out.created)
	case s.ending && s.phase == waiting && done: // its run was lost, and no claim has ended it: the replacement takes the place of that
		s.def, s.ending = in.def, false
		return only(s, !out.created)
	case s.ending:
		return only(s, out.code == core.CodeConflict)
	case s.phase == running:
		s.next = in.def
		return only(s, done && !out.created)
	case s.phase == waiting:
		s.def = in.def
		return only(s, done && !out.created)
	default: // it was finished, and begins anew
		return only(state{phase: waiting, def: in.def, last: s.last}, done)
	}
}

// ordered is a command of an operator.
func ordered(s state, in input, out answer) []state {
	if s.phase == absent {
		return only(s, out.code == core.CodeNotFound)
	}
	done, conflict := out.code == "", out.code == core.CodeConflict
	says := func(status core.Status) bool { return done && (out.loose || out.status == status) }
	switch in.verb {
	case cancel:
		switch s.phase {
		case waiting:
			if s.ending && says(core.StatusInProgress) { // its run was lost: it ends with the next claim, or now
				return []state{s}
			}
			return only(s.as(cancelled), says(core.StatusCancelled))
		case running:
			s.ending = true
			return only(s, says(core.StatusInProgress))
		case cancelled:
			return only(s, says(core.StatusCancelled))
		default:
			return only(s, conflict)
		}
	case pause:
		if !s.live() {
			return only(s, out.code == core.CodeNotFound)
		}
		s.held, s.forced = true, false
		return only(s, done)
	case resume:
		s.held = false
		return only(s, done)
	case remove:
		return only(state{phase: absent, last: s.last}, done)
	case runNow:
		if s.phase != waiting || s.ending {
			return only(s, conflict)
		}
		s.forced = true
		return only(s, done)
	case replay:
		if s.phase != failed {
			return only(s, conflict)
		}
		return only(s.as(waiting), done)
	default:
		return nil
	}
}

// seen is a read.
func seen(s state, out answer) []state {
	if s.phase == absent {
		return only(s, out.code == core.CodeNotFound)
	}
	status := map[phase]core.Status{waiting: core.StatusWaiting, running: core.StatusInProgress}[s.phase]
	if status == "" {
		return only(s, out.code == "" && out.status == core.Status(s.phase))
	}
	right := out.status == status || s.ending && out.status == core.StatusInProgress
	return only(s, right && out.code == "" && out.paused == s.held && (out.def == s.def || out.def == s.next))
}

// claimed is a worker that was given the task.
func claimed(s state, in input, out answer) []state {
	as := out.def == s.def && out.cancelled == s.ending || in.again && out.cancelled
	right := s.phase == waiting && as && (!s.held || s.forced || s.ending) && in.fence > s.last
	s.phase, s.byHand, s.forced, s.fence, s.until = running, s.forced, false, in.fence, in.called+lease.Milliseconds()
	return only(s, right)
}

// taken is the task after a claim that nobody was told of: its lease may end at any time.
func taken(s state) []state {
	right := s.phase == waiting && (!s.held || s.forced || s.ending)
	s.phase, s.byHand, s.forced, s.fence, s.until = running, s.forced, false, 0, 0
	return only(s, right)
}

// settled is a worker that has said how its run ended.
func settled(s state, in input, out answer) []state {
	if s.phase != running || s.fence != in.fence {
		return only(s, out.why != nil || in.again) // what was settled already is left as it is, without an error
	}
	s.last = in.fence
	switch {
	case s.ending && in.settle != store.VerbCancel:
		return only(s, out.why != nil)
	case s.next != 0 && !in.renewed && !s.ending:
		return only(s, out.why != nil)
	}
	if out.why != nil {
		return nil
	}
	switch in.settle {
	case store.VerbComplete:
		return []state{s.as(completed)}
	case store.VerbFail:
		return []state{s.as(failed)}
	case store.VerbCancel:
		return []state{s.as(cancelled)}
	case store.VerbRelease:
		return []state{s.expired()}
	default:
		return []state{s.current().as(waiting)}
	}
}

// model is the task for porcupine. What the search has seen it finds by a hash: after an outage it sees a hundred thousand sets of states.
func model() porcupine.Model {
	seed := maphash.MakeSeed()
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{phase: absent}} },
		Hash: func(s any) uint64 { return maphash.Comparable(seed, s.(state)) },
		Step: func(s, in, out any) []any {
			var all []any
			for _, next := range step(s.(state), in.(input), out.(answer)) {
				all = append(all, next)
			}
			return all
		},
		DescribeOperation: describe,
	}
	return m.ToModel()
}

// describe is an operation as people read it.
func describe(in, out any) string {
	i, o := in.(input), out.(answer)
	switch i.verb {
	case claim:
		return fmt.Sprintf("claim under %d of definition %d, cancelled %t", i.fence, o.def, o.cancelled)
	case settle:
		return fmt.Sprintf("settle %d as %c, renewed %t -> %s %v", i.fence, i.settle, i.renewed, o.code, o.why)
	case extend:
		return fmt.Sprintf("extend %d -> %s", i.fence, o.code)
	case get:
		return fmt.Sprintf("get -> %s %s, definition %d, paused %t", o.code, o.status, o.def, o.paused)
	default:
		return fmt.Sprintf("%s %d -> %s %s, created %t, loose %t", i.verb, i.def, o.code, o.status, o.created, o.loose)
	}
}

// millis is a time of this machine, which the Redis of a test is on too.
func millis(t time.Time) int64 { return t.UnixMilli() }
