package world

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// The rows of plain tasks: what the generator of requests draws by itself, and the files named audit_ hold.

// What of these is sown a fault into was so before there were rows: see internal/proof/sow/faults.
var plainFeatures = []*feature{
	{
		name:   "tasks",
		fields: []string{"Agent", "ID", "Kind", "Payload", "At", "Delay", "Level", "LimitKey", "OnConflict", "Submission.Agent", "Submission.ID", "Submission.Kind", "Submission.Key", "Submission.Level", "Submission.Due", "Submission.Body", "Submission.State", "Submission.Conflict", "Submission.Version", "Submission.OldGroup", "Submission.OldLen"},
		verbs:  []string{"Submit", "Look", "Claim", "Settle", "Extend"},
	},
	{
		name:   "recurring tasks",
		fields: []string{"Every", "From", "Cron", "Jitter", "Overlap", "Misfire", "PauseAfter", "MinInterval"},
	},
	{name: "attempts", fields: []string{"MaxAttempts", "Backoff"}},
	{name: "groups", fields: []string{"Group", "Submission.Group"}, verbs: []string{"Group"}},
	{name: "activity", verbs: []string{"Touch"}},
	{
		name:  "operators",
		verbs: []string{"Replay", "RunNow", "Cancel", "Delete", "Hold", "Unhold", "Audit"},
	},
	{
		name: "readers", verbs: []string{"Get", "List", "Find", "Agents", "Limits", "Holds", "Stats"},
		plan: func(g *draw.Generator) {
			for range g.IntN(3) {
				g.Plan.Requests = append(g.Plan.Requests, draw.Request{At: g.Span(0, g.Plan.Horizon), Process: g.IntN(4), Kind: AskWatch})
			}
		},
		asks: map[draw.RequestKind]asking{AskWatch: askWatch},
	},
}

var (
	aheadInTime  = invariant("ahead-starts-in-time", "6", "A task that was claimed ahead of its time starts then: not before, and no more than 50 ms later, or than a batch waits for more.")
	aheadIsPlain = invariant("ahead-is-plain", "7", "No task is claimed ahead of its time that is urgent, or whose due time moves with activity.")
	aheadOfRoom  = invariant("ahead-leaves-room", "7", "No task is claimed ahead of its time where more than half of a limit would be in use.")
	aheadIsGiven = invariant("ahead-is-withdrawn", "11", "What a process has claimed ahead of its time it gives back when it hears of a command: it starts nothing of that.")
)

// The row of claims ahead of the time of their tasks.
var ahead = &feature{
	name:  "claims ahead",
	holds: []held{{aheadInTime, "ahead-at-once"}, {aheadIsPlain, "ahead-of-urgent"}, {aheadOfRoom, "ahead-of-limit"}, {aheadIsGiven, "ahead-not-withdrawn"}},
	plan: func(g *draw.Generator) {
		if g.In(30) {
			return
		}
		g.Plan.Settings.Ahead = g.Span(10*time.Millisecond, 250*time.Millisecond)
		for range g.IntN(2) * (2 + g.IntN(6)) { // close to one another
			agent := draw.One(g.Dice, "hal", "ike", "jan")
			r := draw.Request{At: g.Span(0, g.Plan.Horizon/2), Process: g.IntN(4), Kind: draw.AskSubmit, Agent: agent}
			def := g.Definition(agent, g.ID(), false)
			def.NewTask = core.NewTask{
				Agent: agent, ID: def.ID, Kind: "plain", Payload: def.Payload, Every: g.Span(time.Second, 2*time.Second),
				Level: draw.One(g.Dice, 0, 0, core.LevelHigh), OnConflict: def.OnConflict,
			}
			r.Tasks = []*draw.Definition{def}
			g.Plan.Requests = append(g.Plan.Requests, r)
		}
		for range g.IntN(2) * g.IntN(60) { // each asks for what was claimed ahead, and most are about nothing else
			r := draw.Request{At: g.Span(0, g.Plan.Horizon), Process: g.IntN(4), Kind: draw.AskPause, For: g.Span(50*time.Millisecond, 500*time.Millisecond)}
			r.Target = core.Target{Agent: draw.One(g.Dice, "hal", "none", "none", "none")}
			r.Agent = r.Target.Agent
			g.Plan.Requests = append(g.Plan.Requests, r)
		}
		if set := &g.Plan.Settings; len(set.Limits) == 0 && set.Partitions == 1 && g.In(20) {
			set.Limits = []core.Limit{{About: core.LimitTarget{Kind: "plain"}, Concurrency: 2 + g.IntN(3)}}
		}
	},
	config: func(w *World, _ *process, c *core.Config) {
		c.Ahead = -1
		if w.plan.Settings.Ahead > 0 {
			c.Ahead = w.plan.Settings.Ahead
		}
	},
	ready: func(p *process) {
		if p.series != nil {
			p.series.Hears(!p.deaf)
		}
	},
	watch: func(a *auditor, _ *storeModel) watcher {
		return watcher{
			took: func(t *task, c *store.Claimed) {
				a.must(aheadIsPlain, c.Due <= a.now() || c.Level != core.LevelHigh && t.activity == nil, "%s is due at %s", t.ref, ms(c.Due))
				a.must(aheadOfRoom, c.Due <= a.now() || a.limits.hasRoomAhead(t), "%s is due at %s", t.ref, ms(c.Due))
			},
			began: func(r *run) {
				if l := &r.task.lease; l.due > l.from && !r.later {
					late, most := a.now().Sub(l.due), 50*time.Millisecond
					if r.info.Kind == "batch" { // its call may have waited for more
						most += a.w.plan.Settings.BatchWait
					}
					a.must(aheadIsGiven, r.p.withdrew < l.from || l.due <= r.p.withdrew, "%s was claimed at %s, and withdrawn at %s", r.task.ref, ms(l.from), ms(r.p.withdrew))
					a.must(aheadInTime, late >= 0 && late <= most, "%s starts %s after its time", r.task.ref, late)
				}
			},
		}
	},
}

// withdraw tells processes that a command may be about what they have claimed ahead. The world's lock is not held.
func withdraw(w *World) {
	for _, p := range w.processes {
		if p.series != nil && !p.deaf && !p.dead && p.frozen <= w.elapsed() {
			p.series.Withdraw(-1)
			p.withdrew = moment.Of(w.storeTime())
		}
	}
}

// AskWatch reads what a client sees that watches all agents at once.
const AskWatch draw.RequestKind = "watch"

func askWatch(ctx context.Context, _ *World, p *process, _ *draw.Request) (func(), error) {
	_, _, err := p.s.Agents(ctx, 0, "")
	if err == nil {
		_, _, err = p.s.Tasks(ctx, core.List{Overdue: true})
	}
	if err == nil {
		_, err = p.s.Limits(ctx)
	}
	if err == nil {
		_, err = p.s.Budgets(ctx)
	}
	return func() {}, err
}

var marksArrive = invariant("marks-arrive", "13", "A handler finds the user, the session, the trace, the info and the tags of the task as they were submitted.")

// The row of marks: what a submitter writes on a task for itself, and finds again where the task runs.
var marks = &feature{
	name:   "marks",
	fields: []string{"TraceID", "Traceparent", "SessionID", "UserID", "Info", "Tags"},
	holds:  []held{{marksArrive, "marks-lost"}},
	plan: func(g *draw.Generator) {
		if g.In(75) {
			return
		}
		for i := range g.Plan.Requests {
			for _, def := range g.Plan.Requests[i].Tasks {
				if n := strconv.Itoa(def.Number); g.In(50) && def.Agent != crowdAgent {
					def.TraceID, def.SessionID, def.UserID, def.Tags = "trace"+n, "session"+n, "user"+n, []string{"tag", n}
					def.Info = json.RawMessage(`{"n":` + n + `}`)
					def.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
				}
			}
		}
	},
	watch: func(a *auditor, _ *storeModel) watcher { return watcher{began: a.marked} },
}

// marked holds that a run has the marks of its definition.
func (a *auditor) marked(r *run) {
	def, i := a.w.defs[r.number], r.info
	if def == nil {
		return
	}
	same := i.TraceID == def.TraceID && i.SessionID == def.SessionID && i.UserID == def.UserID && string(i.Info) == string(def.Info) &&
		slices.Equal(i.Tags, def.Tags) && maps.Equal(i.Labels, def.Labels)
	a.must(marksArrive, same, "%s/%s (number %d) runs with %q, %q, %q, %s, %v, %v", i.Agent, i.ID, r.number, i.TraceID, i.SessionID, i.UserID, i.Info, i.Tags, i.Labels)
}

var urgentInTime = invariant("urgent-in-time", "7", "Nothing of level 1 is due before the time until which a claim for such tasks says that others are in vain.")

// The row of urgent tasks: processes with slots that are kept for them, which ask for these while all others are busy.
var urgent = &feature{
	name:  "urgent tasks",
	holds: []held{{urgentInTime, "urgent-asked-late"}},
	plan: func(g *draw.Generator) {
		if g.In(60) {
			return
		}
		for i := range g.Plan.Processes {
			p := &g.Plan.Processes[i]
			p.Concurrency, p.Urgent = p.Concurrency+1, 1
		}
		for range 10 + g.IntN(40) {
			agent := draw.One(g.Dice, "una", "udo", "uma", "ute")
			def := g.Definition(agent, g.ID(), false)
			def.NewTask = core.NewTask{
				Agent: agent, ID: def.ID, Kind: "plain", Payload: def.Payload, Delay: g.Span(0, 2*time.Second),
				Level: draw.One(g.Dice, 0, core.LevelHigh), OnConflict: def.OnConflict,
			}
			g.Plan.Requests = append(g.Plan.Requests, draw.Request{
				At: g.Span(0, g.Plan.Horizon/2), Process: g.IntN(4), Kind: draw.AskSubmit, Agent: agent, Tasks: []*draw.Definition{def},
			})
		}
	},
	config: func(_ *World, p *process, c *core.Config) { c.Urgent = p.plan.Urgent },
}

// urgentInTime looks for tasks of which a claim for urgent ones has said that asking is in vain.
func (a claimAudit) urgentInTime(r *store.ClaimRequest, c *store.Claim) {
	if c.UrgentNext == 0 || r.Serial || r.After != 0 || c.Passed != 0 { // of a search in several claims each says what it has seen
		return
	}
	for _, t := range a.model.sorted() {
		then := *t
		then.due = min(t.due, c.Now) // as if it were due
		if a.mayTake(r, &then) {
			a.must(urgentInTime, t.due >= c.UrgentNext, "%s is due at %s, before %s", t.ref, ms(t.due), ms(c.UrgentNext))
		}
	}
}
