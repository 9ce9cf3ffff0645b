package record

// The state: what a task knows of its runs, written after each of them.

import (
	"slices"
	"time"
	"unsafe"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// KeptRuns is how many of a task's last runs are kept; a task that has just one run keeps it too.
// A history in each task bounds what a settle writes: about 500 bytes for
// twenty runs of an ordinary task.
const KeptRuns = 20

// Run is one ended run of a task.
type Run struct {
	Started  store.Millis
	Duration time.Duration
	Attempt  int
	Outcome  string // one of outcomes
	Error    string
	Process  string // that ran it; of a run that crashed, the one that took its task over
}

// State is the part of a task that its runs change: written by settle under the run's fence, so no two writers meet.
// It is read with the task by each claim, and written back whole by each settle.
type State struct {
	Attempt    int           // attempts at this occurrence that were charged
	Nominal    store.Millis  // when this occurrence was first due, or would have been without jitter, if it is another time
	Interval   time.Duration // set by NextIn, in place of the task's own
	Failures   int           // failed occurrences in a row
	RunCount   int64
	SkipCount  int64
	ErrorCount int64
	Checkpoint []byte
	Progress   []byte
	Result     []byte
	Runs       []Run // oldest first

	Idle     int          // how often in a row its gate was closed
	CaughtUp int          // missed occurrences that were run, one after the other, since it was last on time
	Spread   bool         // this occurrence was late and has been put off once
	Retire   store.Millis // an activity task that is due at this time has rested for long enough and is finished
	Cooling  store.Millis // an activity task that failed too often cools down until then
	Children []string     // ids of the tasks that its occurrences run as, whose ends are not counted yet

	RetryAfters int // how often in a row its handler returned RetryAfter
	CutOffs     int // how often in a row its run was cut off though it had nearly all the time of a pull

	// The error of one run does not hide the rest of the state.
	bad error // of a run that could not be read
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
	{number: 11, form: formOwn, write: writeRuns, read: readRun},
	{number: 12, form: formInt, at: unsafe.Offsetof(State{}.Idle)},
	{number: 13, form: formInt, at: unsafe.Offsetof(State{}.CaughtUp)},
	{number: 14, form: formFlag, at: unsafe.Offsetof(State{}.Spread)},
	{number: 15, form: formCount, at: unsafe.Offsetof(State{}.Retire)},
	{number: 16, form: formCount, at: unsafe.Offsetof(State{}.Cooling)},
	{number: 17, form: formTexts, at: unsafe.Offsetof(State{}.Children)},
	{number: 18, form: formInt, at: unsafe.Offsetof(State{}.RetryAfters)},
	{number: 19, form: formInt, at: unsafe.Offsetof(State{}.CutOffs)},
})

// outcomes are stored by their place. Entries are only ever added.
// An unknown number, from a newer binary, reads as the first one.
var outcomes = []string{"success", "failed", "cancelled", "snoozed", "yielded", "crashed", "skipped", "released"}

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
	{number: 6, form: formText, at: unsafe.Offsetof(Run{}.Process)}, // where it is another one than that of the run before
})

// nobody is stored for a run of an unknown process after one of a known process.
// A process that repeats is not stored again: nearly all runs of a task have the same one.
const nobody = "?"

// writeRuns writes each run as a record of its own, with the process left out
// where it is that of the run before.
func writeRuns(w *wire, n uint64, at unsafe.Pointer) {
	s := (*State)(at)
	before := ""
	for i := range s.Runs {
		r := s.Runs[i]
		switch r.Process {
		case before:
			r.Process = ""
		case "":
			r.Process = nobody
		}
		before = s.Runs[i].Process
		w.bytes(n, runs.encode(unsafe.Pointer(&r), 24))
	}
}

// readRun reads them back in the same order, which is what fills in the process.
func readRun(at unsafe.Pointer, _ int64, b []byte) {
	s := (*State)(at)
	r := Run{Outcome: outcomes[0]}
	if n := len(s.Runs); n > 0 {
		r.Process = s.Runs[n-1].Process
	}
	if err := runs.decode(b, unsafe.Pointer(&r)); err != nil {
		s.bad = err
	}
	if r.Process == nobody {
		r.Process = ""
	}
	s.Runs = append(s.Runs, r)
}

// Encode is the state as it is stored.
func (s *State) Encode() []byte { return states.encode(unsafe.Pointer(s), 64) }

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
	err := states.decode(data, unsafe.Pointer(&s))
	if err == nil {
		err = s.bad
	}
	s.bad = nil
	return s, err
}

// Carry is what a task keeps of its state when it begins again: its history.
// Attempts, failures and cooling belong to what was, and start from zero.
func (s *State) Carry() State {
	return State{
		RunCount: s.RunCount, SkipCount: s.SkipCount, ErrorCount: s.ErrorCount, Runs: s.Runs, Result: s.Result, Progress: s.Progress,
		Children: s.Children,
	}
}

// Add appends a run, and drops the oldest when there are more than are kept.
func (s *State) Add(r Run) {
	s.Runs = append(s.Runs, r)
	if len(s.Runs) > KeptRuns {
		s.Runs = s.Runs[len(s.Runs)-KeptRuns:]
	}
}
