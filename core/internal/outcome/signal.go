package outcome

// The signal that a task waits for.

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Signal is what a task waits for; see [Await].
type Signal struct {
	// Key names it among the signals of the task's agent. All tasks that wait for a key get the same signal.
	Key string
	// Timeout is how long the task waits; for ever if zero.
	Timeout time.Duration
	// OnTimeout says what happens to a task that has got no signal by then: TimeoutRun if empty.
	OnTimeout OnTimeout
	// From says whose signals count: those of any caller that may send one if empty, or [FromApproval].
	From string
	// Question is what is asked, for the person who answers; at most 1,000 bytes.
	Question string
	// Answer is the JSON Schema of the payload that is wanted, an object with simple fields, for forms; at most 4 KiB. Payloads are not checked by it.
	Answer json.RawMessage
}

// Bounds of the texts of a signal, in bytes.
const (
	mostQuestion = 1000
	mostAnswer   = 4 << 10
)

// FromApproval is the From of a task that waits for an approval: by the page of its question, or a credential with the right
// [model.ActionApprove]. Other signals, those of runs among them, are refused.
const FromApproval = "approval"

// OnTimeout says what happens to a task that has waited for too long.
type OnTimeout string

// What it does.
const (
	TimeoutRun    OnTimeout = "run"    // it runs, and [core.RunInfo.Heard] says that no signal came
	TimeoutFail   OnTimeout = "fail"   // its run fails for good without being started, with [core.ErrNoSignal]
	TimeoutCancel OnTimeout = "cancel" // it is cancelled without being started
)

// mostAwait is how long a task may wait for its signal.
const mostAwait = 10 * 365 * 24 * time.Hour

// Await saves a checkpoint and makes the same occurrence wait until a signal is sent ([core.Scheduler.Signal]), uncharged: with no slot, no
// lease, and no polling. The next run finds the checkpoint with [core.Task.Checkpoint], and the signal with
// [core.RunInfo.Heard]. Both are kept while the run is repeated, until it succeeds, fails for good, yields or waits again. A
// signal that came before is not missed: see [core.SignalKept].
func Await(signal Signal, checkpoint any) error {
	data, err := EncodeCheckpoint("await", checkpoint)
	if err != nil {
		return err
	}
	if err := signal.check(); err != nil {
		return Cancel(fmt.Errorf("await: %w", err))
	}
	return &AwaitError{Signal: signal, Checkpoint: data}
}

// check refuses an invalid signal.
func (n *Signal) check() error {
	if err := check.ValidID("key", n.Key); err != nil {
		return err
	}
	switch {
	case n.Timeout < 0 || n.Timeout > mostAwait:
		return check.Invalid("timeout", "must be between 0 and %s, not %s", moment.ShortDuration(mostAwait), n.Timeout)
	case n.OnTimeout != "" && n.OnTimeout != TimeoutRun && n.OnTimeout != TimeoutFail && n.OnTimeout != TimeoutCancel:
		return check.Invalid("on_timeout", "must be run, fail or cancel, not %q", check.Clip(string(n.OnTimeout)))
	case n.From != "" && n.From != FromApproval:
		return check.Invalid("from", "must be %s, or left out, not %q", FromApproval, check.Clip(n.From))
	case len(n.Question) > mostQuestion || !utf8.ValidString(n.Question):
		return check.Invalid("question", "must be at most %d bytes of UTF-8", mostQuestion)
	case len(n.Answer) > mostAnswer || len(n.Answer) > 0 && !isForm(n.Answer):
		return check.Invalid("answer", "must be a JSON Schema of an object with properties, of at most %d bytes", mostAnswer)
	default:
		return nil
	}
}

// isForm reports whether a schema is of an object with fields.
func isForm(data []byte) bool {
	var schema struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return json.Unmarshal(data, &schema) == nil && schema.Type == "object" && len(schema.Properties) > 0
}

// AwaitError is what Await returns.
type AwaitError struct {
	Signal     Signal
	Checkpoint []byte
}

func (e *AwaitError) Error() string { return "waits for the signal " + e.Signal.Key }
