package base

// The wall: what the quotas of agents refuse, before the store is asked and in the step that stores a task.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// bound reports whether a quota binds the caller of ctx: who may act for all agents is an operator, whom none binds, unless tasks are submitted in the
// name of a run. Only a caller of an agent that has a quota is asked about.
func (s *Base) bound(ctx context.Context, run *model.Origin) bool {
	return run != nil || s.Authorize(ctx, model.Access{Action: model.ActionControl}) != nil
}

// mayBeBound is bound without asking: a caller who is neither authenticated nor a run may do everything.
func mayBeBound(ctx context.Context, s *Base, run *model.Origin) bool {
	return run != nil || s.Config.Authorizer != nil || model.PrincipalOf(ctx) != nil
}

// profileFor is the profile that an agent had last, or if it has to be asked for the one that it has now.
func profileFor(ctx context.Context, s *Base, agent string, ask bool) (*plan.Profile, error) {
	if !ask {
		return s.Profiles.LastOf(agent), nil
	}
	h, err := s.ProfileOf(ctx, agent)
	if err == nil {
		s.Profiles.SetLast(agent, h)
	}
	return h, err
}

// Wall refuses tasks that the quotas of their agents never allow, and marks the others for the store, which refuses those that there is no room for, and
// with ErrChanged those that were checked by another quota than their agent has: then they are checked again with ask, which reads the profiles. run is the
// origin of tasks that a run submits. An agent that has no quota costs nothing.
func Wall(ctx context.Context, s *Base, run *model.Origin, tasks []model.NewTask, subs []store.Submission, ask bool) error {
	if !mayBeBound(ctx, s, run) {
		return nil
	}
	asked := map[string]bool{}
	for i := range subs {
		sub := &subs[i]
		h, err := profileFor(ctx, s, sub.Agent, ask && !asked[sub.Agent])
		if err != nil {
			return err
		}
		asked[sub.Agent], sub.Bound, sub.Mark = true, true, ""
		if h.Bounds() == nil {
			continue
		}
		if !s.bound(ctx, run) {
			unbind(subs)
			return nil
		}
		w := wall{s: s, quota: h.Bounds(), profile: h, task: &tasks[i], sub: sub}
		if len(subs) > 1 {
			w.prefix = fmt.Sprintf("tasks[%d].", i)
		}
		if err := w.check(ctx, run); err != nil {
			return err
		}
		sub.Mark = h.Mark()
	}
	return nil
}

// unbind lets submissions pass, as those of an operator.
func unbind(subs []store.Submission) {
	for i := range subs {
		subs[i].Bound, subs[i].Mark = false, ""
	}
}

// NotTooSoon puts off the next run of a task that is replaced: it comes no sooner after the last one than the quota of its agent allows, so that edits do not
// make up for a short interval. runs are those of the task that is replaced, running says that one is under way.
func NotTooSoon(s *Base, sub *store.Submission, runs *record.History, running bool) {
	q := s.Profiles.LastOf(sub.Agent).Bounds()
	if !sub.Bound || !sub.Recurs || q == nil || q.Interval == 0 {
		return
	}
	last, now := moment.Millis(0), s.StoreNow()
	for _, r := range runs.All() {
		if r.Outcome != string(model.OutcomeSkipped) {
			last = r.Started
		}
	}
	if running {
		last = now
	}
	due := sub.Due.At
	if due == 0 {
		due = now.Add(sub.Due.After)
	}
	// guard: quota-edited
	if earliest := last.Add(q.Interval); last != 0 && due < earliest {
		sub.Due = moment.When{At: earliest}
	}
}

// SubmitBound stores a task that duly makes for an agent, if its quota has room; it has passed the other checks with the task that it follows from. h is the
// profile that the agent had last.
func SubmitBound(ctx context.Context, s *Base, sub store.Submission, h *plan.Profile) (placed []store.Submitted, err error) {
	for try := 1; ; try++ {
		sub.Bound, sub.Mark = true, h.Mark()
		placed, err = s.Store.Submit(ctx, []store.Submission{sub})
		if !errors.Is(err, store.ErrChanged) || try == MostTries {
			return placed, err
		}
		if h, err = s.ProfileOf(ctx, sub.Agent); err != nil {
			return nil, err
		}
	}
}

// WallTouch is Wall for a touch that may make a task.
func WallTouch(ctx context.Context, s *Base, run *model.Origin, t *store.Touch, ask bool) error {
	subs := []store.Submission{{Agent: t.Agent, ID: t.ID, Kind: t.Kind}}
	err := Wall(ctx, s, run, []model.NewTask{{Agent: t.Agent, ID: t.ID, Kind: t.Kind}}, subs, ask)
	t.Bound, t.Mark = subs[0].Bound, subs[0].Mark
	return err
}

// BoundReplay reports whether a replay has to find room in the quota of its agent.
func BoundReplay(ctx context.Context, s *Base) bool {
	return mayBeBound(ctx, s, nil) && s.bound(ctx, nil)
}

// wall is the check of one task by the quota of its agent.
type wall struct {
	s       *Base
	quota   *store.Quota
	profile *plan.Profile
	task    *model.NewTask
	sub     *store.Submission
	prefix  string // of fields, in a call of several tasks
}

// refuse is a refusal of a task as it is.
func (w *wall) refuse(part, field, format string, args ...any) error {
	field = w.prefix + field
	return &store.LimitError{Agent: w.sub.Agent, Quota: part, Field: field, Reason: field + " " + fmt.Sprintf(format, args...)}
}

// check refuses a task that the quota never allows.
func (w *wall) check(ctx context.Context, run *model.Origin) error {
	q := w.quota
	// guard: quota-kinds
	if len(q.Kinds) > 0 && !slices.ContainsFunc(q.Kinds, func(k string) bool { return fits(k, w.sub.Kind) }) {
		return w.refuse("kinds", "kind", "%q is not allowed: submit one of %s", w.sub.Kind, strings.Join(q.Kinds, ", "))
	}
	if err := w.below(run); err != nil {
		return err
	}
	return w.again(ctx)
}

// below refuses a task that is too deep below its root, and gives it the tighter bound of how many there may be.
func (w *wall) below(run *model.Origin) error {
	q := w.quota
	// guard: quota-depth
	if run != nil && q.Depth > 0 && run.Depth > q.Depth {
		return &breaker.Error{Agent: run.Root.Agent, ID: run.Root.ID, Depth: run.Depth, Limit: q.Depth, Quota: true}
	}
	// guard: quota-spawned
	if run != nil && q.Spawned > 0 && (w.sub.Root == nil || q.Spawned < w.sub.Root.Most) {
		w.sub.Root = &breaker.Root{Agent: run.Root.Agent, ID: run.Root.ID, Most: q.Spawned, Quota: true}
	}
	return nil
}

// again refuses a task that may run again too soon, or too late.
func (w *wall) again(ctx context.Context) error {
	q, t := w.quota, w.task
	var least, most time.Duration
	field := "every"
	switch {
	case q.Interval == 0 && q.Horizon == 0:
	case t.Cron != "":
		field = "cron"
		var err error
		if least, most, err = w.s.Crons.Gaps(w.profile.Zoned(codec.CronOf(t), w.s.Config.Zone), w.s.StoreNow()); err != nil {
			return err
		}
		least -= t.Jitter
	case t.Every != 0:
		least, most = t.Every, t.Every
		if t.From == model.FromStart {
			least -= t.Jitter
		}
	}
	// guard: quota-interval
	if most > 0 && least < q.Interval {
		with := ""
		if t.Jitter > 0 {
			with = ", by its jitter"
		}
		return w.refuse("interval", field, "may run again after %s%s, and the least is %s: choose a longer interval", moment.ShortDuration(max(least, 0)), with, moment.ShortDuration(q.Interval))
	}
	return w.near(ctx, field, most)
}

// near refuses a task that is due, or due again, too far ahead.
func (w *wall) near(ctx context.Context, field string, again time.Duration) error {
	far := w.quota.Horizon
	if far == 0 || w.task.Manual {
		return nil
	}
	if again > far {
		return w.refuse("horizon", field, "may run again after %s only, and the most is %s: choose a shorter interval", moment.ShortDuration(again), moment.ShortDuration(far))
	}
	ahead := w.sub.Due.After
	if w.sub.Due.At != 0 {
		now, err := w.s.AskedNow(ctx)
		if err != nil {
			return err
		}
		ahead = w.sub.Due.At.Sub(now)
	}
	switch {
	case !w.task.At.IsZero():
		field = "at"
	case w.task.Delay > 0:
		field = "delay"
	}
	// guard: quota-horizon
	if ahead > far {
		return w.refuse("horizon", field, "is %s ahead, and the most is %s: choose an earlier time", moment.ShortDuration(ahead), moment.ShortDuration(far))
	}
	return nil
}

// fits reports whether a kind is the one that a quota names, or begins as it says.
func fits(pattern, kind string) bool {
	if begin, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(kind, begin)
	}
	return pattern == kind
}

// enrollPage is how many tasks are counted in one step.
const enrollPage = 200

// Enroll has the quota of an agent count the tasks that recur: a store sees only those that are stored from now on. A task that changes meanwhile is counted by
// the step that changes it.
func Enroll(ctx context.Context, s *Base, agent string, bounds *store.Quota, data []byte) error {
	if bounds == nil || bounds.Recurring == 0 {
		return nil
	}
	q := store.List{Agent: agent, Statuses: []store.Status{store.StatusWaiting, store.StatusInProgress}, Limit: enrollPage}
	for {
		page, err := s.Store.List(ctx, q)
		if err != nil {
			return err
		}
		c := store.ProfileChange{Agent: agent, Was: data, Now: data, Recurring: recurring(page.Tasks)}
		if _, err := s.Store.Profile(ctx, []store.ProfileChange{c}); err != nil {
			return err
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}

// recurring are those of some tasks that recur.
func recurring(tasks []store.Stored) (out []store.Stored) {
	for i := range tasks {
		if b, err := codec.DecodeBody(tasks[i].Body); err == nil && b.Recurs() && !b.Manual {
			out = append(out, tasks[i])
		}
	}
	return out
}
