// Package draw draws a history from its seed: the processes, what clients and operators ask for, what handlers do, and the faults.
package draw

// What is going to be tried in a history: everything in it is drawn from the seed, before it begins, so that a part of it can
// be left out and the rest stays the same.

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// Plan is a history that is to be played.
// Two plays of the same plan are the same history: the seed in it draws what the plan leaves open.
type Plan struct {
	Seed      uint64
	Settings  Settings
	Processes []Process
	Requests  []Request
	Faults    []Fault
	// CallFaults is the chance of each call of the store to go wrong, in percent, and MaxCallFaults how many may.
	CallFaults, MaxCallFaults int
	Horizon                   time.Duration // when the world becomes kind
}

// Settings are those of the store and of all processes.
// Names and meanings are those of core.Config, core.KindConfig and the configuration of a store.
type Settings struct {
	Partitions      int
	Retention       time.Duration
	Kept, MaxTasks  int
	Lease, Timeout  time.Duration
	Backoff         time.Duration
	MaxAttempts     int
	PauseAfter      int
	Grace, Spread   time.Duration
	CatchUp         int
	MaxRetryAfters  int
	MaxCrashes      int
	Serial          core.Serial
	Activity, Quiet core.Activity
	Limits          []core.Limit
	Callbacks       bool
	Saves           bool
	Alarm           bool // processes live only while they are called
	Budget          int  // of runs; zero for none
	Budgets         []core.Budget
	Batch           int // tasks in one call; zero for any number
	BatchWait       time.Duration
	Depth, Spawned  int // of the breaker; zero for the usual
	Tallies         bool
	Prints          bool // runs print what they do
	Gates           bool
	Ahead           time.Duration // before their time tasks may be claimed; zero for not at all
	Period          time.Duration // when the first period of budgets ends
}

// Process is one process.
type Process struct {
	Concurrency int
	Urgent      int // of these: kept for tasks of level 1
	Kinds       []string
	Skew        time.Duration // of its clock
	Deaf        bool          // no wake-up reaches it
	Tick        time.Duration // how long it sleeps at most between two pulls
	Worker      bool          // it has no handlers: its runs are lent to it
	Pulls       []Pull        // one after the other, and again
}

// Pull is the scope of a pull.
type Pull struct {
	Agents      []string // nil for all
	MaxTasks    int
	PerAgent    int
	MaxDuration time.Duration
	Grace       time.Duration
	Shared      bool
}

// FaultKind tells faults apart.
type FaultKind string

// The faults that befall a process, or the store.
const (
	FaultKill    FaultKind = "kill"    // the process dies, in the middle of its work
	FaultFreeze  FaultKind = "freeze"  // it does nothing for a while
	FaultCut     FaultKind = "cut"     // it does not reach the store for a while
	FaultStop    FaultKind = "stop"    // it is asked to end
	FaultFull    FaultKind = "full"    // the store takes nothing new for a while
	FaultStart   FaultKind = "start"   // another process starts
	FaultRestore FaultKind = "restore" // the store has an older past
)

// Fault is something that befalls a process or the store.
type Fault struct {
	At      time.Duration
	Kind    FaultKind
	Process int           // of those planned, modulo how many there are
	For     time.Duration // how long, or how far back
	Plan    *Process      // of FaultStart
}

// The names of a world.
// Few names are used, so that requests meet each other; few processes have a handler for "rare".
var (
	Agents = []string{"ann", "bob", "cy"}
	kinds  = []string{"plain", "tight", "batch", "timed", "rare"}
	Groups = []string{"", "", "g", "h"}
	keys   = []string{"", "", "", "key"}
)

// The kinds of activity.
const (
	KindAct   = "act"   // activity, throttled
	KindQuiet = "quiet" // activity, debounced
)

// AllKinds are the kinds of a process that can do everything.
func AllKinds() []string { return append(slices.Clone(kinds), KindAct, KindQuiet) }

// Dice are choices from a seed.
type Dice struct{ *rand.Rand }

// DiceOf are the dice of one use of chance: each has a stream of its own.
func DiceOf(seed, stream uint64) Dice {
	return Dice{rand.New(rand.NewPCG(seed, stream))}
}

// In is true in so many percent.
func (d Dice) In(percent int) bool { return d.IntN(100) < percent }

// Span is a duration between two, in steps of a millisecond.
func (d Dice) Span(least, most time.Duration) time.Duration {
	return least + time.Duration(d.Int64N(int64((most-least)/time.Millisecond)+1))*time.Millisecond
}

// One is one of several.
func One[T any](d Dice, of ...T) T { return of[d.IntN(len(of))] }

// Begin is when every history begins, by the store's clock.
// It differs from when the bubble begins, so that a wall clock that is read by mistake shows as a time
// that is decades off.
var Begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Of is the history of a seed. The rows add to it, each with dice of its own; one that is nil adds nothing.
// It draws in a fixed order: a draw that is added anywhere but at the end makes other histories of all
// seeds.
func Of(seed uint64, rows ...func(g *Generator)) *Plan {
	d := DiceOf(seed, 1)
	p := &Plan{Seed: seed, Settings: settings(d), Horizon: d.Span(5*time.Second, 45*time.Second), MaxCallFaults: 1 << 30}
	for range 1 + d.IntN(3) {
		p.Processes = append(p.Processes, NewProcess(d))
	}
	p.CallFaults = One(d, 0, 0, 3, 10, 25, 40)
	g := &Generator{Dice: d, Plan: p}
	for range 3 + d.IntN(22) {
		p.Requests = append(p.Requests, g.request())
		if last := p.Requests[len(p.Requests)-1]; last.Kind == AskSubmit && d.In(25) {
			p.Requests = append(p.Requests, g.sequel(&last))
		}
	}
	if d.In(70) {
		for range 1 + d.IntN(4) {
			p.Faults = append(p.Faults, faultPlan(d, p.Horizon))
		}
	}
	if d.In(8) {
		p.Faults = append(p.Faults, Fault{At: d.Span(p.Horizon/4, p.Horizon), Kind: FaultRestore, For: d.Span(time.Millisecond, 5*time.Second)})
	}
	if p.Settings.Partitions == 1 && d.In(40) {
		p.Settings.Limits = limits(d)
	}
	p.add(rows, g.Numbers)
	slices.SortStableFunc(p.Requests, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return p
}

// add has each row add to a plan. The numbers of definitions continue.
func (p *Plan) add(rows []func(g *Generator), numbers int) {
	for i, row := range rows {
		if row == nil {
			continue
		}
		g := &Generator{Dice: DiceOf(p.Seed, 100+uint64(i)), Plan: p, Numbers: numbers}
		row(g)
		numbers = g.Numbers
	}
}

// Values are chosen from both sides of many decisions, and small, as a history has less than a minute
// before the world becomes kind.
func settings(d Dice) Settings {
	s := Settings{
		Partitions: One(d, 1, 1, 2, 4), Retention: One(d, 0, 0, time.Minute), Kept: One(d, 0, 0, 2), MaxTasks: One(d, 0, 0, 0, 6),
		Lease: One(d, time.Second, time.Second, 3*time.Second, 6*time.Second), Timeout: d.Span(500*time.Millisecond, 4*time.Second),
		Backoff: One(d, 200*time.Millisecond, time.Second), MaxAttempts: 1 + d.IntN(4), PauseAfter: One(d, -1, 2, 3),
		Grace: One(d, time.Second, 10*time.Second), Spread: One(d, -1, 2*time.Second, 5*time.Second), CatchUp: One(d, -1, 3),
		MaxRetryAfters: One(d, -1, 2), MaxCrashes: 1 + d.IntN(3), Serial: One(d, core.SerialTask, core.SerialTask, core.SerialAgent),
		Activity: core.Activity{Delay: d.Span(0, 3*time.Second), MinInterval: One(d, 0, 4*time.Second), MaxFailures: One(d, 0, 1, 2)},
		Quiet:    core.Activity{Quiet: d.Span(200*time.Millisecond, 2*time.Second), MinInterval: One(d, 0, 4*time.Second), Dimensions: 1},
	}
	return s
}

// limits are one or two, narrow enough to be met.
func limits(d Dice) []core.Limit {
	var all []core.Limit
	about := []core.LimitTarget{{Kind: "plain"}, {Key: "k*"}, {Each: core.EachAgent}, {Kind: KindAct, Each: core.EachAgent}, {}}
	d.Shuffle(len(about), func(i, k int) { about[i], about[k] = about[k], about[i] })
	for i := range 1 + d.IntN(2) {
		l := core.Limit{About: about[i]}
		if d.In(70) {
			l.Concurrency = 1 + d.IntN(3)
		}
		if l.Concurrency == 0 || d.In(30) {
			l.Rate, l.Per, l.Burst = 5+d.IntN(8), d.Span(200*time.Millisecond, time.Second), 1+d.IntN(3) // more than what recurs needs
		}
		all = append(all, l)
	}
	return all
}

// NewProcess draws a process.
func NewProcess(d Dice) Process {
	p := Process{Concurrency: 1 + d.IntN(4), Tick: One(d, time.Second, 4*time.Second, 8*time.Second)}
	for _, kind := range kinds[:len(kinds)-1] {
		if d.In(85) {
			p.Kinds = append(p.Kinds, kind)
		}
	}
	if d.In(30) {
		p.Kinds = append(p.Kinds, "rare")
	}
	p.Kinds = append(p.Kinds, KindAct, KindQuiet)
	if d.In(40) {
		p.Skew = d.Span(-72*time.Hour, 72*time.Hour)
	}
	p.Deaf = d.In(20)
	for range 1 + d.IntN(3) {
		p.Pulls = append(p.Pulls, pullPlan(d))
	}
	return p
}

func pullPlan(d Dice) Pull {
	var p Pull
	if d.In(20) {
		p.Agents = Agents[:1+d.IntN(len(Agents))]
	}
	if d.In(15) {
		p.MaxTasks = 1 + d.IntN(4)
	}
	if d.In(15) {
		p.PerAgent = 1 + d.IntN(2)
	}
	if d.In(50) {
		p.MaxDuration = d.Span(100*time.Millisecond, 3*time.Second)
	}
	if d.In(30) {
		p.Grace = d.Span(0, 2*time.Second)
	}
	p.Shared = d.In(10)
	return p
}

func faultPlan(d Dice, horizon time.Duration) Fault {
	f := Fault{At: d.Span(0, horizon), Process: d.IntN(4), For: d.Span(50*time.Millisecond, 15*time.Second)}
	f.Kind = One(d, FaultKill, FaultKill, FaultFreeze, FaultFreeze, FaultCut, FaultStop, FaultFull, FaultStart, FaultStart)
	if f.Kind == FaultStart {
		p := NewProcess(d)
		f.Plan = &p
	}
	return f
}

// Clone is a copy of which the parts can be taken away.
func (p *Plan) Clone() *Plan {
	c := *p
	c.Processes, c.Requests, c.Faults = slices.Clone(p.Processes), slices.Clone(p.Requests), slices.Clone(p.Faults)
	for i := range c.Requests {
		c.Requests[i].Tasks = slices.Clone(c.Requests[i].Tasks)
		for k, def := range c.Requests[i].Tasks {
			own := *def
			own.Scripts = slices.Clone(def.Scripts)
			c.Requests[i].Tasks[k] = &own
		}
	}
	return &c
}
