package world

// The row of saves: runs that store checkpoints while they go on, beside heartbeats with their progress.

import (
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

var (
	saveIsKept  = invariant("save-is-kept", "45", "A checkpoint that was saved is found by the next run of its task, however the one before has ended: that one, or a later one.")
	stateIsLast = invariant("states-in-order", "45", "Of the states that a run sends while it goes on, the store keeps the one that was sent last, also when it arrives before others.")
)

var saves = &feature{
	name:  "saves",
	holds: []held{{saveIsKept, "save-without-lease"}, {stateIsLast, "save-overtaken"}},
	plan: func(g *generator) {
		if g.in(70) {
			return
		}
		g.plan.Settings.Saves = true
		for i := range 1 + g.IntN(3) { // a run goes on without its lease, and comes back to save
			lease := g.plan.Settings.Lease
			g.plan.Faults = append(g.plan.Faults, Fault{At: g.span(time.Second, g.plan.Horizon*2/3), Kind: FaultCut, Process: i + g.IntN(2), For: lease + g.span(lease/2, 3*lease)})
		}
		for range 1 + g.IntN(4) {
			agent := one(g.dice, "kim", "lou") // of this row alone, so that no operator replays a task
			def := g.definition(agent, g.id(), false)
			def.NewTask = core.NewTask{
				Agent: agent, ID: fmt.Sprintf("saves%d", def.Number), Kind: "plain", Payload: def.Payload, Level: def.Level, MaxAttempts: 5, Backoff: -1,
			}
			def.Scripts = nil
			for range 5 {
				s := Script{Saves: 1 + g.IntN(4), Progress: g.in(50), Heed: g.in(50), Work: g.span(time.Second, 13*time.Second)}
				s.Then = one(g.dice, Succeed, Fail, Fail, Fail, Panic, Goexit)
				def.Scripts = append(def.Scripts, s)
			}
			r := Request{At: g.span(0, g.plan.Horizon/2), Process: g.IntN(4), Kind: AskSubmit, Agent: agent, ID: def.ID, Tasks: []*Definition{def}}
			g.plan.Requests = append(g.plan.Requests, r)
		}
	},
	watch: func(a *auditor, _ *storeModel) watcher {
		a.saved = map[ref]int{}
		return watcher{began: func(r *run) {
			at := 0
			_, err := r.info.Checkpoint(&at)
			name := ref{r.info.Agent, r.info.ID}
			if last := a.saved[name]; last > 0 && !a.w.restored {
				a.must(saveIsKept, err == nil && at >= last, "%s begins with %d, and %d was saved: %v", name, at, last, err)
			}
		}}
	},
}

// save stores a checkpoint, and has the auditor know of it if it is stored. Progress that is reported before goes with a heartbeat, if that is
// sooner.
func (r *run) save(t *core.Task[payload], number int) {
	r.uses(t)
	_ = t.SetProgress(number) // it is small
	err := t.Save(r.ctx, number)
	if err == nil {
		_ = t.SetProgress(-number) // the next heartbeat has this checkpoint: it must not undo the next save
	}
	r.saved(number, err)
}

// saved has the auditor know of a checkpoint whose store was answered.
func (r *run) saved(number int, err error) {
	w := r.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	r.busy = false
	name := ref{r.info.Agent, r.info.ID}
	w.heard = append(w.heard, heard{what: fmt.Sprintf("a handler of %s saves %d", name, number), err: err, check: func() {
		if err == nil && !w.restored && (name.agent == "kim" || name.agent == "lou") {
			w.audit.saved[name] = max(w.audit.saved[name], number)
		}
	}})
}

// stateInOrder holds that the store has the last state of a run that has sent another one.
func stateInOrder(a *auditor, t *task) {
	found, err := a.w.store.Get(a.w.ctx, store.Get{Agent: t.agent, IDs: []string{t.id}})
	if err == nil && len(found.Tasks) == 1 && !a.w.restored {
		a.must(stateIsLast, string(found.Tasks[0].State) == string(t.state), "%s: %q, and the last was %q", t.ref, found.Tasks[0].State, t.state)
	}
}
