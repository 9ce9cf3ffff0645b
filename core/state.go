package core

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	OutcomeSuccess   Outcome = "success"
	OutcomeFailed    Outcome = "failed"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeSnoozed   Outcome = "snoozed"
	OutcomeYielded   Outcome = "yielded"
	OutcomeCrashed   Outcome = "crashed" // its lease ran out
	OutcomeSkipped   Outcome = "skipped" // occurrences that were not run: the reason is in Error
	// OutcomeReleased is a run that its process ended before its handler had: at a shutdown, or because the time of its pull
	// was up. It is not charged.
	OutcomeReleased Outcome = "released"
)

// keptRuns is how many of a task's last runs are kept; a task that has just one run keeps it too.
const keptRuns = 20

// TaskRun is one ended run of a task.
type TaskRun struct {
	Started  store.Millis
	Duration time.Duration
	Attempt  int
	Outcome  Outcome
	Error    string
	Process  string // that ran it: Config.Name; of a run that crashed, the one that took its task over
}

// state is the part of a task that its runs change, as it is stored: written by settle under the run's fence, so no
// two writers meet.
type state struct {
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
	Runs       []TaskRun // oldest first

	Idle     int          // how often in a row its gate was closed
	CaughtUp int          // missed occurrences that were run, one after the other, since it was last on time
	Spread   bool         // this occurrence was late and has been put off once
	Retire   store.Millis // an activity task that is due at this time has rested for long enough and is finished
	Cooling  store.Millis // an activity task that failed too often cools down until then
	Children []string     // ids of the tasks that its occurrences run as, whose ends are not counted yet

	RetryAfters int // how often in a row its handler returned RetryAfter
	CutOffs     int // how often in a row its run was cut off though it had nearly all the time of a pull
}

// The fields of a stored state, and of a stored run. Numbers are never used again.
const (
	stateAttempt = iota + 1
	stateNominal
	stateInterval
	stateFailures
	stateRunCount
	stateSkipCount
	stateErrorCount
	stateCheckpoint
	stateProgress
	stateResult
	stateRun
	stateIdle
	stateCaughtUp
	stateSpread
	stateRetire
	stateCooling
	stateChild
	stateRetryAfters
	stateCutOffs
)

const (
	runStarted = iota + 1
	runDuration
	runAttempt
	runOutcome
	runError
	runProcess // where it is another one than that of the run before
)

// The order of the stored outcomes. Entries are only ever added.
var outcomes = []Outcome{OutcomeSuccess, OutcomeFailed, OutcomeCancelled, OutcomeSnoozed, OutcomeYielded, OutcomeCrashed, OutcomeSkipped, OutcomeReleased}

func (s *state) encode() []byte {
	w := make(wire, 0, 64)
	w.int(stateAttempt, int64(s.Attempt))
	w.int(stateNominal, int64(s.Nominal))
	w.int(stateInterval, s.Interval.Milliseconds())
	w.int(stateFailures, int64(s.Failures))
	w.int(stateRunCount, s.RunCount)
	w.int(stateSkipCount, s.SkipCount)
	w.int(stateErrorCount, s.ErrorCount)
	w.bytes(stateCheckpoint, s.Checkpoint)
	w.bytes(stateProgress, s.Progress)
	w.bytes(stateResult, s.Result)
	process := ""
	for i := range s.Runs {
		w.bytes(stateRun, s.Runs[i].encode(process))
		process = s.Runs[i].Process
	}
	w.int(stateIdle, int64(s.Idle))
	w.int(stateCaughtUp, int64(s.CaughtUp))
	if s.Spread {
		w.int(stateSpread, 1)
	}
	w.int(stateRetire, int64(s.Retire))
	w.int(stateCooling, int64(s.Cooling))
	for _, id := range s.Children {
		w.str(stateChild, id)
	}
	w.int(stateRetryAfters, int64(s.RetryAfters))
	w.int(stateCutOffs, int64(s.CutOffs))
	return w
}

func decodeState(data []byte) (state, error) {
	var s state
	var bad error
	process := ""
	err := readWire(data, func(field uint64, v int64, b []byte) {
		switch field {
		case stateAttempt:
			s.Attempt = int(v)
		case stateNominal:
			s.Nominal = store.Millis(v)
		case stateInterval:
			s.Interval = time.Duration(v) * time.Millisecond
		case stateFailures:
			s.Failures = int(v)
		case stateRunCount:
			s.RunCount = v
		case stateSkipCount:
			s.SkipCount = v
		case stateErrorCount:
			s.ErrorCount = v
		case stateCheckpoint:
			s.Checkpoint = b
		case stateProgress:
			s.Progress = b
		case stateResult:
			s.Result = b
		case stateIdle, stateCaughtUp, stateSpread, stateRetire, stateCooling, stateChild, stateRetryAfters, stateCutOffs:
			s.between(field, v, b)
		case stateRun:
			r, err := decodeRun(b, process)
			process = r.Process
			if err != nil {
				bad = err
			}
			s.Runs = append(s.Runs, r)
		}
	})
	if err == nil {
		err = bad
	}
	return s, err
}

// between reads what is kept from one occurrence to the next.
func (s *state) between(field uint64, v int64, b []byte) {
	switch field {
	case stateIdle:
		s.Idle = int(v)
	case stateCaughtUp:
		s.CaughtUp = int(v)
	case stateSpread:
		s.Spread = true
	case stateRetire:
		s.Retire = store.Millis(v)
	case stateCooling:
		s.Cooling = store.Millis(v)
	case stateChild:
		s.Children = append(s.Children, string(b))
	case stateRetryAfters:
		s.RetryAfters = int(v)
	case stateCutOffs:
		s.CutOffs = int(v)
	}
}

// carry is what a task keeps of its state when it begins anew: its history.
func (s *state) carry() state {
	return state{
		RunCount: s.RunCount, SkipCount: s.SkipCount, ErrorCount: s.ErrorCount, Runs: s.Runs, Result: s.Result, Progress: s.Progress,
		Children: s.Children,
	}
}

// first is a state as a task is stored with it; nil if there is nothing in it.
func (s *state) first() []byte {
	if data := s.encode(); len(data) > 0 {
		return data
	}
	return nil
}

// nobody is stored for a run of an unknown process after one of a known process.
const nobody = "?"

func (r *TaskRun) encode(before string) []byte {
	w := make(wire, 0, 24)
	w.int(runStarted, int64(r.Started))
	w.int(runDuration, r.Duration.Milliseconds())
	w.int(runAttempt, int64(r.Attempt))
	for i, o := range outcomes {
		if o == r.Outcome {
			w.int(runOutcome, int64(i))
		}
	}
	w.str(runError, r.Error)
	switch r.Process {
	case before:
	case "":
		w.str(runProcess, nobody)
	default:
		w.str(runProcess, r.Process)
	}
	return w
}

// decodeRun decodes a run that comes after one of a process.
func decodeRun(data []byte, process string) (TaskRun, error) {
	r := TaskRun{Outcome: outcomes[0], Process: process}
	err := readWire(data, func(field uint64, v int64, b []byte) {
		switch field {
		case runStarted:
			r.Started = store.Millis(v)
		case runDuration:
			r.Duration = time.Duration(v) * time.Millisecond
		case runAttempt:
			r.Attempt = int(v)
		case runOutcome:
			if v > 0 && int(v) < len(outcomes) {
				r.Outcome = outcomes[v]
			}
		case runError:
			r.Error = string(b)
		case runProcess:
			if r.Process = string(b); r.Process == nobody {
				r.Process = ""
			}
		}
	})
	return r, err
}

// add appends a run, and drops the oldest when there are more than are kept.
func (s *state) add(r TaskRun) {
	s.Runs = append(s.Runs, r)
	if len(s.Runs) > keptRuns {
		s.Runs = s.Runs[len(s.Runs)-keptRuns:]
	}
}

// record is what is kept of a finished task.
type record struct {
	Kind      string
	Level     Level
	Submitted store.Millis
	Due       store.Millis
	Reason    string // why it failed or was cancelled, if not by its handler's error
	Group     string
	Body      []byte // kept when it failed, so that it can be replayed
	State     []byte
}

// The fields of a stored record. Numbers are never used again. A record of a task that needed one good run, the
// common case, holds that run in place of a state.
const (
	recordKind = iota + 1
	recordLevel
	recordSubmitted
	recordDue
	recordReason
	recordGroup
	recordBody
	recordState
)

func (r *record) encode() []byte {
	w := make(wire, 0, 64+len(r.Body)+len(r.State))
	w.str(recordKind, r.Kind)
	if r.Level != LevelLow {
		w.int(recordLevel, int64(r.Level))
	}
	w.int(recordSubmitted, int64(r.Submitted))
	w.int(recordDue, int64(r.Due-r.Submitted))
	w.str(recordReason, r.Reason)
	w.str(recordGroup, r.Group)
	w.bytes(recordBody, r.Body)
	w.bytes(recordState, r.State)
	return w
}

func decodeRecord(data []byte) (record, error) {
	r := record{Level: LevelLow}
	var wait store.Millis
	err := readWire(data, func(field uint64, v int64, b []byte) {
		switch field {
		case recordKind:
			r.Kind = string(b)
		case recordLevel:
			r.Level = Level(v)
		case recordSubmitted:
			r.Submitted = store.Millis(v)
		case recordDue:
			wait = store.Millis(v)
		case recordReason:
			r.Reason = string(b)
		case recordGroup:
			r.Group = string(b)
		case recordBody:
			r.Body = b
		case recordState:
			r.State = b
		}
	})
	r.Due = r.Submitted + wait
	return r, err
}
