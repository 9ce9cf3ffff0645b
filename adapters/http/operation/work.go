package operation

// What workers send and get.

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

type (
	// Claim asks for runs.
	Claim struct {
		Kinds  []string `json:"kinds"     must:"must be a list of kinds that the worker runs"`
		Agents []string `json:"agent_ids,omitzero" must:"must be a list of strings"`
		Most   int      `json:"most,omitzero"`
		Lease  Duration `json:"lease,omitzero"`
		Wait   string   `json:"wait,omitempty"`
		Worker string   `json:"worker,omitempty"`
	}
	// Lent are runs that a worker is to make, each as a program gets it, with its ticket.
	Lent struct {
		Runs []json.RawMessage `json:"runs"`
		Next *time.Time        `json:"next_due_at"` // when something is due next, as far as is known; null for never
	}
	// Keep are signs of life, each a KeepRun.
	Keep struct {
		Runs []json.RawMessage `json:"runs" must:"must be a list of runs, each with its ticket"`
	}
	// KeepRun is the sign of life of a run, with what it has to store.
	KeepRun struct {
		Ticket     string          `json:"ticket"`
		Progress   json.RawMessage `json:"progress"`
		Checkpoint json.RawMessage `json:"checkpoint"`
		Usage      core.Usage      `json:"usage"  must:"must be an object of numbers"`
		Number     int64           `json:"number,omitzero" must:"must be a whole number from 1 on"`
		Output     *Printed        `json:"output,omitempty" must:"must be an object of at, which is a number of bytes, and text"`
	}
	// Printed is a piece of what a run prints.
	Printed = core.SentOutput
	// Kept are the answers, in the order of the runs.
	Kept struct {
		Runs []KeptRun `json:"runs"`
	}
	// KeptRun is what becomes of a run.
	KeptRun struct {
		Kept   bool   `json:"kept"`             // false: the run is lost, and must not go on
		End    Ending `json:"end,omitempty"`    // why it is to end, although it is kept
		Reason string `json:"reason,omitempty"` // of a cancel
		Error  string `json:"error,omitempty"`  // why nothing was stored; what is wrong, or that the store did not answer
		// Printed is how many bytes of the output need not be sent again; left out if none was stored.
		Printed int64 `json:"printed,omitempty"`
	}
	// Return are ends of runs, and what is asked for next.
	Return struct {
		Runs  []json.RawMessage `json:"runs"  must:"must be a list of runs, each with its ticket and its outcome"`
		Claim json.RawMessage   `json:"claim"`
	}
	// Returned are the answers, in the order of the runs, and what was claimed.
	Returned struct {
		Runs    []ReturnedRun `json:"runs"`
		Claimed *Lent         `json:"claimed,omitempty"`
	}
	// ReturnedRun is what became of a run.
	ReturnedRun struct {
		Ended EndedAs    `json:"ended"`
		Next  *time.Time `json:"next_due_at,omitempty"` // when its task is due again
		Error string     `json:"error,omitempty"`       // what is wrong with what was sent, or why nothing is known
	}
)

// Workers is what workers call, over HTTP or by messages. The context has the caller, which needs [ScopeWork].
//
// What was claimed comes with a function that gives it back, to be called if it cannot be sent; nil if there is nothing to give back.
type Workers interface {
	Claim(ctx context.Context, q *Claim) (lent *Lent, unsent func(), err error)
	Keep(ctx context.Context, q Keep) (Kept, error)
	Return(ctx context.Context, q *Return) (returned *Returned, unsent func(), err error)
}

// Ending is why a run is to end.
type Ending string

// The reasons.
const (
	EndCancelled Ending = "cancelled"
	EndBudget    Ending = "budget"
	EndTimeout   Ending = "timeout"
)

// EndedAs is what became of a run.
type EndedAs string

// What becomes of runs.
const (
	EndedCompleted EndedAs = "completed" // the task is completed
	EndedFailed    EndedAs = "failed"    // the task is dead
	EndedCancelled EndedAs = "cancelled" // the task was cancelled
	EndedWaiting   EndedAs = "waiting"   // the task is due again, or waits for a signal
	EndedReleased  EndedAs = "released"  // it was given back, uncharged
	EndedLost      EndedAs = "lost"      // another worker has the task, or may have it
	EndedRefused   EndedAs = "refused"   // what was sent makes no sense: the run is still the worker's
	EndedUnknown   EndedAs = "unknown"   // the store did not answer: send it again
)
