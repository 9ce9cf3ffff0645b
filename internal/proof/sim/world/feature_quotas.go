package world

// The row of quotas: an agent that may have so many tasks, and so many that recur, stores them for itself while operators do so too.

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var (
	quotaIsKept    = invariant("quota-is-kept", "49", "A caller of an agent stores no task while the agent has as many live tasks as its quota allows.")
	quotaOfRecurs  = invariant("quota-of-recurring", "49", "A caller of an agent stores no task that recurs while the agent has as many of them as its quota allows.")
	quotaHasRoom   = invariant("quota-has-room", "49", "A quota refuses no task that it has room for: what has ended, was cancelled, deleted or replaced counts no more.")
	quotaIsChecked = invariant("quota-is-checked", "49", "Nothing is stored for a caller of an agent that was not checked by the quota that the agent has.")
)

// AskBound submits tasks as the agent with the quota.
const (
	quotaAgent                  = "quentin"
	AskBound   draw.RequestKind = "submit as the agent"
)

var quotas = &feature{
	name:   "quotas",
	fields: []string{"Submission.Recurs", "Submission.Bound", "Submission.Mark"},
	holds: []held{
		{quotaIsKept, "quota-one-more"}, {quotaOfRecurs, "quota-recurring-one-more"}, {quotaHasRoom, "quota-counts-what-ended"}, {quotaIsChecked, "quota-in-core-only"},
	},
	plan:  planQuotas,
	asks:  map[draw.RequestKind]asking{AskBound: askBound},
	watch: watchQuotas,
}

// planQuotas draws quotas with little room, and tasks of callers for the agent and for all.
func planQuotas(g *draw.Generator) {
	if g.In(85) {
		return
	}
	p := g.Plan
	for i := range 1 + g.IntN(3) {
		r := draw.Request{At: g.Span(0, p.Horizon/2), Process: g.IntN(4), Kind: draw.AskProfile, Agent: quotaAgent}
		if i == 0 {
			r.At = 0
		}
		q := store.Quota{Live: 1 + g.IntN(5), Recurring: 1 + g.IntN(3)}
		r.Profile = &core.Profile{Agent: quotaAgent, Zone: "UTC", Labels: map[string]string{profileLabel: strconv.Itoa(len(p.Requests))}, Quota: q}
		p.Requests = append(p.Requests, r)
	}
	var ids []string
	for range 6 + g.IntN(10) {
		id := g.ID()
		if len(ids) > 0 && g.In(30) {
			id = draw.One(g.Dice, ids...)
		}
		ids = append(ids, id)
		r := draw.Request{At: g.Span(0, p.Horizon*2/3), Process: g.IntN(4), Kind: AskBound, Agent: quotaAgent, ID: id}
		if g.In(25) {
			r.Kind = draw.AskSubmit
		}
		def := g.Definition(quotaAgent, id, false)
		def.Group = ""
		if g.In(50) {
			def.Every, def.Cron, def.Zone, def.At, def.Delay, def.Overlap, def.From = g.Span(2*time.Second, 20*time.Second), "", "", time.Time{}, 0, "", ""
		}
		if def.Overlap == core.OverlapAllow || def.Overlap == core.OverlapCancelRunning { // occurrences that are tasks of their own may find no room
			def.Overlap = ""
		}
		r.Tasks = []*draw.Definition{def}
		p.Requests = append(p.Requests, r)
		if g.In(40) {
			p.Requests = append(p.Requests, draw.Request{
				At: g.Span(r.At, p.Horizon), Process: g.IntN(4), Kind: draw.One(g.Dice, draw.AskCancel, draw.AskDelete, draw.AskReplay), Agent: quotaAgent, ID: id,
			})
		}
	}
}

// askBound submits as a caller that may do everything for the agent alone.
func askBound(ctx context.Context, w *World, p *process, r *draw.Request) (func(), error) {
	only := core.AuthorizerFunc(func(_ context.Context, _ core.Principal, what core.Access) error {
		if what.Agent != quotaAgent {
			return errors.New("only for one agent")
		}
		return nil
	})
	return w.submit(core.WithPrincipal(ctx, core.Principal{Name: quotaAgent, Rights: only}), p, r)
}

// usedUp counts the live tasks of the agent but for one, and those of them that recur, as the definitions say that were stored.
func usedUp(m *storeModel, recurs map[ref]bool, but ref) (live, recurring int) {
	for at, t := range m.tasks {
		if at.agent != quotaAgent || at == but || t.phase == ended {
			continue
		}
		live++
		if recurs[at] {
			recurring++
		}
	}
	return live, recurring
}

func watchQuotas(a *auditor, m *storeModel) watcher {
	now, stored, recurs := store.Quota{}, "", map[ref]bool{}
	counted := false // the tasks that existed when the quota was set
	return watcher{
		called: func(_ *call, request, answer any) {
			all, ok := request.([]store.ProfileChange)
			effects, _ := answer.([]store.Effect)
			for i := range all {
				if !ok || all[i].Agent != quotaAgent || effects[i].Code != store.EffectDone {
					continue
				}
				p, changed := a.w.profileIn(all[i].Now), stored != string(all[i].Now)
				if p == nil || !changed {
					continue
				}
				stored = string(all[i].Now)
				counted = p.Quota.Mark() == now.Mark() // the change that ends the planning
				now = p.Quota
			}
		},
		submitted: func(sub *store.Submission, placed *store.Submitted) {
			at := ref{sub.Agent, sub.ID}
			if sub.Agent != quotaAgent || !placed.Created && !placed.Replaced {
				return
			}
			live, recurring := usedUp(m, recurs, at)
			if sub.Bound && now.Live > 0 && !a.w.restored {
				a.must(quotaIsChecked, sub.Mark == now.Mark(), "%s/%s was stored as checked by %q, and the quota is %q", sub.Agent, sub.ID, sub.Mark, now.Mark())
				a.must(quotaIsKept, placed.Replaced || live < now.Live, "%s/%s was stored beside %d live tasks, and %d are allowed", sub.Agent, sub.ID, live, now.Live)
				if counted && sub.Recurs && (!placed.Replaced || !recurs[at]) {
					a.must(quotaOfRecurs, recurring < now.Recurring, "%s/%s recurs beside %d others, and %d are allowed", sub.Agent, sub.ID, recurring, now.Recurring)
				}
			}
			recurs[at] = sub.Recurs
		},
		refused: func(tasks []store.Submission, limit *store.LimitError) {
			if len(tasks) != 1 || limit.Agent != quotaAgent || a.w.restored {
				return
			}
			live, recurring := usedUp(m, recurs, ref{})
			switch limit.Quota {
			case "live":
				a.must(quotaHasRoom, live >= limit.Limit, "%s was refused with %d live tasks of %d", tasks[0].ID, live, limit.Limit)
			case "recurring":
				a.must(quotaHasRoom, recurring >= limit.Limit, "%s was refused with %d tasks that recur of %d", tasks[0].ID, recurring, limit.Limit)
			}
		},
	}
}
