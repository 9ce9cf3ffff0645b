package model

// Orders: who pauses, cancels or changes something, and why; and changes that a rule may refuse.

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Order is who paused or cancelled something, and why.
type Order struct {
	// By is the name of the credential that was used; Note then has what the caller says of itself. For a caller without a credential, such
	// as this process, By is the name that it gives.
	By     string
	Reason string
	Note   string
}

// Encode returns the order as it is stored.
func (h Order) Encode() []byte {
	return (&record.Hold{By: h.By, Reason: h.Reason, Note: h.Note}).Encode()
}

// Who is By, and Note in brackets.
func (h Order) Who() string {
	if h.Note == "" {
		return h.By
	}
	return h.By + " (" + h.Note + ")"
}

// Pause says why tasks are paused, and how long.
type Pause struct {
	Reason string    // for people; at most 1 KiB
	By     string    // who
	Until  time.Time // when they resume automatically; zero, or after the year 2285, for never. To snooze is to pause until a time
	For    time.Duration
	// Ahead pauses an agent or a kind that does not exist yet. A single task cannot be paused before it exists.
	Ahead bool
}

// Transition is a requested change: of a task, or of all tasks of an agent, a kind or a limit key, or of all.
type Transition struct {
	// Type is EventEnqueue, EventReplace, EventActivity, EventPause, EventResume, EventRunNow, EventCancel, EventDelete or
	// EventReplay.
	Type EventType
	// Agent and ID name a task; without ID, Agent, Kind or Key name the tasks that a pause or a resume is about; it is about all if none is set.
	// For a task that is submitted without an id, ID is the generated one.
	Agent, ID, Kind, Key string
	// From and To are the status of the task before and after. From is empty for one that does not exist, To for one that is to
	// be deleted; both are empty for a change of more than one task. A pause changes no status, and a task that runs and is
	// cancelled stays in progress until its run has ended.
	From, To store.Status
	// Order is who asks, and why, as far as the caller says so.
	Order
	// Task is the task that is submitted; nil otherwise. It must not be changed.
	Task *NewTask
}

// VetoError says that a rule of this process has refused a change: see [core.Config].Allow. Nothing was written.
type VetoError struct {
	Transition Transition
	Err        error // of the rule
}

// Error names the change, and has the reason of the rule.
func (e *VetoError) Error() string {
	t := &e.Transition
	what := store.Target{Agent: t.Agent, ID: t.ID, Key: t.Key}
	if t.Agent == "" {
		what.Kind = t.Kind
	}
	from := ""
	if t.From != "" {
		from = fmt.Sprintf(" (%s)", t.From)
	}
	return fmt.Sprintf("%s of %s%s is not allowed: %v", t.Type, what, from, e.Err)
}

// Unwrap is the error of the rule.
func (e *VetoError) Unwrap() error { return e.Err }

// Event is the change as it is reported once it is stored.
func (t *Transition) Event() Event {
	return Event{Type: t.Type, Agent: t.Agent, ID: t.ID, Kind: t.Kind, Key: t.Key, From: t.From, Status: t.To, By: t.By, Reason: t.Reason, Note: t.Note}
}

// unnamed is the By of a caller whose credential has no name.
const unnamed = "a credential without a name"

// OrderOf returns who asks for something, and why. With a credential, By is its name, and the name that the caller gives becomes a note.
func OrderOf(ctx context.Context, given Order) Order {
	who := PrincipalOf(ctx)
	if who == nil {
		return given
	}
	name := cmp.Or(who.Name, unnamed)
	if given.By != name && given.By != "" {
		given.Note = strings.Trim(given.By+"; "+given.Note, "; ")
		given.Note = strings.ToValidUTF8(given.Note[:min(len(given.Note), check.MaxTextLen)], "")
	}
	given.By = name
	return given
}
