package world

// The row of ends that a signal announces: a task that waits until the last of a group has ended.

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
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
