package world

// The row of quiet hours: an agent with a profile, which changes while tasks wait.

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var (
	quietIsKept   = invariant("quiet-is-kept", "36", "Nothing starts in the quiet hours of its agent but what is urgent there, and what was asked for by hand.")
	quietIsOneRun = invariant("quiet-is-one-run", "36", "What falls due in one quiet time is one run after it.")
	quietEnds     = invariant("quiet-ends", "36", "What is claimed in quiet hours is due when they end.")
)

// quietAgent has a profile.
const quietAgent = "quinn"

var quiet = &feature{
	name:   "quiet hours",
	fields: []string{"Urgent"},
	verbs:  []string{"Profile", "ProfileOf", "Profiles"},
	holds:  []held{{quietIsKept, "quiet-not-looked-at"}, {quietIsOneRun, "quiet-runs-each"}, {quietEnds, "quiet-ends-late"}},
	plan:   planQuiet,
	asks:   map[draw.RequestKind]asking{draw.AskProfile: askProfile},
	watch:  watchQuiet,
}

// planQuiet draws minutes that are quiet, and tasks around them. The history lasts for some minutes, as quiet hours are of minutes.
func planQuiet(g *draw.Generator) {
	if g.In(85) {
		return
	}
	p := g.Plan
	p.Horizon = g.Span(2*time.Minute, 4*time.Minute)
	for i := range 1 + g.IntN(4) {
		r := draw.Request{At: g.Span(0, p.Horizon), Process: g.IntN(4), Kind: draw.AskProfile, Agent: quietAgent}
		if i == 0 {
			r.At = 0
		}
		if i == 0 || g.In(80) {
			r.Profile = drawProfile(g, len(p.Requests))
		}
		p.Requests = append(p.Requests, r)
	}
	for range 3 + g.IntN(5) {
		r := draw.Request{At: g.Span(0, p.Horizon), Process: g.IntN(4), Kind: draw.AskSubmit, Agent: quietAgent, ID: g.ID()}
		def := g.Definition(quietAgent, r.ID, false)
		if def.Kind == "batch" {
			def.Kind = "plain"
		}
		if def.Overlap == core.OverlapAllow || def.Overlap == core.OverlapCancelRunning {
			def.Overlap = ""
		}
		def.Urgent = g.In(15)
		r.Tasks = []*draw.Definition{def}
		p.Requests = append(p.Requests, r)
		if g.In(15) {
			p.Requests = append(p.Requests, draw.Request{At: g.Span(r.At, p.Horizon), Process: g.IntN(4), Kind: draw.AskRunNow, Agent: quietAgent, ID: r.ID})
		}
	}
}

// drawProfile draws quiet minutes by the clock on the wall of a zone. Its number is in a label: what a store is given of it is opaque.
func drawProfile(g *draw.Generator, number int) *core.Profile {
	zone := draw.One(g.Dice, "UTC", "Asia/Kathmandu")
	local := draw.Begin
	if loc, err := time.LoadLocation(zone); err == nil {
		local = draw.Begin.In(loc)
	}
	from := local.Add(time.Duration(g.IntN(4)) * time.Minute)
	to := from.Add(time.Duration(1+g.IntN(2)) * time.Minute)
	return &core.Profile{
		Agent: quietAgent, Zone: zone, Urgent: g.In(50), Labels: map[string]string{profileLabel: strconv.Itoa(number)},
		Quiet: []core.QuietHours{{From: from.Format("15:04"), To: to.Format("15:04")}},
	}
}

const profileLabel = "number"

func askProfile(ctx context.Context, _ *World, p *process, r *draw.Request) (func(), error) {
	var err error
	if r.Profile == nil {
		err = p.s.DeleteProfile(ctx, r.Agent)
	} else {
		_, err = p.s.SetProfile(ctx, *r.Profile)
	}
	if err == nil {
		_, _, err = p.s.Profiles(ctx, "", 0)
	}
	return func() {}, err
}

// quietTimes is what is known of profiles.
type quietTimes struct {
	now  map[string]*core.Profile
	runs map[ref]map[moment.Millis]time.Time // of a recurring task, by the quiet time that an occurrence was due in
}

func watchQuiet(a *auditor, _ *storeModel) watcher {
	q := &quietTimes{now: map[string]*core.Profile{}, runs: map[ref]map[moment.Millis]time.Time{}}
	return watcher{
		called: func(_ *call, request, answer any) {
			if all, ok := request.([]store.ProfileChange); ok {
				effects, _ := answer.([]store.Effect)
				for i := range all {
					if effects[i].Code == store.EffectDone {
						q.now[all[i].Agent] = a.w.profileIn(all[i].Now)
						clear(q.runs) // what is one run is so by one profile
					}
				}
			}
		},
		took:    func(t *task, _ *store.Claimed) { t.lease.profile = q.now[t.agent] },
		began:   func(r *run) { a.beganQuiet(q, r) },
		decided: func(o *outcome) bool { return a.hushed(o) },
	}
}

// profileIn is the profile that bytes are of; nil for one that was deleted.
func (w *World) profileIn(data []byte) *core.Profile {
	_, rest, ok := bytes.Cut(data, []byte(profileLabel+"\x00"))
	if !ok {
		return nil
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	for i := range w.plan.Requests {
		if p := w.plan.Requests[i].Profile; p != nil && p.Labels[profileLabel] == string(rest[:digits]) {
			return p
		}
	}
	return nil
}

// quietUntil is the end of the quiet time that a time is in; the time itself if it is in none. It goes minute by minute.
func quietUntil(p *core.Profile, at moment.Millis, t *task) moment.Millis {
	if p == nil || p.Urgent && (t.level == core.LevelHigh || t.def != nil && t.def.Urgent) {
		return at
	}
	zone, err := time.LoadLocation(p.Zone)
	if err != nil {
		return at
	}
	until := at
	for {
		clock := until.Time().In(zone).Format("15:04")
		is := false
		for _, h := range p.Quiet {
			from, to := h.From, h.To
			is = is || from <= clock && clock < to || to < from && (clock >= from || clock < to)
		}
		if !is {
			return until
		}
		until = moment.Of(until.Time().Truncate(time.Minute).Add(time.Minute))
	}
}

// beganQuiet holds that a run may start now. Between its claim and its start a process may be wrong about the time: what it was claimed in and
// what it starts in both have to be quiet.
func (a *auditor) beganQuiet(q *quietTimes, r *run) {
	t := r.task
	if t == nil || t.agent != quietAgent || t.activity != nil || t.renewed != nil {
		return
	}
	p, now := t.lease.profile, a.now()
	both := quietUntil(p, t.lease.from, t) != t.lease.from && quietUntil(p, now, t) != now
	a.must(quietIsKept, !both || t.history.hand, "%s was claimed at %s and starts at %s", t.ref, ms(t.lease.from), ms(now))
	occurrence := moment.Of(r.info.Occurrence)
	end := quietUntil(p, occurrence, t)
	if end == occurrence || t.history.moved || !t.fixed() || p != q.now[t.agent] {
		return
	}
	if q.runs[t.ref] == nil {
		q.runs[t.ref] = map[moment.Millis]time.Time{}
	}
	other, ran := q.runs[t.ref][end]
	a.must(quietIsOneRun, !ran || other.Equal(r.info.Occurrence), "%s runs for %s, and has run for %s", t.ref, r.info.Occurrence, other)
	q.runs[t.ref][end] = r.info.Occurrence
}

// hushed holds what becomes of a task that was claimed in quiet hours. Of what else is decided about the agent only that counts which the other
// rows hold: its due times are put off.
func (a *auditor) hushed(o *outcome) bool {
	t := o.t
	if t.agent != quietAgent {
		return false
	}
	now, p := a.now(), o.lease.profile
	if o.run == nil && o.s.Verb == store.VerbAgain && !o.ending && t.activity == nil && !t.history.awaits && p != nil && p.Zone != "" {
		early, late := quietUntil(p, o.lease.from, t), quietUntil(p, now, t)
		if early != o.lease.from && o.after.SkipCount == o.before.SkipCount && o.after.RunCount == o.before.RunCount {
			a.must(quietEnds, o.s.Due.At == early || o.s.Due.At == late, "%s is due at %s, and the quiet time ends at %s", t.ref, ms(o.s.Due.At), ms(early))
		}
	}
	t.history.last = 0
	if o.run != nil && !o.cutOff() && o.s.Verb != store.VerbRelease {
		// A released run is still requested, and so is one that continues.
		goesOn := o.after.Attempt > 1
		switch o.said() {
		case draw.Yield, draw.Snooze, draw.RetryAfter, Await:
			goesOn = true
		default:
		}
		t.history.cuts, t.history.hand, t.history.again = 0, t.history.hand && (goesOn || t.history.again), false
	}
	return true
}
