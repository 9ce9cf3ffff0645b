package world

// The row of room: limits and budgets for which no task waits, whose counts audit_limit.go and feature_budgets.go compare with the runs that there are.

import (
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var limitCounts = invariant("limit-counts-runs", "34", "What a limit says to run is what has been claimed under it and has neither ended nor been taken back: none once no run is left.")

// The keys of the tasks under limits and budgets that have room for all of them.
const (
	roomKey  = "room:"
	muchRoom = 1000          // runs at once, or a second
	muchUse  = 10 * muchRoom // runs an hour: a history may last for minutes
)

var roomAgents = []string{"ria", "rob", "roy", "ray", "rex"}

// room is the row of limits and budgets for which no task waits: claims and settlements count many tasks at once then, beside others that are under
// none, and some that are claimed ahead of their time.
var room = &feature{
	name: "room under limits",
	holds: []held{
		{limitCounts, "limit-of-starts-runs"},
		{limitCounts, "limit-of-keys-kept"},
		{limitCounts, "plain-claim-of-starts"},
		{limitCounts, "plain-end-of-keys"},
		{budgetStarts, "budget-of-each-uncounted"},
	},
	plan: planRoom,
	watch: func(a *auditor, _ *storeModel) watcher {
		return watcher{
			step: func() {
				if a.w.steps%20 == 0 {
					a.limits.balance()
				}
			},
			kind: a.limits.balance,
			rest: a.limits.balance,
		}
	},
}

// planRoom draws tasks under limits and budgets with room, and what makes their runs end in other ways than by themselves.
func planRoom(g *draw.Generator) {
	if g.In(65) {
		return
	}
	p := g.Plan
	boundsWithRoom(g)
	if !p.Settings.Alarm { // a process claims ahead of their time what it may claim without looking at how many of a kind it has
		first := &p.Processes[0]
		p.Settings.Ahead = min(2*p.Settings.Ahead, 250*time.Millisecond)
		first.Kinds, first.Pulls = slices.DeleteFunc(first.Kinds, func(kind string) bool { return kind == "tight" }), []draw.Pull{{}}
	}
	for range 8 + g.IntN(16) {
		agent := draw.One(g.Dice, roomAgents...)
		r := draw.Request{At: g.Span(0, p.Horizon*2/3), Process: g.IntN(4), Kind: draw.AskSubmit, Agent: agent, ID: g.ID()}
		r.Tasks = []*draw.Definition{roomTask(g, agent, r.ID)}
		p.Requests = append(p.Requests, r)
		if g.In(40) { // while it runs, or soon after
			next := draw.Request{At: r.At + g.Span(0, 3*time.Second), Process: g.IntN(4), Kind: draw.One(g.Dice, draw.AskCancel, draw.AskDelete, draw.AskRunNow, draw.AskSubmit), Agent: agent, ID: r.ID}
			if next.Kind == draw.AskSubmit {
				next.Tasks = []*draw.Definition{roomTask(g, agent, r.ID)}
				next.Tasks[0].OnConflict = core.OnConflictReplace
			}
			p.Requests = append(p.Requests, next)
		}
	}
	for range g.IntN(3) { // runs are lost, or end behind their leases
		f := draw.Fault{At: g.Span(time.Second, p.Horizon), Process: g.IntN(4), For: p.Settings.Lease + g.Span(0, 2*p.Settings.Lease)}
		f.Kind = draw.One(g.Dice, draw.FaultKill, draw.FaultFreeze, draw.FaultCut, FaultMute)
		p.Faults = append(p.Faults, f)
	}
}

// roomTask is a task under the limits, or, of a few, one under none.
func roomTask(g *draw.Generator, agent, id string) *draw.Definition {
	def := g.Definition(agent, id, false)
	if !g.Plan.Settings.Alarm && g.In(50) { // it falls due close to others; a pull beside an alarm would not end
		def.NewTask = core.NewTask{
			Agent: agent, ID: id, Kind: "plain", Payload: def.Payload, Every: g.Span(time.Second, 2*time.Second), From: draw.One(g.Dice, "", core.FromStart), OnConflict: def.OnConflict,
		}
	}
	if def.LimitKey = ""; g.In(70) {
		def.LimitKey = roomKey + draw.One(g.Dice, "a", "b", "c")
	}
	for i := range def.Scripts {
		s := &def.Scripts[i]
		if s.Then == draw.RetryAfter { // a limit that adapts would leave no room any more
			s.Then = draw.Succeed
		}
		if g.In(60) {
			s.Tokens = float64(g.IntN(40)) / 10
		}
		if g.In(30) {
			s.Saves = 1 + g.IntN(2)
		}
	}
	return def
}

// boundsWithRoom draws limits and budgets, of which the first limit is about all tasks of the row.
func boundsWithRoom(g *draw.Generator) {
	s := &g.Plan.Settings
	each := []bound.Each{core.EachAgent}
	if s.Partitions == 1 { // else the store in memory has none over agents
		each = []bound.Each{"", core.EachAgent, core.EachKey}
	}
	g.Shuffle(len(each), func(i, k int) { each[i], each[k] = each[k], each[i] })
	for i := range 1 + g.IntN(len(each)) {
		l := core.Limit{About: core.LimitTarget{Key: roomKey + "*", Each: each[i]}}
		switch g.IntN(4) {
		case 0, 1:
			l.Concurrency = muchRoom
		case 2:
			l.Rate, l.Per, l.Burst = muchRoom, time.Second, muchRoom
		default:
			l.Concurrency, l.Adaptive = muchRoom, true
		}
		s.Limits = append(s.Limits, l)
	}
	if s.Period == 0 {
		s.Period = g.Span(5*time.Second, 30*time.Second).Truncate(time.Second)
	}
	for _, of := range append(each, bound.EachTask) {
		if g.In(50) {
			continue
		}
		about := core.BudgetTarget{LimitTarget: core.LimitTarget{Key: roomKey + "*", Each: of}, Unit: draw.One(g.Dice, bound.UnitRuns, tokens), Per: core.PerHour}
		s.Budgets = append(s.Budgets, core.Budget{About: about, Amount: muchUse * bound.AmountOne, Then: draw.One(g.Dice, core.ThenHold, core.ThenNotify)})
	}
}
