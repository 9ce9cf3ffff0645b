package world

// The rows of limits and of tenants: which tasks wait in line and that no task passes them, and whose turn it is. audit_limit.go checks how many run
// and start.

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
