package world

// What clients, agents and operators ask for.

import (
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// RequestKind tells requests apart.
type RequestKind string

// The requests.
const (
	AskSubmit RequestKind = "submit"
	AskTouch  RequestKind = "touch"
	AskCancel RequestKind = "cancel"
	AskDelete RequestKind = "delete"
	AskPause  RequestKind = "pause"
	AskResume RequestKind = "resume"
	AskRunNow RequestKind = "run now"
	AskReplay RequestKind = "replay"
	AskRead   RequestKind = "read"
	AskAudit  RequestKind = "audit"
)

// Request is something that a client asks a process for.
// Which of the fields count depends on the kind: an agent and an id are drawn for each.
type Request struct {
	At      time.Duration
	Kind    RequestKind
	Process int           // of those planned, modulo how many there are
	Tasks   []*Definition // of AskSubmit
	Agent   string
	ID      string
	Target  core.Target   // of AskPause and AskResume
	For     time.Duration // of AskPause; zero for ever
	Key     string        // of AskSignal
	Profile *core.Profile // of AskProfile; nil to delete it
}

// Definition is a task as it is submitted. Its number is in its payload, so that its handler knows which one it was.
// Submitting it again under the same id makes another definition, with a number of its own.
type Definition struct {
	Number int
	core.NewTask

	Closed  uint64   // a bit for each question that its gate answers with no
	Scripts []Script // of its runs, one after the other; the others just succeed
}

// Outcome is how a handler ends.
type Outcome string

// The outcomes.
const (
	Succeed    Outcome = "success"
	Fail       Outcome = "error"
	SkipRetry  Outcome = "skip retry"
	Cancel     Outcome = "cancel"
	Snooze     Outcome = "snooze"
	RetryAfter Outcome = "retry after"
	NextIn     Outcome = "next in"
	Yield      Outcome = "yield"
	Panic      Outcome = "panic"
	Goexit     Outcome = "goexit"
)

// Script is what a handler does in one run.
type Script struct {
	Work     time.Duration // how long it takes
	Heed     bool          // it ends as soon as its context does
	Then     Outcome
	For      time.Duration // of Then
	Result   bool          // it sets a result
	Progress bool          // it says how far it is, half way through
	Submits  *Definition   // it submits a task, half way through
	Saves    int           // how often it saves a checkpoint on its way
	Signal   core.Signal   // of Await
	Tokens   float64       // that it reports
}

// generator draws requests.
type generator struct {
	dice

	plan    *Plan
	numbers int
}

func (g *generator) request() Request {
	r := Request{At: g.span(0, g.plan.Horizon), Process: g.IntN(4), Agent: g.agent(), ID: g.id()}
	if g.in(40) { // much happens at the beginning
		r.At /= 8
	}
	switch n := g.IntN(100); {
	case n < 50:
		r.Kind = AskSubmit
		r.Tasks = g.batch(r.Agent)
	case n < 60:
		r.Kind = AskTouch
		r.ID = one(g.dice, kindAct, kindQuiet)
	case n < 68:
		r.Kind = AskCancel
	case n < 71:
		r.Kind = AskDelete
	case n < 79:
		r.Kind, r.Target = AskPause, g.target(r.Agent, r.ID)
		if g.in(60) {
			r.For = g.span(100*time.Millisecond, 10*time.Second)
		}
	case n < 84:
		r.Kind, r.Target = AskResume, g.target(r.Agent, r.ID)
	case n < 90:
		r.Kind = AskRunNow
	case n < 94:
		r.Kind = AskReplay
	case n < 98:
		r.Kind = AskRead
	default:
		r.Kind = AskAudit
	}
	return r
}

// sequel is a client's next request for a task that was just submitted: it is cancelled or replaced while it is claimed, or runs.
// A task without a time has the zero time, which lies so far back that the time of the request is the
// later one.
func (g *generator) sequel(r *Request) Request {
	of := one(g.dice, r.Tasks...)
	next := Request{At: max(r.At, of.At.Sub(begin)) + of.Delay + g.span(0, time.Second), Kind: AskCancel, Process: g.IntN(4), Agent: of.Agent, ID: of.ID}
	if g.in(60) {
		next.Kind = AskSubmit
		next.Tasks = []*Definition{g.definition(of.Agent, of.ID, false)}
		next.Tasks[0].OnConflict = core.OnConflictReplace
	}
	return next
}

func (g *generator) agent() string { return one(g.dice, agents...) }

// id is one of few, so that requests meet each other.
func (g *generator) id() string { return fmt.Sprintf("t%d", g.IntN(6)) }

// Single tasks are the most frequent, as a pause of everything leaves little to happen.
func (g *generator) target(agent, id string) core.Target {
	switch g.IntN(8) {
	case 0:
		return core.Target{}
	case 1:
		return core.Target{Kind: one(g.dice, kinds...)}
	case 2, 3:
		return core.Target{Agent: agent}
	case 4:
		return core.Target{Key: "key"}
	default:
		return core.Target{Agent: agent, ID: id}
	}
}

// batch are tasks of one agent with different ids.
func (g *generator) batch(agent string) []*Definition {
	n := 1
	if g.in(25) {
		n += g.IntN(4)
	}
	var tasks []*Definition
	first := g.IntN(6)
	for i := range n {
		tasks = append(tasks, g.definition(agent, fmt.Sprintf("t%d", (first+i)%6), true))
	}
	return tasks
}

// Its handlers submit only if it is not submitted by one itself, so that no chain of tasks is endless.
func (g *generator) definition(agent, id string, submits bool) *Definition {
	g.numbers++
	t := &Definition{Number: g.numbers}
	t.NewTask = core.NewTask{
		Agent: agent, ID: id, Kind: one(g.dice, "plain", "plain", "plain", "tight", "batch", "timed", "rare"),
		Payload: payload{g.numbers}, Level: one(g.dice, 0, core.LevelHigh, core.LevelMedium),
		Group: one(g.dice, groups...), LimitKey: one(g.dice, keys...), OnConflict: one(g.dice, "", "", core.OnConflictReplace, core.OnConflictFail),
	}
	g.schedule(&t.NewTask)
	if g.in(30) {
		t.MaxAttempts = 1 + g.IntN(3)
	}
	if g.in(10) {
		t.Backoff = -1
	}
	if g.in(12) { // it never gets anywhere
		for range 6 {
			t.Scripts = append(t.Scripts, Script{Work: g.span(0, time.Second), Heed: true, Then: Fail})
		}
	}
	for range g.IntN(4) {
		t.Scripts = append(t.Scripts, g.script(submits))
	}
	return t
}

// payload is what a task carries.
type payload struct {
	Number int `json:"number"`
}

// schedule draws when a task is due.
// Times are drawn to the microsecond where a user gives one, as the store rounds them to milliseconds.
func (g *generator) schedule(t *core.NewTask) {
	switch g.IntN(10) {
	case 0, 1, 2:
	case 3:
		t.At = begin.Add(g.span(0, g.plan.Horizon) + time.Duration(g.IntN(1000))*time.Microsecond)
	case 4, 5:
		t.Delay = g.span(time.Millisecond, 20*time.Second)
	case 6, 7:
		t.Every = g.span(2*time.Second, 20*time.Second)
		if g.in(30) {
			t.Delay = g.span(time.Millisecond, 5*time.Second)
		}
	case 8:
		t.Every, t.From = g.span(2*time.Second, 20*time.Second), core.FromStart
		t.Overlap = one(g.dice, "", core.OverlapSkip, core.OverlapQueueOne, core.OverlapAllow, core.OverlapCancelRunning)
	default:
		t.Cron = one(g.dice, "*/10 * * * * *", "5,20,50 * * * * *", "* * * * *", "30 */1 * * * *")
		t.Overlap = one(g.dice, "", core.OverlapSkip, core.OverlapQueueOne, core.OverlapAllow, core.OverlapCancelRunning)
	}
	if t.Every == 0 && t.Cron == "" {
		return
	}
	t.Misfire = one(g.dice, "", core.MisfireOnce, core.MisfireSkip, core.MisfireAll)
	if g.in(20) {
		t.Jitter = g.span(time.Millisecond, 3*time.Second)
	}
	if g.in(15) {
		t.MinInterval = g.span(time.Second, 15*time.Second)
	}
	if g.in(20) {
		t.PauseAfter = one(g.dice, -1, 1, 2)
	}
}

// The longest work is about twice the longest lease, so that runs need heartbeats, and lose their
// leases without them.
func (g *generator) script(submits bool) Script {
	s := Script{Heed: g.in(75), Result: g.in(30), Progress: g.in(20), For: g.span(0, 6*time.Second)}
	s.Then = one(g.dice, Succeed, Succeed, Fail, Fail, Fail, SkipRetry, Cancel, Snooze, RetryAfter, NextIn, Yield, Panic, Goexit)
	switch g.IntN(10) {
	case 0, 1, 2, 3, 4:
		s.Work = g.span(0, 300*time.Millisecond)
	case 5, 6, 7:
		s.Work = g.span(0, 3*time.Second)
	default:
		s.Work = g.span(3*time.Second, 13*time.Second)
	}
	if submits && g.in(10) {
		s.Submits = g.definition(g.agent(), g.id(), false)
	}
	return s
}
