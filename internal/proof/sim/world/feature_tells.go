package world

// The rows of what is announced: the ends of groups, the messages of hooks, and tasks that are late.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var (
	groupIsTold   = invariant("group-end-announced", "42", "In a kind world no task waits for the end of a group whose tasks have all ended, however they have.")
	groupHasEnded = invariant("group-has-ended", "42", "A task that waits for the end of a group goes on when its last task has ended, and not before.")
)

// The kind of the tasks that send these signals, and what their keys begin with: nothing else sends those.
const (
	tellKind = "duly.tell"
	overKey  = "over:"
)

var tells = &feature{
	name:  "announced ends",
	holds: []held{{groupIsTold, "tell-lost"}, {groupHasEnded, "tell-early"}},
	plan: func(g *draw.Generator) {
		if g.In(75) {
			return
		}
		for n := range 1 + g.IntN(3) {
			agent := draw.One(g.Dice, "mia", "ned") // of this row alone
			at := g.Span(0, g.Plan.Horizon/3)
			plain := func(id string, task core.NewTask, scripts ...draw.Script) *draw.Definition {
				g.Numbers++
				def := &draw.Definition{Number: g.Numbers, Scripts: scripts, NewTask: task}
				def.Agent, def.ID, def.Kind, def.Payload = agent, id, "plain", draw.Payload{Number: def.Number}
				return def
			}
			group := fmt.Sprintf("kids%d", n)
			r := draw.Request{At: at, Process: g.IntN(4), Kind: draw.AskSubmit, Agent: agent, ID: group}
			for i := range 2 + g.IntN(3) {
				s := draw.Script{Work: g.Span(0, 3*time.Second), Heed: true, Then: draw.One(g.Dice, draw.Succeed, draw.Succeed, draw.Fail, draw.SkipRetry, draw.Cancel)}
				task := core.NewTask{Group: group, Callback: "signal-group:" + overKey + group, MaxAttempts: 1 + g.IntN(2), Delay: g.Span(0, 2*time.Second)}
				r.Tasks = append(r.Tasks, plain(fmt.Sprintf("%s.%d", group, i), task, s, s))
			}
			parent := r
			parent.At, parent.ID = at+g.Span(0, 4*time.Second), group+".parent" // some may have ended by then
			parent.Tasks = []*draw.Definition{plain(parent.ID, core.NewTask{}, draw.Script{Then: Await, Signal: core.Signal{Key: overKey + group}})}
			g.Plan.Requests = append(g.Plan.Requests, r, parent)
		}
	},
	config: func(_ *World, _ *process, c *core.Config) {
		c.Kinds[tellKind] = core.KindConfig{MaxAttempts: 12, Backoff: time.Second, MaxBackoff: 2 * time.Second}
	},
	watch: func(a *auditor, m *storeModel) watcher {
		return watcher{
			began: func(r *run) {
				heard, ok := r.info.Heard()
				group, over := strings.CutPrefix(heard.Key, overKey)
				if n := m.groups[[2]string{r.info.Agent, group}]; ok && over && heard.Told && n != nil && !a.w.restored {
					a.must(groupHasEnded, n.Live == 0, "%s/%s goes on, and %d tasks of %s live", r.info.Agent, r.info.ID, n.Live, group)
				}
			},
			rest: func() {
				for _, t := range m.sorted() {
					if t.phase != waiting || t.await == nil || t.await.told != "" || !strings.HasPrefix(t.await.key, overKey) || a.w.restored {
						continue
					}
					g := m.groups[[2]string{t.agent, strings.TrimPrefix(t.await.key, overKey)}]
					a.must(groupIsTold, g == nil || g.Live > 0 || a.w.plan.Settings.Retention != 0 || a.w.plan.Settings.Kept != 0, "%s waits for %s, which have all ended", t.ref, t.await.key)
				}
			},
		}
	},
}

// The row of hooks: messages that are delivered again and again, to several processes, each of which sends one signal.

var (
	messageOnce   = invariant("message-once", "48", "A message sends its signal once, though it is delivered to several processes and any of them dies before it has noted that.")
	messageCounts = invariant("message-counts", "48", "A message whose signal was refused or lost sends it when it is delivered again.")
)

// AskHook delivers a message.
const AskHook draw.RequestKind = "hook"

var hooked = &feature{
	name:  "hooks",
	verbs: []string{"Receive"},
	holds: []held{{messageOnce, "message-again"}, {messageCounts, "message-refused-counts"}},
	plan: func(g *draw.Generator) {
		if g.In(70) {
			return
		}
		for i := range 1 + g.IntN(3) {
			r := draw.Request{Kind: AskHook, ID: "m" + strconv.Itoa(i), Agent: g.Agent(), Key: draw.One(g.Dice, "yes", "no")}
			for range 2 + g.IntN(4) {
				r.At, r.Process = g.Span(0, g.Plan.Horizon), g.IntN(4)
				g.Plan.Requests = append(g.Plan.Requests, r)
			}
		}
	},
	asks:  map[draw.RequestKind]asking{AskHook: askHook},
	watch: watchHooks,
}

// askHook is a delivery, as a server that receives it carries it out.
func askHook(ctx context.Context, w *World, p *process, r *draw.Request) (func(), error) {
	what, receipt, err := p.s.Receive(ctx, core.Message{Sender: "hook", ID: r.ID, Until: draw.Begin.Add(time.Hour), Within: time.Second})
	if err != nil || what != core.ReceptionNew {
		return func() {}, err
	}
	_, err = p.s.Signal(receipt.Context(ctx), r.Agent, r.Key, json.RawMessage(strconv.Itoa(w.signalled(r))))
	if taken := new(model.SignalTakenError); errors.As(err, &taken) || errors.Is(err, model.ErrUnapproved) {
		return func() {}, receipt.End(ctx, false)
	}
	return func() {}, errors.Join(err, receipt.End(ctx, err == nil))
}

// repeated reports whether a signal was answered as one that its message has sent before.
func repeated(n *store.Signal, answer *store.Signalled) bool {
	return n.Message != "" && !n.Rest && answer.Code == store.SignalResumed && answer.Resumed == 0
}

// watchHooks keeps which messages have sent their signals.
func watchHooks(a *auditor, _ *storeModel) watcher {
	sent := map[[2]string]moment.Millis{}
	return watcher{called: func(_ *call, request, answer any) {
		all, _ := request.([]store.Signal)
		for i := range all {
			n, answered := &all[i], &answer.([]store.Signalled)[i]
			name := [2]string{n.Agent, n.Message}
			if n.Message == "" || a.w.restored {
				continue
			}
			if repeated(n, answered) {
				a.must(messageCounts, sent[name] > a.now(), "%s of %s has sent nothing, and is taken for one that has", n.Key, n.Agent)
				continue
			}
			a.must(messageOnce, n.Rest || sent[name] <= a.now(), "%s of %s was sent twice by one message (%d)", n.Key, n.Agent, answered.Code)
			if !answered.More && (answered.Code == store.SignalResumed || answered.Code == store.SignalKept) {
				sent[name] = a.now().Add(n.Remember)
			}
		}
	}}
}

// The row of lateness: tasks that are to succeed within a time, of which some wait for a signal that never comes.

var (
	lateIsKnown = invariant("late-is-known", "51", "In a kind world a task that has not succeeded within the time that it was to is known to be late.")
	lateIsTrue  = invariant("late-is-true", "51", "What a task is late by counts from its last success that its watch could see, or later.")
)

// What has the watches, and the tasks of this row.
const (
	watchAgent = "duly.late"
	lateAgent  = "lena"
	watchKind  = "duly.watch"
	neverKey   = "never" // a signal that is never sent
)

var lateness = &feature{
	name:   "lateness",
	fields: []string{"ExpectSuccess", "OnLate"},
	holds:  []held{{lateIsKnown, "late-never"}, {lateIsTrue, "late-in-spite-of-success"}},
	plan: func(g *draw.Generator) {
		if g.In(75) {
			return
		}
		for range 1 + g.IntN(3) {
			id, at := g.ID(), g.Span(0, g.Plan.Horizon/3)
			for range 1 + g.IntN(2) {
				g.Numbers++
				def := &draw.Definition{Number: g.Numbers}
				def.Agent, def.ID, def.Kind, def.Payload, def.OnConflict = lateAgent, id, "plain", draw.Payload{Number: def.Number}, core.OnConflictReplace
				def.Every, def.ExpectSuccess = g.Span(time.Second, 4*time.Second), g.Span(6*time.Second, 12*time.Second)
				def.OnLate = draw.One(g.Dice, "", "", "signal:late")
				for range 1 + g.IntN(4) {
					def.Scripts = append(def.Scripts, draw.Script{Work: g.Span(0, time.Second), Heed: true, Then: draw.One(g.Dice, draw.Succeed, draw.Succeed, draw.Succeed, draw.Fail, draw.Snooze), For: g.Span(0, 3*time.Second)})
				}
				if g.In(60) {
					def.Scripts = append(def.Scripts, draw.Script{Then: Await, Signal: core.Signal{Key: neverKey}})
				}
				g.Plan.Requests = append(g.Plan.Requests, draw.Request{At: at, Process: g.IntN(4), Kind: draw.AskSubmit, Agent: lateAgent, ID: id, Tasks: []*draw.Definition{def}})
				at += g.Span(0, 15*time.Second)
			}
		}
	},
	watch: watchLateness,
}

// watchOf is what a watch says of a task, and since when that is late; zero if it is not.
func watchOf(body []byte) (of ref, within time.Duration, since moment.Millis) {
	var says struct {
		Watch struct {
			Agent  string        `json:"agent_id"`
			ID     string        `json:"id"`
			Within time.Duration `json:"within"`
			Late   struct {
				Since moment.Millis `json:"since"`
			} `json:"late"`
		} `json:"watch"`
	}
	_, text, _ := strings.Cut(string(body), `{"watch":`)
	_ = json.NewDecoder(strings.NewReader(`{"watch":` + text)).Decode(&says)
	return ref{says.Watch.Agent, says.Watch.ID}, says.Watch.Within, says.Watch.Late.Since
}

// watchLateness keeps when tasks have succeeded, and which are known to be late.
func watchLateness(a *auditor, m *storeModel) watcher {
	succeeded, seen, late, begun := map[ref]moment.Millis{}, map[ref]moment.Millis{}, map[ref]bool{}, map[ref]moment.Millis{}
	known := func() { // that a task is late
		// A watch whose last look was lost to a fault looks again in ten seconds.
		if a.w.elapsed()-a.w.kindAt < 15*time.Second {
			return
		}
		for _, t := range m.sorted() {
			if t.agent != lateAgent || t.phase == ended || t.def == nil || a.w.restored {
				continue
			}
			// A watch that a store was too full for tries again in ten seconds, for as long as it is.
			by := max(succeeded[t.ref], begun[t.ref]).Add(t.def.ExpectSuccess + soon + 15*time.Second + full(a.w.plan))
			a.must(lateIsKnown, a.now() <= by || late[t.ref] || m.watchIsHeld(a, t.ref), "%s was to succeed by %s, and its watch does not know that it has not", t.ref, ms(by))
		}
	}
	return watcher{
		submitted: func(sub *store.Submission, placed *store.Submitted) {
			switch {
			case !placed.Created && !placed.Replaced:
			case sub.Agent == lateAgent && sub.Kind == "plain":
				begun[ref{sub.Agent, sub.ID}] = max(placed.Due, a.now())
			case sub.Agent == watchAgent && sub.Group != "":
				of, within, since := watchOf(sub.Body)
				a.must(lateIsTrue, since.Add(-within) >= seen[of] || a.w.restored, "%s is late since %s, and has succeeded at %s", of, ms(since), ms(seen[of]))
				late[of] = true
			case sub.Agent == watchAgent && sub.Kind == watchKind && strings.HasPrefix(sub.ID, "watch:"):
				of, _, _ := watchOf(sub.Body)
				late[of] = false
			}
		},
		took: func(t *task, _ *store.Claimed) {
			if t.agent == watchAgent {
				of, _, _ := watchOf(t.body)
				seen[of] = succeeded[of]
			}
		},
		decided: func(o *outcome) bool {
			last, _ := lastRun(&o.after)
			if o.t.agent == lateAgent && o.run != nil && o.said() == draw.Succeed && last.Outcome == model.OutcomeSuccess {
				succeeded[o.t.ref] = moment.Of(last.Started)
			}
			return false
		},
		kind: known, // tasks that wait for a signal get it then
		rest: known,
	}
}

// watchIsHeld reports whether an operator has paused the watch of a task, or everything.
func (m *storeModel) watchIsHeld(a *auditor, of ref) bool {
	for _, t := range m.sorted() {
		if t.agent == watchAgent && t.phase != ended {
			if at, _, _ := watchOf(t.body); at == of {
				return len(m.held(t, a.now())) > 0
			}
		}
	}
	return false
}

// full is how long the store takes nothing new, in all.
func full(p *draw.Plan) (d time.Duration) {
	for i := range p.Faults {
		if p.Faults[i].Kind == draw.FaultFull {
			d += p.Faults[i].For
		}
	}
	return d
}
