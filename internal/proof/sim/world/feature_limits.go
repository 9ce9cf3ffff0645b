package world

// The rows of limits, of room under them, and of tenants: which tasks wait in line and that no task passes them, what is counted where there is room, and
// whose turn it is. audit_limit.go checks how many run and start.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var lineIsKept = invariant("line-is-kept", "34", "Nothing that a limit counts starts without having waited in its line while somebody waits there.")

var lines = &feature{
	name:  "limits",
	verbs: []string{"Limit"},
	holds: []held{{lineIsKept, "limit-line-passed"}},
	watch: func(a *auditor, _ *storeModel) watcher {
		in := map[ref]store.Line{}
		return watcher{claimed: func(c *store.Claim) {
			if len(a.w.plan.Settings.Limits) > 0 && a.w.plan.Settings.Partitions == 1 {
				a.passed(in, c)
			}
		}}
	},
}

// passed looks for tasks that were claimed past those that wait in line for the same, and notes who waits from now on.
func (a *auditor) passed(in map[ref]store.Line, c *store.Claim) {
	now := map[ref]store.Line{}
	for _, t := range a.model.sorted() {
		if t.phase != waiting || !a.model.limited(t) {
			continue
		}
		found, err := a.w.store.Get(a.w.ctx, store.Get{Agent: t.agent, IDs: []string{t.id}, Explain: true})
		if err == nil && found.Tasks[0].Line.Limit.Concurrency+found.Tasks[0].Line.Limit.Rate > 0 {
			now[t.ref] = found.Tasks[0].Line
		}
	}
	for i := range c.Tasks {
		t := a.model.live(ref{c.Tasks[i].Agent, c.Tasks[i].ID})
		if t == nil || c.Tasks[i].Lined || t.stirred {
			continue
		}
		for other, line := range now {
			was, before := in[other]
			if !before || a.model.tasks[other].stirred || was.Limit.About != line.Limit.About || was.Of != line.Of {
				continue
			}
			l := line.Limit.Limit
			bucket, is := counts(&l.About, t)
			a.must(lineIsKept, !is || bucket != line.Of, "%s is claimed, and %s waits in line for %s", t.ref, other, l.About)
		}
	}
	for r := range now { // it waits in line again
		a.model.tasks[r].stirred = false
	}
	for i := range c.Tasks {
		if t := a.model.live(ref{c.Tasks[i].Agent, c.Tasks[i].ID}); t != nil {
			t.stirred = false
		}
	}
	clear(in)
	maps.Copy(in, now)
}

var limitCounts = invariant("limit-counts-runs", "34", "What a limit says to run is what has been claimed under it and has neither ended nor been taken back: none once no run is left.")

// The keys of the tasks under limits and budgets that have room for all of them.
const (
	roomKey  = "room:"
	muchRoom = 1000 // runs
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
	each := []store.Each{core.EachAgent}
	if s.Partitions == 1 { // else the store in memory has none over agents
		each = []store.Each{"", core.EachAgent, core.EachKey}
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
	for _, of := range append(each, store.EachTask) {
		if g.In(50) {
			continue
		}
		about := core.BudgetTarget{LimitTarget: core.LimitTarget{Key: roomKey + "*", Each: of}, Unit: draw.One(g.Dice, store.UnitRuns, tokens), Per: core.PerHour}
		s.Budgets = append(s.Budgets, core.Budget{About: about, Amount: muchRoom * store.AmountOne, Then: draw.One(g.Dice, core.ThenHold, core.ThenNotify)})
	}
}

var tenantsTakeTurns = invariant("tenants-take-turns", "53", "While claims take all that they may, a task of one tenant is not passed over for those of others by more than three in a row.")

const (
	lonelyAgent = "tess"
	bigTenant   = 8 // agents
	// passedOver is how many claims in a row may pass a tenant over: one for each of the two others, that without a name among them, and one that
	// goes by age.
	passedOver = 3
)

var tenants = &feature{
	name:  "tenants",
	holds: []held{{tenantsTakeTurns, "tenants-in-one-order"}},
	plan:  planTenants,
	watch: watchTenants,
}

// planTenants draws floods of many agents of one tenant, and tasks of the only agent of another among them.
func planTenants(g *draw.Generator) {
	if g.In(70) {
		return
	}
	p := g.Plan
	profile := func(agent, tenant string) {
		p.Requests = append(p.Requests, draw.Request{Process: g.IntN(4), Kind: draw.AskProfile, Agent: agent, Profile: &core.Profile{
			Agent: agent, Zone: "UTC", Tenant: tenant, Labels: map[string]string{profileLabel: strconv.Itoa(len(p.Requests))},
		}})
	}
	submits := func(at time.Duration, agent string, n int) {
		r := draw.Request{At: at, Process: g.IntN(4), Kind: draw.AskSubmit, Agent: agent}
		for range n {
			g.Numbers++
			def := &draw.Definition{Number: g.Numbers}
			def.NewTask = core.NewTask{Agent: agent, ID: fmt.Sprintf("t%d", g.Numbers), Kind: "plain", Payload: draw.Payload{Number: g.Numbers}}
			if g.In(50) {
				def.Scripts = []draw.Script{{Work: g.Span(0, 200*time.Millisecond), Then: draw.Succeed}}
			}
			r.Tasks = append(r.Tasks, def)
		}
		p.Requests = append(p.Requests, r)
	}
	profile(lonelyAgent, "small")
	at := g.Span(time.Second, p.Horizon/2)
	for i := range bigTenant {
		agent := fmt.Sprintf("tim%d", i)
		profile(agent, "big")
		submits(at, agent, 1+g.IntN(8))
	}
	for range 4 {
		submits(at+g.Span(time.Millisecond, time.Second), lonelyAgent, 1+g.IntN(2))
	}
}

// watchTenants counts the claims in a row that have passed over each task of the lonely agent.
func watchTenants(a *auditor, m *storeModel) watcher {
	passed, alone := map[ref]int{}, false // the agent is the only one of its tenant
	called := func(_ *call, request, answer any) {
		all, _ := request.([]store.ProfileChange)
		effects, _ := answer.([]store.Effect)
		for i := range all {
			if all[i].Agent == lonelyAgent && effects[i].Code == store.EffectDone {
				alone = all[i].Tenant != ""
			}
		}
	}
	return watcher{called: called, chose: func(r *store.ClaimRequest, c *store.Claim) {
		if slices.ContainsFunc(c.Tasks, func(t store.Claimed) bool { return t.Agent == lonelyAgent }) {
			clear(passed)
			return
		}
		odd := r.Urgent || r.Serial || r.PerAgent > 0 || r.Agents != nil || r.After != 0 || r.New != nil
		if !alone || a.w.restored || odd || r.Partition != m.partition(lonelyAgent) {
			return
		}
		// What waits in a line comes first, and a task that waits for one of the slots for those whose last run died may have had the turn.
		others := len(c.Tasks) >= r.Limit && c.Parked+c.Recovered+c.Suspects == 0 && !slices.ContainsFunc(c.Tasks, func(t store.Claimed) bool { return t.Lined })
		for _, t := range m.sorted() {
			switch {
			case t.agent != lonelyAgent:
			case !others || t.due >= c.Now || !a.claims.mayTake(r, t) || !inAgenda(a, t):
				delete(passed, t.ref)
			default:
				passed[t.ref]++
				a.must(tenantsTakeTurns, passed[t.ref] <= passedOver, "%d claims have passed over %s", passed[t.ref], t.ref)
			}
		}
	}}
}

// inAgenda asks the store whether a task that waits is not put aside, which the model need not know.
func inAgenda(a *auditor, t *task) bool {
	found, err := a.w.store.Get(a.w.ctx, store.Get{Agent: t.agent, IDs: []string{t.id}, Explain: true})
	return err == nil && found.Tasks[0].Status == store.StatusWaiting && !found.Tasks[0].Parked
}
