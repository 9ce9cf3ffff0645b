package model

// Processes: what they report about themselves, what they run, and their slots.

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Process is what a process has reported about itself.
type Process struct {
	Name  string   `json:"name"`  // Config.Name
	Kinds []string `json:"kinds"` // that it handles
	// Slots are its slots, and InUse how many of them were in use. A worker outside has none here: what it has room for it asks for.
	Slots int `json:"slots"`
	InUse int `json:"in_use"`
	// Urgent are those of the slots that are kept for tasks of level 1; Usual the runs of other levels.
	Urgent    int                 `json:"urgent"`
	Usual     int                 `json:"usual"`
	Abandoned int                 `json:"abandoned"` // handlers that ignore their cancelled context
	Full      []string            `json:"full"`      // kinds whose own slots were all in use
	Left      map[string]LeftKind `json:"left"`      // kinds that its last pulls had no time for
	Running   []RunningTask       `json:"running"`   // the oldest ten of its runs
	At        time.Time           `json:"-"`         // when it reported this
}

// LeftKind is a kind whose tasks a pull did not start, as its runs usually take longer than the time that was left.
type LeftKind struct {
	Usual time.Duration `json:"usual"` // nine in ten of its last runs took no longer
	Had   time.Duration `json:"had"`   // the whole time of the pull
	At    time.Time     `json:"-"`
}

// The times of these are milliseconds in JSON, as processes of earlier versions write and read them.

type (
	plainProcess  Process
	plainLeftKind LeftKind

	processJSON struct {
		*plainProcess

		At moment.Millis `json:"at"`
	}
	leftKindJSON struct {
		*plainLeftKind

		At moment.Millis `json:"at"`
	}
)

// MarshalJSON writes what a process reports about itself.
func (p Process) MarshalJSON() ([]byte, error) {
	return json.Marshal(processJSON{(*plainProcess)(&p), moment.Of(p.At)})
}

// UnmarshalJSON reads it.
func (p *Process) UnmarshalJSON(data []byte) error {
	in := processJSON{plainProcess: (*plainProcess)(p)}
	err := json.Unmarshal(data, &in)
	p.At = in.At.Time()
	return err
}

// MarshalJSON writes a kind that was left.
func (l LeftKind) MarshalJSON() ([]byte, error) {
	return json.Marshal(leftKindJSON{(*plainLeftKind)(&l), moment.Of(l.At)})
}

// UnmarshalJSON reads it.
func (l *LeftKind) UnmarshalJSON(data []byte) error {
	in := leftKindJSON{plainLeftKind: (*plainLeftKind)(l)}
	err := json.Unmarshal(data, &in)
	l.At = in.At.Time()
	return err
}

// Handles reports whether the process runs tasks of a kind.
func (p *Process) Handles(kind string) bool { return slices.Contains(p.Kinds, kind) }

// Busy reports whether the process has no slot for a task of a kind and level.
func (p *Process) Busy(kind string, level store.Level) bool {
	return p.Slots > 0 && (slices.Contains(p.Full, kind) || p.InUse >= p.Slots || level != store.LevelHigh && p.Usual >= p.Slots-p.Urgent)
}

// RunningTask is a run that a process had when it reported.
type RunningTask struct {
	Agent string    `json:"agent_id"`
	ID    string    `json:"id"`
	Kind  string    `json:"kind"`
	Since time.Time `json:"-"` // by the clock of its process
}

type (
	plainRunningTask RunningTask

	runningTaskJSON struct {
		*plainRunningTask

		Since moment.Millis `json:"since"`
	}
)

// MarshalJSON writes a run, with milliseconds as Process has them.
func (r RunningTask) MarshalJSON() ([]byte, error) {
	return json.Marshal(runningTaskJSON{(*plainRunningTask)(&r), moment.Of(r.Since)})
}

// UnmarshalJSON reads it.
func (r *RunningTask) UnmarshalJSON(data []byte) error {
	in := runningTaskJSON{plainRunningTask: (*plainRunningTask)(r)}
	err := json.Unmarshal(data, &in)
	r.Since = in.Since.Time()
	return err
}

// SlotStats say how the slots of a process are used.
type SlotStats struct {
	Total        int // Config.Concurrency
	InUse        int // runs in flight
	Urgent       int // of Total: kept for tasks of level 1
	Usual        int // of InUse: runs of tasks that are not of level 1
	OfOneAgent   int // of InUse: the runs of the agent that has the most
	Suspects     int // of InUse: runs of tasks whose last run died with its process
	Abandoned    int // handlers that ignore their cancelled context: they hold no slot
	MaxAbandoned int // with this many of them the process claims nothing
	// Kinds are the kinds that have a bound of their own.
	Kinds map[string]KindSlots
}

// KindSlots say how the slots of a kind are used.
type KindSlots struct{ Total, InUse int }
