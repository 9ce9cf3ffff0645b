package core

// Planning again: what the profile of an agent does to tasks that wait already.

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// replanPage is how many tasks are planned again in one step, and replanAfter how long a plan may take until others take it for given up.
const (
	replanPage  = 200
	replanAfter = 10 * time.Second
)

// planned is what a task that waits becomes by a profile, which may be none; false if it stays as it is.
func (s *Scheduler) planned(t *store.Stored, h *habits, now store.Millis) (store.Replan, bool) {
	b, err1 := decodeBody(t.Body)
	st, err2 := record.DecodeState(t.State)
	claimed := store.Claimed{Due: t.Due}
	// What cannot be read says so when it is claimed; what was told to run keeps its time; what rests waits for no time.
	if err1 != nil || err2 != nil || b.Manual || st.Hand || byHand(&claimed, &st) || t.Resting {
		return store.Replan{}, false
	}
	nominal, was := st.Nominal, cmp.Or(st.PutOff, &record.PutOff{})
	base := baseOf(&st, t.Due)
	st.PutOff = nil
	first := st.Attempt == 0 && st.Checkpoint == nil && st.RetryAfters == 0
	if b.Cron != "" && b.Zone == ZoneOfAgent && first && base > now && base == st.Nominal.Add(jitter(b.Jitter, t.Agent, t.ID, st.Nominal)) {
		if next, err := s.crons.next(h.zoned(b.spec(), s.config.Zone), now); err == nil && next != 0 {
			st.Nominal = next
			base = next.Add(jitter(b.Jitter, t.Agent, t.ID, next))
		}
	}
	r := store.Replan{Agent: t.Agent, ID: t.ID, Version: t.Version, Was: t.Due, Due: base}
	from := max(base, now) // what is overdue does not start in quiet hours either
	if until := h.until(from, t.Level, b.Urgent); until != from {
		putOff(&st, &b, base, until)
		r.Due = until
	}
	if r.Due == t.Due && nominal == st.Nominal && *was == *cmp.Or(st.PutOff, &record.PutOff{}) {
		return r, false
	}
	if r.Due != t.Due {
		r.Due = max(r.Due, now) // nobody gets ahead of others by a time that is past
	}
	r.State = st.First()
	return r, true
}

// replan plans the waiting tasks of an agent by its profile, and then notes in the profile that all of them are. If it is another one by then,
// planning begins again: what is planned last is what counts.
func (s *Scheduler) replan(ctx context.Context, agent string, data []byte) error {
	for {
		h := s.habits.of(data, s.config.Zone)
		if err := s.replanAll(ctx, agent, h); err != nil {
			return err
		}
		var done *record.Profile
		if h != nil && !h.stored.Deleted {
			next := h.stored
			next.Replanning, done = 0, &next
		}
		effects, err := s.store.Profile(ctx, []store.ProfileChange{s.profileChange(agent, data, done)})
		if err != nil || effects[0].Code == store.EffectDone {
			return err
		}
		if data, err = s.store.ProfileOf(ctx, agent); err != nil {
			return err
		}
	}
}

// replanAll plans all waiting tasks of an agent by a profile, page by page.
func (s *Scheduler) replanAll(ctx context.Context, agent string, h *habits) error {
	q := store.List{Agent: agent, Statuses: []Status{StatusWaiting}, Limit: replanPage, Brief: true}
	for {
		page, err := s.store.List(ctx, q)
		if err != nil {
			return err
		}
		ids := make([]string, len(page.Tasks))
		for i := range page.Tasks {
			ids[i] = page.Tasks[i].ID
		}
		if err := s.replanSome(ctx, agent, ids, h); err != nil {
			return err
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}

// replanSome plans some tasks of an agent by a profile. One that has changed meanwhile is read again; what runs by then is looked at when
// it is claimed next.
func (s *Scheduler) replanSome(ctx context.Context, agent string, ids []string, h *habits) error {
	for range mostTries {
		changes, err := s.replans(ctx, agent, ids, h)
		if err != nil || len(changes) == 0 {
			return err
		}
		effects, err := s.store.Replan(ctx, changes)
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
	return nil // its runs follow one another so fast that each claim looks at it
}

// replans are what some tasks of an agent become by a profile, but for those that stay as they are.
func (s *Scheduler) replans(ctx context.Context, agent string, ids []string, h *habits) ([]store.Replan, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := s.store.Get(ctx, store.Get{Agent: agent, IDs: ids})
	if err != nil {
		return nil, err
	}
	s.observe(found.Now)
	var changes []store.Replan
	for i := range found.Tasks {
		if t := &found.Tasks[i]; t.Status == StatusWaiting {
			if r, moves := s.planned(t, h, found.Now); moves {
				changes = append(changes, r)
			}
		}
	}
	return changes, nil
}

// foreseen are the profiles that some submissions were planned with; nil for all of them without one.
type foreseen []*habits

func (f foreseen) of(i int) *habits {
	if f == nil {
		return nil
	}
	return f[i]
}

// foresee plans submissions with the profiles that their agents had when this process last submitted for them, as most still have them. It
// returns the profile that each was planned with.
func (s *Scheduler) foresee(subs []store.Submission) foreseen {
	var with foreseen
	for i := range subs {
		sub := &subs[i]
		h := s.habits.lastOf(sub.Agent)
		if h == nil || sub.Conflict == store.ConflictReplace {
			continue
		}
		if with == nil {
			with = make(foreseen, len(subs))
		}
		with[i] = h
		now := s.storeNow()
		due := max(sub.Due.At, now)
		if sub.Due.At == 0 {
			due = now.Add(sub.Due.After)
		}
		t := store.Stored{Agent: sub.Agent, ID: sub.ID, Level: sub.Level, Due: due, Body: sub.Body, State: sub.State}
		if r, moves := s.planned(&t, h, now); moves {
			sub.Due, sub.State = store.When{At: r.Due}, r.State
		}
	}
	return with
}

// habituate plans tasks that were just stored by the profiles that their agents turned out to have. They are stored whatever becomes of
// that, and no claim starts one in quiet hours, so a failure is none of the submit.
func (s *Scheduler) habituate(ctx context.Context, subs []store.Submission, placed []store.Submitted, with foreseen) {
	ids := map[string][]string(nil)
	for i := range placed {
		p := &placed[i]
		used := with.of(i)
		if !p.Created && !p.Replaced || len(p.Profile) == 0 && used == nil {
			continue
		}
		if due, moves := s.adapted(&subs[i], p, used); moves {
			if ids == nil {
				ids = map[string][]string{}
			}
			ids[subs[i].Agent] = append(ids[subs[i].Agent], subs[i].ID)
			p.Due = due
		}
	}
	for agent, some := range ids {
		if err := s.replanSome(ctx, agent, some, s.habits.lastOf(agent)); err != nil {
			s.config.Logger.WarnContext(ctx, "new tasks could not be planned around quiet hours: the first claim does it",
				slog.String("agent", agent), slog.Any("err", err))
		}
	}
}

// adapted is when a task that was stored is to be due by the profile that its agent turned out to have; false if it was planned by that.
func (s *Scheduler) adapted(sub *store.Submission, p *store.Submitted, used *habits) (store.Millis, bool) {
	h := s.habits.of(p.Profile, s.config.Zone)
	s.habits.saw(sub.Agent, h)
	if h == used {
		return 0, false
	}
	t := store.Stored{Agent: sub.Agent, ID: sub.ID, Level: sub.Level, Due: p.Due, Body: sub.Body, State: sub.State}
	r, moves := s.planned(&t, h, s.storeNow())
	return r.Due, moves
}

// doubts are the tasks of a pull that may have been planned by an old profile: by agent, their ids, or none if all of the agent's are to be
// planned.
type doubts map[string][]string

// met notes what the profile of a claimed task says of others: that somebody has begun to plan them and has not ended.
func (p *pull) met(h *habits, agent string) {
	if h == nil || h.stored.Replanning == 0 || p.s.storeNow().Sub(h.stored.Replanning) < replanAfter {
		return
	}
	p.doubtsMu.Lock()
	defer p.doubtsMu.Unlock()
	p.doubt(agent, nil)
}

// settledBy notes a task whose due time follows from a profile that may have changed while it ran. Whoever changed that has planned the
// tasks that waited then.
func (p *pull) settledBy(r *run) {
	if r.verdict.settlement.Verb != store.VerbAgain || r.state.PutOff == nil && r.body.Zone != ZoneOfAgent {
		return
	}
	p.doubtsMu.Lock()
	defer p.doubtsMu.Unlock()
	if ids, known := p.doubts[r.claimed.Agent]; !known || ids != nil {
		p.doubt(r.claimed.Agent, append(ids, r.claimed.ID))
	}
}

func (p *pull) doubt(agent string, ids []string) {
	if p.doubts == nil {
		p.doubts = doubts{}
	}
	p.doubts[agent] = ids
}

// replan removes the doubts of a pull that ends. What fails is found again by the next claim.
func (p *pull) replan() {
	p.doubtsMu.Lock()
	all := p.doubts
	p.doubts = nil
	p.doubtsMu.Unlock()
	for agent, ids := range all {
		if p.ctx.Err() != nil {
			return
		}
		h, err := p.s.habitsOf(p.ctx, agent)
		switch {
		case err != nil:
		case ids == nil && h != nil && h.stored.Replanning != 0:
			err = p.s.replan(p.ctx, agent, []byte(h.data))
		default:
			slices.Sort(ids)
			err = p.s.replanSome(p.ctx, agent, slices.Compact(ids), h)
		}
		if err != nil {
			p.s.config.Logger.WarnContext(p.ctx, "the tasks of an agent could not be planned by its profile", slog.String("agent", agent), slog.Any("err", err))
		}
	}
}
