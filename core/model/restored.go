package model

// The progress of a task when it was exported.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// PauseLine is a pause as it is exported.
type PauseLine struct {
	By     string     `json:"by,omitempty"`
	Note   string     `json:"note,omitempty"`
	Reason string     `json:"reason,omitempty"`
	Until  wire.Stamp `json:"until,omitzero"`
}

// Restored is the progress that a task had made when it was exported.
type Restored struct {
	Due, Nominal moment.Millis // zero if the definition says when
	Interval     time.Duration
	Attempt      int // that of the next run; 0 for the first
	Calls        int
	Failures     int
	Checkpoint   []byte
	Activity     *record.Activity
	Hold         *store.Hold
	Pause        *PauseLine
}

// Planned reports whether it is known when the task is due.
func (r *Restored) Planned() bool { return r != nil && r.Due != 0 }

// Order is who had paused the task when it was exported, and why.
func (p *PauseLine) Order() Order { return Order{By: p.By, Note: p.Note, Reason: p.Reason} }

// Check refuses a task whose definition does not fit its progress.
func (r *Restored) Check(t *NewTask) error {
	switch {
	case t.OnConflict != "":
		return check.Invalid("task.on_conflict", "must be left out: a task that exists stays as it is")
	case r.Activity != nil && (r.Due == 0 || t.Timed() || t.Manual || t.Group != ""):
		return check.Invalid("activity", "needs due_at, and a task without another schedule or a group")
	case r.Due != 0 && t.Delay != 0:
		return check.Invalid("due_at", "excludes a delay")
	}
	return nil
}

// Restored is the progress of the task when it was exported; nil for a new task. Only an import sets it: see [NewTask.Restore].
func (t *NewTask) Restored() *Restored { return t.restored }

// Restore sets the progress of the task when it was exported, so that it continues from there once it is submitted.
func (t *NewTask) Restore(r *Restored) { t.restored = r }
