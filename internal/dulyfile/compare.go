package dulyfile

// Compare: what differs between the file and a store, in both directions.

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-6f6f2c11/duly/core"
)

// Difference is what differs between the file and a store, a line for each.
type Difference struct {
	Missing []string // the file has it, and the store lacks it or has another
	More    []string // only the store has it, and it is of the file's owner
	Others  []string // only the store has it, and it has no owner: limits and budgets
}

// Compare says what differs between the file and a store. It changes nothing.
func (f *File) Compare(ctx context.Context, s *core.Scheduler) (Difference, error) {
	var d Difference
	profiles := make([]core.Profile, len(f.Agents))
	for i := range f.Agents {
		profiles[i] = f.Agents[i].profile
	}
	var err error
	if d.Missing, d.Others, err = s.Undeclared(ctx, f.Limits, f.Budgets, profiles); err != nil {
		return d, err
	}
	slices.Sort(d.Missing)
	slices.Sort(d.Others)
	_, err = f.ApplyWith(ctx, s, ApplyOptions{DryRun: true, Prune: f.Owner != "", Each: func(c Change) {
		line := fmt.Sprintf("task %q of agent %q", c.ID, c.Agent)
		switch c.Action {
		case ActionCreate:
			d.Missing = append(d.Missing, line+": missing")
		case ActionUpdate:
			d.Missing = append(d.Missing, line+": different")
		case ActionConflict:
			d.Missing = append(d.Missing, fmt.Sprintf("%s: belongs to owner %q", line, c.Owner))
		case ActionDelete:
			d.More = append(d.More, line)
		case ActionUnchanged:
		}
	}})
	return d, err
}
