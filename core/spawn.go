package core

import (
	"context"
	"errors"
	"strconv"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/decide"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Each occurrence of a task whose overlap policy lets runs overlap is a task of its own. The recurring
// task only makes them: its handler never runs for it, but for its children.

// spawner runs in place of the handler of such a task. Running it again makes nothing twice: the id of a child follows
// from the occurrence.
var spawner = &handler{call: func(ctx context.Context, runs []*run, outcomes []error) {
	err := runs[0].spawn(ctx)
	if code := CodeOf(err); code == CodeUnavailable || code == CodeStoreFull {
		err = errors.Join(ErrStopping, err) // it is not the task's fault
	}
	outcomes[0] = err
}}

// spawn makes the task of this occurrence, and learns how earlier ones have ended.
func (r *run) spawn(ctx context.Context) error {
	s := r.pull.s
	if err := r.gather(ctx); err != nil {
		return err
	}
	if d := (decide.Decision{Facts: r.facts()}); d.Hopeless(d.Inherited) {
		return &plan.SkippedError{Reason: plan.SkipPaused}
	}
	occurrence := decide.Nominal(r.claimed, &r.state)
	child := r.body
	child.Every, child.FromStart, child.Cron, child.Zone, child.MatchAll, child.GapSkip = 0, false, "", r.body.CronZone(), false, false
	child.Jitter, child.Overlap, child.Misfire, child.PauseAfter, child.MinInterval = 0, "", "", 0, 0
	child.Callback = nil // it is called when the recurring task ends
	child.Expects = nil  // it counts for the recurring task
	child.Parent, child.Occurrence = r.claimed.ID, occurrence
	if child.MaxAttempts == 0 {
		child.MaxAttempts = 1 // the next occurrence is the retry
	}
	// guard: spawn-once
	id := childID(r.claimed.ID, occurrence)
	sub := store.Submission{
		Agent: r.claimed.Agent, ID: id, Kind: r.claimed.Kind, Group: child.Group, Key: child.LimitKey, Level: r.claimed.Level,
		Body: child.Encode(),
	}
	placed, err := base.SubmitBound(ctx, s.base, sub, s.base.Profiles.Of(r.claimed.Profile, s.config.Zone))
	if err != nil {
		return err
	}
	if placed[0].Created && s.base.HasListeners() {
		s.base.Emit(Event{
			Type: model.EventEnqueue, Agent: sub.Agent, ID: id, Kind: sub.Kind, Group: sub.Group, TraceID: child.TraceID, Due: placed[0].Due.Time(),
			SessionID: child.SessionID, Labels: child.AllLabels(),
			Status: StatusWaiting, By: check.ByDuly, Reason: "occurrence of " + r.claimed.ID,
		})
	}
	r.pull.outlook.Settle(r.claimed.Partition, placed[0].Due)
	r.pull.madeMoreDue.Store(true)
	if r.body.OverlapPolicy() == OverlapCancelRunning {
		for _, other := range r.state.Children {
			if _, err := operate.CancelBySelf(ctx, s.Desk, r.claimed.Agent, other, Order{By: check.ByDuly, Reason: "overlap: the next occurrence is due"}); err != nil && CodeOf(err) == CodeUnavailable {
				return err
			}
		}
	}
	r.state.Children = append(r.state.Children, id)
	if n := len(r.state.Children) - record.KeptRuns; n > 0 {
		r.state.Children = r.state.Children[n:]
	}
	return nil
}

// gather adds the runs of children that have ended to the history of their recurring task.
func (r *run) gather(ctx context.Context) error {
	if len(r.state.Children) == 0 {
		return nil
	}
	page, err := r.pull.s.store.Get(ctx, store.Get{Agent: r.claimed.Agent, IDs: r.state.Children})
	if err != nil {
		return err
	}
	r.state.Children = nil
	for i := range page.Tasks {
		t := &page.Tasks[i]
		switch {
		case t.Status == "": // deleted, or forgotten
		case !t.Status.Finished():
			r.state.Children = append(r.state.Children, t.ID)
		default:
			r.inherit(codec.Inform(t))
		}
	}
	return nil
}

// inheritance is the record a recurring task gets of children that have failed: how many, and why the last did.
type inheritance struct {
	failed int
	why    string
}

// inherit adds a child that has ended.
func (r *run) inherit(child TaskInfo) {
	r.state.RunCount++
	run := record.Run{Started: moment.Of(child.LastRun), Duration: child.LastDuration, Attempt: max(child.Attempt, 1), Outcome: string(model.OutcomeSuccess), Error: child.LastError}
	switch child.Status {
	case StatusFailed:
		run.Outcome = string(model.OutcomeFailed)
		r.state.ErrorCount++
		r.state.Failures++
		if r.left == nil {
			r.left = &inheritance{}
		}
		r.left.failed, r.left.why = r.left.failed+1, child.LastError
	case StatusCancelled:
		run.Outcome = string(model.OutcomeCancelled)
	default:
		r.state.Failures = 0
		if w := r.state.Watched; w != nil {
			w.Succeeded = max(w.Succeeded, moment.Of(child.Finished))
		}
	}
	r.state.Runs.Add(run)
}

// childID is the id of the task that runs an occurrence.
func childID(parent string, occurrence moment.Millis) string {
	return parent + "@" + strconv.FormatInt(int64(occurrence), 10)
}
