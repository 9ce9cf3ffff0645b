package draw

// What clients, agents and operators ask for.

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// RequestKind tells requests apart.
type RequestKind string

// The requests.
const (
	AskSubmit  RequestKind = "submit"
	AskTouch   RequestKind = "touch"
	AskCancel  RequestKind = "cancel"
	AskDelete  RequestKind = "delete"
	AskPause   RequestKind = "pause"
	AskResume  RequestKind = "resume"
	AskRunNow  RequestKind = "run now"
	AskReplay  RequestKind = "replay"
	AskRead    RequestKind = "read"
	AskAudit   RequestKind = "audit"
	AskProfile RequestKind = "profile" // sets the profile of an agent, or deletes it
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

// Generator draws requests.
type Generator struct {
	Dice

	Plan    *Plan
	Numbers int
}

func (g *Generator) request() Request {
	r := Request{At: g.Span(0, g.Plan.Horizon), Process: g.IntN(4), Agent: g.Agent(), ID: g.ID()}
	if g.In(40) { // much happens at the beginning
		r.At /= 8
	}
	switch n := g.IntN(100); {
	case n < 50:
		r.Kind = AskSubmit
		r.Tasks = g.batch(r.Agent)
	case n < 60:
		r.Kind = AskTouch
		r.ID = One(g.Dice, KindAct, KindQuiet)
	case n < 68:
		r.Kind = AskCancel
	case n < 71:
		r.Kind = AskDelete
	case n < 79:
		r.Kind, r.Target = AskPause, g.Target(r.Agent, r.ID)
		if g.In(60) {
			r.For = g.Span(100*time.Millisecond, 10*time.Second)
		}
	case n < 84:
		r.Kind, r.Target = AskResume, g.Target(r.Agent, r.ID)
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
func (g *Generator) sequel(r *Request) Request {
	of := One(g.Dice, r.Tasks...)
	next := Request{At: max(r.At, of.At.Sub(Begin)) + of.Delay + g.Span(0, time.Second), Kind: AskCancel, Process: g.IntN(4), Agent: of.Agent, ID: of.ID}
	if g.In(60) {
		next.Kind = AskSubmit
		next.Tasks = []*Definition{g.Definition(of.Agent, of.ID, false)}
		next.Tasks[0].OnConflict = core.OnConflictReplace
	}
	return next
}

// Agent is one of those of plain tasks.
func (g *Generator) Agent() string { return One(g.Dice, Agents...) }

// ID is one of few, so that requests meet each other.
func (g *Generator) ID() string { return fmt.Sprintf("t%d", g.IntN(6)) }

// Target is what a pause or a resume is about.
// Single tasks are the most frequent, as a pause of everything leaves little to happen.
func (g *Generator) Target(agent, id string) core.Target {
	switch g.IntN(8) {
	case 0:
		return core.Target{}
	case 1:
		return core.Target{Kind: One(g.Dice, kinds...)}
	case 2, 3:
		return core.Target{Agent: agent}
	case 4:
		return core.Target{Key: "key"}
	default:
		return core.Target{Agent: agent, ID: id}
	}
}

// batch are tasks of one agent with different ids.
func (g *Generator) batch(agent string) []*Definition {
	n := 1
	if g.In(25) {
		n += g.IntN(4)
	}
	var tasks []*Definition
	first := g.IntN(6)
	for i := range n {
		tasks = append(tasks, g.Definition(agent, fmt.Sprintf("t%d", (first+i)%6), true))
	}
	return tasks
}

// Definition draws a task.
// Its handlers submit only if it is not submitted by one itself, so that no chain of tasks is endless.
func (g *Generator) Definition(agent, id string, submits bool) *Definition {
	g.Numbers++
	t := &Definition{Number: g.Numbers}
	t.NewTask = core.NewTask{
		Agent: agent, ID: id, Kind: One(g.Dice, "plain", "plain", "plain", "tight", "batch", "timed", "rare"),
		Payload: payload(g.Numbers), Level: One(g.Dice, 0, core.LevelHigh, core.LevelMedium),
		Group: One(g.Dice, Groups...), LimitKey: One(g.Dice, keys...), OnConflict: One(g.Dice, "", "", core.OnConflictReplace, core.OnConflictFail),
	}
	g.schedule(&t.NewTask)
	if g.In(30) {
		t.MaxAttempts = 1 + g.IntN(3)
	}
	if g.In(10) {
		t.Backoff = -1
	}
	if g.In(12) { // it never gets anywhere
		for range 6 {
			t.Scripts = append(t.Scripts, Script{Work: g.Span(0, time.Second), Heed: true, Then: Fail})
		}
	}
	for range g.IntN(4) {
		t.Scripts = append(t.Scripts, g.Script(submits))
	}
	return t
}

// Payload is what a task carries.
type Payload struct {
	Number int    `json:"number"`
	Long   string `json:"long,omitempty"`
}

// payload is that of a task: each fourth is too long to be held with its agent.
func payload(number int) Payload {
	p := Payload{Number: number}
	if number%4 == 0 {
		p.Long = strings.Repeat("long ", 250)
	}
	return p
}

// schedule draws when a task is due.
// Times are drawn to the microsecond where a user gives one, as the store rounds them to milliseconds.
func (g *Generator) schedule(t *core.NewTask) {
	switch g.IntN(10) {
	case 0, 1, 2:
	case 3:
		t.At = Begin.Add(g.Span(0, g.Plan.Horizon) + time.Duration(g.IntN(1000))*time.Microsecond)
	case 4, 5:
		t.Delay = g.Span(time.Millisecond, 20*time.Second)
	case 6, 7:
		t.Every = g.Span(2*time.Second, 20*time.Second)
		if g.In(30) {
			t.Delay = g.Span(time.Millisecond, 5*time.Second)
		}
	case 8:
		t.Every, t.From = g.Span(2*time.Second, 20*time.Second), core.FromStart
		t.Overlap = One(g.Dice, "", core.OverlapSkip, core.OverlapQueueOne, core.OverlapAllow, core.OverlapCancelRunning)
	default:
		t.Cron = One(g.Dice, "*/10 * * * * *", "5,20,50 * * * * *", "* * * * *", "30 */1 * * * *")
		t.Overlap = One(g.Dice, "", core.OverlapSkip, core.OverlapQueueOne, core.OverlapAllow, core.OverlapCancelRunning)
	}
	if t.Every == 0 && t.Cron == "" {
		return
	}
	t.Misfire = One(g.Dice, "", core.MisfireOnce, core.MisfireSkip, core.MisfireAll)
	if g.In(20) {
		t.Jitter = g.Span(time.Millisecond, 3*time.Second)
	}
	if g.In(15) {
		t.MinInterval = g.Span(time.Second, 15*time.Second)
	}
	if g.In(20) {
		t.PauseAfter = One(g.Dice, -1, 1, 2)
	}
}

// Script draws what a handler does.
// The longest work is about twice the longest lease, so that runs need heartbeats, and lose their
// leases without them.
func (g *Generator) Script(submits bool) Script {
	s := Script{Heed: g.In(75), Result: g.In(30), Progress: g.In(20), For: g.Span(0, 6*time.Second)}
	s.Then = One(g.Dice, Succeed, Succeed, Fail, Fail, Fail, SkipRetry, Cancel, Snooze, RetryAfter, NextIn, Yield, Panic, Goexit)
	switch g.IntN(10) {
	case 0, 1, 2, 3, 4:
		s.Work = g.Span(0, 300*time.Millisecond)
	case 5, 6, 7:
		s.Work = g.Span(0, 3*time.Second)
	default:
		s.Work = g.Span(3*time.Second, 13*time.Second)
	}
	if submits && g.In(10) {
		s.Submits = g.Definition(g.Agent(), g.ID(), false)
	}
	return s
}
