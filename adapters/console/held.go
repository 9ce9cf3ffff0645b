package console

// The page of all that is held: grouped by what holds it, with how many tasks wait for that, as far as the store counts them.

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// heldPage is the page of all that is held.
type heldPage struct {
	Groups []heldGroup
	Held   int64 // due tasks that pauses hold
	Cut    bool  // there are more pauses than are shown
}

// heldGroup is what holds tasks.
type heldGroup struct {
	State  badge
	About  string
	Why    string
	Pause  *model.PauseInfo
	Count  int64 // tasks that wait for it; -1 if the store does not count them
	To     string
	Label  string
	Target core.Target // what is resumed
	Do     string      // resume, or empty
}

// held is the page of all that is held. It reads no tasks.
func (c *console) held(v *visit) (*page, error) {
	if err := v.may(model.ActionRead, ""); err != nil {
		return nil, err
	}
	f, err := c.read(v)
	if err != nil {
		return nil, err
	}
	pauses, more, err := c.scheduler.Pauses(v.r.Context(), pausesShown, "")
	if err != nil {
		return nil, err
	}
	v.now = f.Stats.Now
	p := heldPage{Held: f.Stats.Held, Cut: more != "", Groups: f.unhandledHeld()}
	for i := range pauses {
		p.Groups = append(p.Groups, f.pauseHeld(&pauses[i], v.steers(pauses[i].Target.Agent)))
	}
	p.Groups = append(p.Groups, f.boundHeld()...)
	slices.SortStableFunc(p.Groups, func(a, b heldGroup) int { return cmp.Compare(b.Count, a.Count) })
	return &page{name: "held", title: "Held", body: p}, nil
}

// pauseHeld is what a pause holds.
func (f *facts) pauseHeld(p *model.PauseInfo, steers bool) heldGroup {
	g := heldGroup{State: badge{"warn", "paused"}, About: p.Target.String(), Pause: p, Count: -1, Target: p.Target, Label: "See them"}
	choice := filter{}
	switch t := p.Target; {
	case t.ID != "":
		g.Count, g.To, g.Label = 1, taskURL(t.Agent, t.ID), "See it"
	case t.Agent != "":
		choice["agent"] = t.Agent
	case t.Kind != "":
		choice["kind"], g.Count = t.Kind, f.waitingOf(t.Kind)
	case t.Key != "":
		choice["key"] = t.Key
	default:
		g.About, g.Count = "everything", f.Stats.Waiting
	}
	if g.To == "" {
		g.To = choice.with("status", "waiting").at("/tasks")
	}
	if steers {
		g.Do = "resume"
	}
	return g
}

// waitingOf is how many tasks of a kind wait.
func (f *facts) waitingOf(kind string) int64 {
	for i := range f.Kinds.Kinds {
		if k := &f.Kinds.Kinds[i]; k.Kind == kind {
			return k.Counters.Depth()
		}
	}
	return 0
}

// unhandledHeld are the kinds that no process runs.
func (f *facts) unhandledHeld() (out []heldGroup) {
	for _, k := range f.Unhandled() {
		out = append(out, heldGroup{
			State: badge{"bad", "no process"}, About: core.Target{Kind: k.Kind}.String(), Why: "no known process has a handler: start one whose file has it",
			Count: k.Counters.Live, To: filter{"kind": k.Kind}.at("/tasks"), Label: "See them",
		})
	}
	return out
}

// boundHeld are the limits and budgets that tasks wait for.
func (f *facts) boundHeld() (out []heldGroup) {
	for i := range f.Limits {
		l := &f.Limits[i]
		if l.Waiting == 0 {
			continue
		}
		choice := filter{"kind": l.About.Kind, "key": l.About.Key, "agent": l.About.Agent}
		out = append(out, heldGroup{
			State: badge{"idle", "limited"}, About: "limit on " + l.About.String(), Why: boundOf(l) + "; " + counted(l.Running, "run") + " now",
			Count: l.Waiting, To: choice.tidy().with("status", "waiting").at("/tasks"), Label: "See them",
		})
	}
	for i := range f.Budgets {
		b := &f.Budgets[i]
		if b.Waiting == 0 {
			continue
		}
		choice := filter{"kind": b.About.Kind, "key": b.About.Key}
		out = append(out, heldGroup{
			State: badge{"bad", "budget"}, About: b.Amount.String() + " " + b.About.String(), Why: fmt.Sprintf("%s used; the next period begins %s", sharePercent(b.Share()), when(f.Stats.Now, b.Ends.Time()).Text),
			Count: b.Waiting, To: choice.tidy().with("status", "waiting").at("/tasks"), Label: "See them",
		})
	}
	return out
}

// tidy is the filter without parts that are empty, or that name many by a star at the end.
func (f filter) tidy() filter {
	out := filter{}
	for name, value := range f {
		if value != "" && value[len(value)-1] != '*' {
			out[name] = value
		}
	}
	return out
}
