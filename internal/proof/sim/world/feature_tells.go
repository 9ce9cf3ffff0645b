package world

// The rows of signals that an end announces, and those that messages bring: a task that waits until the last of a group has ended, and hooks.

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
	plan: func(g *generator) {
		if g.in(75) {
			return
		}
		for n := range 1 + g.IntN(3) {
			agent := one(g.dice, "mia", "ned") // of this row alone
			at := g.span(0, g.plan.Horizon/3)
			plain := func(id string, task core.NewTask, scripts ...Script) *Definition {
				g.numbers++
				def := &Definition{Number: g.numbers, Scripts: scripts, NewTask: task}
				def.Agent, def.ID, def.Kind, def.Payload = agent, id, "plain", payload{def.Number}
				return def
			}
			group := fmt.Sprintf("kids%d", n)
			r := Request{At: at, Process: g.IntN(4), Kind: AskSubmit, Agent: agent, ID: group}
			for i := range 2 + g.IntN(3) {
				s := Script{Work: g.span(0, 3*time.Second), Heed: true, Then: one(g.dice, Succeed, Succeed, Fail, SkipRetry, Cancel)}
				task := core.NewTask{Group: group, Callback: "signal-group:" + overKey + group, MaxAttempts: 1 + g.IntN(2), Delay: g.span(0, 2*time.Second)}
				r.Tasks = append(r.Tasks, plain(fmt.Sprintf("%s.%d", group, i), task, s, s))
			}
			parent := r
			parent.At, parent.ID = at+g.span(0, 4*time.Second), group+".parent" // some may have ended by then
			parent.Tasks = []*Definition{plain(parent.ID, core.NewTask{}, Script{Then: Await, Signal: core.Signal{Key: overKey + group}})}
			g.plan.Requests = append(g.plan.Requests, r, parent)
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
const AskHook RequestKind = "hook"

var hooked = &feature{
	name:  "hooks",
	verbs: []string{"Receive"},
	holds: []held{{messageOnce, "message-again"}, {messageCounts, "message-refused-counts"}},
	plan: func(g *generator) {
		if g.in(70) {
			return
		}
		for i := range 1 + g.IntN(3) {
			r := Request{Kind: AskHook, ID: "m" + strconv.Itoa(i), Agent: g.agent(), Key: one(g.dice, "yes", "no")}
			for range 2 + g.IntN(4) {
				r.At, r.Process = g.span(0, g.plan.Horizon), g.IntN(4)
				g.plan.Requests = append(g.plan.Requests, r)
			}
		}
	},
	asks:  map[RequestKind]asking{AskHook: askHook},
	watch: watchHooks,
}

// askHook is a delivery, as a server that receives it carries it out.
func askHook(ctx context.Context, w *World, p *process, r *Request) (func(), error) {
	what, receipt, err := p.s.Receive(ctx, core.Message{Sender: "hook", ID: r.ID, Until: begin.Add(time.Hour), Within: time.Second})
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
	sent := map[[2]string]store.Millis{}
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
