package replan

// What the profile of an agent does to tasks that wait already.

import (
	"cmp"
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/decide"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/spread"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// replanPage is how many tasks are planned again in one step, and replanAfter how long a plan may take until other processes consider it abandoned.
const (
	replanPage  = 200
	replanAfter = 10 * time.Second
)

// planned is how a profile, which may be nil, changes a waiting task; false if it does not.
func planned(on *base.Base, t *store.Stored, h *plan.Profile, now moment.Millis) (store.Replan, bool) {
	b, err1 := codec.DecodeBody(t.Body)
	st, err2 := record.DecodeState(t.State)
	claimed := store.Claimed{Due: t.Due}
	// A task that cannot be read is reported when it is claimed; one that was run by hand keeps its time; one that rests waits for no time.
	if err1 != nil || err2 != nil || b.Manual || st.Hand || decide.ByHand(&claimed, &st) || t.Resting {
		return store.Replan{}, false
	}
	nominal, was := st.Nominal, cmp.Or(st.PutOff, &record.PutOff{})
	own := plan.BaseOf(&st, t.Due)
	st.PutOff = nil
	first := st.Attempt == 0 && st.Checkpoint == nil && st.RetryAfters == 0
	if b.Cron != "" && b.Zone == model.ZoneOfAgent && first && own > now && own == st.Nominal.Add(spread.Jitter(b.Jitter, t.Agent, t.ID, st.Nominal)) {
		if next, err := on.Crons.Next(h.Zoned(b.Spec(), on.Config.Zone), now); err == nil && next != 0 {
			st.Nominal = next
			own = next.Add(spread.Jitter(b.Jitter, t.Agent, t.ID, next))
		}
	}
	r := store.Replan{Agent: t.Agent, ID: t.ID, Version: t.Version, Was: t.Due, Due: own}
	from := max(own, now) // an overdue task does not start in quiet hours either
	if until := h.Until(from, t.Level, b.Urgent); until != from {
		plan.PutOff(&st, &b, own, until)
		r.Due = until
	}
	if r.Due == t.Due && nominal == st.Nominal && *was == *cmp.Or(st.PutOff, &record.PutOff{}) {
		return r, false
	}
	if r.Due != t.Due {
		r.Due = max(r.Due, now) // no task gets ahead of others by a time that is past
	}
	r.State = st.First()
	return r, true
}

// Agent plans the waiting tasks of an agent by its profile and counts those that recur for its quota, and then marks the profile as done. If the profile has changed by then,
// planning begins again: the last plan counts.
func Agent(ctx context.Context, b *base.Base, agent string, data []byte) error {
	for {
		h := b.Profiles.Of(data, b.Config.Zone)
		if err := base.Enroll(ctx, b, agent, h.Bounds(), data); err != nil {
			return err
		}
		if err := all(ctx, b, agent, h); err != nil {
			return err
		}
		var done *record.Profile
		if h != nil && !h.Stored.Deleted {
			next := h.Stored
			next.Replanning, done = 0, &next
		}
		// guard: bounds-settled
		effects, err := b.Store.Profile(ctx, []store.ProfileChange{b.ProfileChange(agent, data, done)})
		if err != nil || effects[0].Code == store.EffectDone {
			return err
		}
		if data, err = b.Store.ProfileOf(ctx, agent); err != nil {
			return err
		}
	}
}

// all plans all waiting tasks of an agent by a profile, page by page.
func all(ctx context.Context, b *base.Base, agent string, h *plan.Profile) error {
	q := store.List{Agent: agent, Statuses: []store.Status{store.StatusWaiting}, Limit: replanPage, Brief: true}
	for {
		page, err := b.Store.List(ctx, q)
		if err != nil {
			return err
		}
		ids := make([]string, len(page.Tasks))
		for i := range page.Tasks {
			ids[i] = page.Tasks[i].ID
		}
		if err := some(ctx, b, agent, ids, h); err != nil {
			return err
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}

// some plans some tasks of an agent by a profile. One that has changed meanwhile is read again; one that runs by then is checked when
// it is claimed next.
func some(ctx context.Context, b *base.Base, agent string, ids []string, h *plan.Profile) error {
	for range base.MostTries {
		changes, err := changes(ctx, b, agent, ids, h)
		if err != nil || len(changes) == 0 {
			return err
		}
		effects, err := b.Store.Replan(ctx, changes)
		if err != nil {
			return err
		}
		ids = nil
		for i := range effects {
			if effects[i].Code == store.EffectChanged {
				ids = append(ids, changes[i].ID)
			}
		}
	}
	return nil // its runs follow one another so fast that its next claim checks it soon
}

// changes are the changes that a profile makes to some tasks of an agent, without those that stay unchanged.
func changes(ctx context.Context, b *base.Base, agent string, ids []string, h *plan.Profile) ([]store.Replan, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := b.Store.Get(ctx, store.Get{Agent: agent, IDs: ids})
	if err != nil {
		return nil, err
	}
	b.Observe(found.Now)
	var changes []store.Replan
	for i := range found.Tasks {
		if t := &found.Tasks[i]; t.Status == store.StatusWaiting {
			if r, moves := planned(b, t, h, found.Now); moves {
				changes = append(changes, r)
			}
		}
	}
	return changes, nil
}
