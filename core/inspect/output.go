package inspect

// The output of runs: what exec's programs and Go handlers have printed.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// Output is the end of what the last run of a task has printed that printed anything: of at most [output.Most] bytes. It lives as long as the record
// of the finished task.
type Output struct {
	Agent  string       `json:"agent_id"`
	ID     string       `json:"id"`
	Status store.Status `json:"status"` // of the task, as it is now
	Printed
	Before *Printed `json:"before"` // of the run before; nil if that is not known, or only what follows was asked for
}

// Printed is what a run has printed.
type Printed struct {
	Run     store.Fence `json:"run"` // names the run; zero if nothing is kept
	Attempt int         `json:"attempt"`
	Started time.Time   `json:"started_at,omitzero"`
	Text    string      `json:"text"`     // valid UTF-8; a line of duly says how many bytes were left out where
	Left    int64       `json:"left_out"` // bytes
	End     int64       `json:"end"`      // how many bytes the run has printed so far: what After continues from
	Ended   bool        `json:"complete"` // the run has ended, and nothing is missing at the end
}

// OutputFrom asks for what follows an answer that was read before, if that was of the same run. The zero value asks for all that is kept.
type OutputFrom struct {
	Run   store.Fence
	After int64
}

// outputs reads the output of runs.
type outputs struct{ of *base.Base }

// Output returns what the last run of a task has printed. It fails with ErrNotFound if there is no such task. A run prints up to a second before that
// is stored.
func (s outputs) Output(ctx context.Context, agent, id string, from OutputFrom) (Output, error) {
	if from.After < 0 {
		return Output{}, check.Invalid("after", "must not be negative, not %d", from.After)
	}
	t, err := s.of.Stored(ctx, agent, id)
	if err != nil {
		return Output{}, err
	}
	out := Output{Agent: agent, ID: id, Status: t.Status}
	if s.of.Config.Outputs == nil {
		return out, nil
	}
	runs, err := s.of.Config.Outputs.Printed(ctx, agent, id)
	if err != nil || len(runs) == 0 {
		return out, err
	}
	if from.Run == runs[0].Fence {
		out.Printed = printed(&runs[0], from.After)
		return out, nil
	}
	out.Printed = printed(&runs[0], 0)
	if len(runs) > 1 {
		before := printed(&runs[1], 0)
		out.Before = &before
	}
	return out, nil
}

// printed is the output of a run from a byte on.
func printed(r *output.Run, after int64) Printed {
	text := r.Text(after)
	return Printed{
		Run: r.Fence, Attempt: r.Attempt, Started: r.Claimed.Time(), Text: text.Text, Left: text.Left, End: text.End, Ended: text.Last,
	}
}
