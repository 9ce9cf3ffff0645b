package record

// The state: what a task knows of its runs, written after each of them.

import (
	"slices"
	"time"
	"unsafe"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// KeptRuns is how many of a task's last runs are kept; a task that has just one run keeps it too.
// A history in each task bounds what a settle writes: about 500 bytes for
// twenty runs of an ordinary task.
const KeptRuns = 20

// Run is one ended run of a task.
type Run struct {
	Started  moment.Millis
	Duration time.Duration
	Attempt  int
	Outcome  string // one of outcomes
	Error    string
	Used     string // what it has used: unit=amount, in millionths, with a blank between them
	Process  string // that ran it; for a run that crashed, the one that took over its task
}

// State is the part of a task that its runs change: written by settle under the run's fence, so no two writers meet.
// It is read with the task by each claim, and written back whole by each settle.
type State struct {
	Attempt    int           // attempts at this occurrence that were charged
	Nominal    moment.Millis // when this occurrence was first due, or would have been without jitter, if it is another time
	Interval   time.Duration // set by NextIn, in place of the task's own
	Failures   int           // failed occurrences in a row
	RunCount   int64
	SkipCount  int64
	ErrorCount int64
	Checkpoint []byte
	Progress   []byte
	Result     []byte
	Runs       History

	Idle     int           // how often in a row its gate was closed
	CaughtUp int           // missed occurrences that were run, one after the other, since it was last on time
	Spread   bool          // this occurrence was late and has been put off once
	Hand     bool          // it was run by hand in spite of quiet hours
	Retire   moment.Millis // an activity task that is due at this time has rested for long enough and is finished
	Cooling  moment.Millis // an activity task that failed too often cools down until then
	Children []string      // ids of the tasks that its occurrences run as, whose ends are not counted yet

	RetryAfters int // how often in a row its handler returned RetryAfter
	CutOffs     int // how often in a row its run was cut off though it had nearly all the time of a pull

	GateTag string // the tag that its gate gets when it is asked next

	Await *Await // the signal that it waits for; nil for none

	Calls int // how many calls of its handler were answered, so that the next one is no repeat of them

	PutOff *PutOff // what quiet hours have done to its due time; nil for nothing

	Watched *Watched // of a task that is to succeed within a time, once a run of it has ended; nil for all others
}

var states = tableOf(rows{
	{number: 1, form: formInt, at: unsafe.Offsetof(State{}.Attempt)},
	{number: 2, form: formCount, at: unsafe.Offsetof(State{}.Nominal)},
	{number: 3, form: formSpan, at: unsafe.Offsetof(State{}.Interval)},
	{number: 4, form: formInt, at: unsafe.Offsetof(State{}.Failures)},
	{number: 5, form: formCount, at: unsafe.Offsetof(State{}.RunCount)},
	{number: 6, form: formCount, at: unsafe.Offsetof(State{}.SkipCount)},
	{number: 7, form: formCount, at: unsafe.Offsetof(State{}.ErrorCount)},
	{number: 8, form: formRaw, at: unsafe.Offsetof(State{}.Checkpoint)},
	{number: 9, form: formRaw, at: unsafe.Offsetof(State{}.Progress)},
	{number: 10, form: formRaw, at: unsafe.Offsetof(State{}.Result)},
	{number: 11, form: formRuns, at: unsafe.Offsetof(State{}.Runs)},
	{number: 12, form: formInt, at: unsafe.Offsetof(State{}.Idle)},
	{number: 13, form: formInt, at: unsafe.Offsetof(State{}.CaughtUp)},
	{number: 14, form: formFlag, at: unsafe.Offsetof(State{}.Spread)},
	{number: 15, form: formCount, at: unsafe.Offsetof(State{}.Retire)},
	{number: 16, form: formCount, at: unsafe.Offsetof(State{}.Cooling)},
	{number: 17, form: formTexts, at: unsafe.Offsetof(State{}.Children)},
	{number: 18, form: formInt, at: unsafe.Offsetof(State{}.RetryAfters)},
	{number: 19, form: formInt, at: unsafe.Offsetof(State{}.CutOffs)},
	{number: 20, form: formText, at: unsafe.Offsetof(State{}.GateTag)},
	putOff(21, func(p *PutOff) *moment.Millis { return &p.From }),
	putOff(22, func(p *PutOff) *moment.Millis { return &p.To }),
	{number: 23, form: formFlag, at: unsafe.Offsetof(State{}.Hand)},
	awaited(24, func(a *Await) any { return &a.Key }),
	awaited(25, func(a *Await) any { return &a.Until }),
	awaited(26, func(a *Await) any { return &a.Then }),
	awaited(27, func(a *Await) any { return (*moment.Millis)(&a.Fence) }),
	awaited(28, func(a *Await) any { return &a.From }),
	{number: 29, form: formInt, at: unsafe.Offsetof(State{}.Calls)},
	// 30 is the store's: in front of all rows it says when the task has changed (core/redisstore/scripts/layout.lua).
	awaited(31, func(a *Await) any { return &a.Question }),
	awaited(32, func(a *Await) any { return &a.Answer }),
	{
		number: 33, form: formOwn, at: unsafe.Offsetof(State{}.Watched),
		write: func(w *wire, n uint64, at unsafe.Pointer) {
			if t := *(**Watched)(at); t != nil {
				w.int(n, int64(t.Succeeded)<<1|armed(t))
			}
		},
		read: func(at unsafe.Pointer, v int64, _ []byte) {
			*(**Watched)(at) = &Watched{Succeeded: moment.Millis(v >> 1), Armed: v&1 == 1}
		},
	},
})

// Watched is when a task has last succeeded that is to succeed within a time; zero for never.
type Watched struct {
	Succeeded moment.Millis
	Armed     bool // it is known to have a watch
}

// armed is 1 if the task is known to have a watch.
func armed(w *Watched) int64 {
	if w.Armed {
		return 1
	}
	return 0
}

// Await is a signal that a task waits for, until when, and what happens to it then. Few tasks have one.
type Await struct {
	Key   string
	Until moment.Millis // zero for ever
	Then  string        // empty to run it
	Fence store.Fence   // of the run that has asked
	From  string        // whose signals count; empty for any sender

	Question, Answer string // what is asked, and the JSON Schema of what is wanted
}

// awaited is a row of it: a text, or a time.
func awaited(n uint64, of func(a *Await) any) field {
	return field{
		number: n, form: formOwn, at: unsafe.Offsetof(State{}.Await),
		write: func(w *wire, n uint64, at unsafe.Pointer) {
			a := *(**Await)(at)
			if a == nil {
				return
			}
			switch v := of(a).(type) {
			case *string:
				w.str(n, *v)
			case *moment.Millis:
				w.int(n, int64(*v))
			}
		},
		read: func(at unsafe.Pointer, v int64, data []byte) {
			a := (**Await)(at)
			if *a == nil {
				*a = &Await{}
			}
			switch to := of(*a).(type) {
			case *string:
				*to = string(data)
			case *moment.Millis:
				*to = moment.Millis(v)
			}
		},
	}
}

// PutOff is a due time that quiet hours have put off, and when it is instead: it applies while the task is due then. Few tasks have one, and
// a run is as large as its state.
type PutOff struct{ From, To moment.Millis }

// putOff is a row of it.
func putOff(n uint64, of func(p *PutOff) *moment.Millis) field {
	return field{
		number: n, form: formOwn, at: unsafe.Offsetof(State{}.PutOff),
		write: func(w *wire, n uint64, at unsafe.Pointer) {
			if p := *(**PutOff)(at); p != nil {
				w.int(n, int64(*of(p)))
			}
		},
		read: func(at unsafe.Pointer, v int64, _ []byte) {
			p := (**PutOff)(at)
			if *p == nil {
				*p = &PutOff{}
			}
			*of(*p) = moment.Millis(v)
		},
	}
}

// outcomes are stored by their index. Entries are only ever added.
// An unknown number, from a newer binary, reads as the first one.
var outcomes = []string{"success", "failed", "cancelled", "snoozed", "yielded", "crashed", "skipped", "released", "awaiting"}

var runs = tableOf(rows{
	{number: 1, form: formCount, at: unsafe.Offsetof(Run{}.Started)},
	{number: 2, form: formSpan, at: unsafe.Offsetof(Run{}.Duration)},
	{number: 3, form: formInt, at: unsafe.Offsetof(Run{}.Attempt)},
	{
		number: 4, form: formOwn, at: unsafe.Offsetof(Run{}.Outcome),
		write: func(w *wire, n uint64, at unsafe.Pointer) {
			w.int(n, int64(max(slices.Index(outcomes, *(*string)(at)), 0)))
		},
		read: func(at unsafe.Pointer, v int64, _ []byte) {
			if v > 0 && int(v) < len(outcomes) {
				*(*string)(at) = outcomes[v]
			}
		},
	},
	{number: 5, form: formText, at: unsafe.Offsetof(Run{}.Error)},
	{number: 7, form: formText, at: unsafe.Offsetof(Run{}.Used)},
	{number: processField, form: formText, at: unsafe.Offsetof(Run{}.Process)}, // if it differs from that of the run before
})

// Encode is the state as it is stored.
func (s *State) Encode() []byte {
	room := 24 + len(s.Checkpoint) + len(s.Progress) + len(s.Result) + len(s.GateTag) + len(s.Runs.stored)
	for i := range s.Runs.added {
		room += 24 + len(s.Runs.added[i].Error)
	}
	if len(s.Runs.added) > 0 {
		room += len(s.Runs.added[0].Process)
	}
	return states.encode(unsafe.Pointer(s), room)
}

// First is a state as a task is stored with it; nil if there is nothing in it.
// Nil makes the store write no state at all.
func (s *State) First() []byte {
	if data := s.Encode(); len(data) > 0 {
		return data
	}
	return nil
}

// DecodeState reads a state, which aliases data. With an error it has what was read before.
func DecodeState(data []byte) (State, error) {
	var s State
	err := s.Decode(data)
	return s, err
}

// Decode is DecodeState into s, which has to be zero.
func (s *State) Decode(data []byte) error {
	err := states.decode(data, unsafe.Pointer(s))
	if err == nil {
		err = s.Runs.bad
	}
	return err
}

// Carry is what a task keeps of its state when it begins again: its history, its last result and progress, its children, how often it was called and when it has
// last succeeded.
// Attempts, failures and cooling start from zero.
func (s *State) Carry() State {
	return State{
		// guard: result-kept
		RunCount: s.RunCount, SkipCount: s.SkipCount, ErrorCount: s.ErrorCount, Runs: s.Runs, Result: s.Result, Progress: s.Progress,
		Children: s.Children, Calls: s.Calls, Watched: s.Watched,
	}
}
