package world

// The rows of saves and of outputs: runs that store checkpoints while they go on, beside heartbeats with their progress, and runs that print.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/output"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var (
	saveIsKept  = invariant("save-is-kept", "45", "A checkpoint that was saved is found by the next run of its task, however the one before has ended: that one, or a later one.")
	stateIsLast = invariant("states-in-order", "45", "Of the states that a run sends while it goes on, the store keeps the one that was sent last, also when it arrives before others.")
)

var saves = &feature{
	name:  "saves",
	holds: []held{{saveIsKept, "save-without-lease"}, {stateIsLast, "save-overtaken"}},
	plan: func(g *draw.Generator) {
		if g.In(70) {
			return
		}
		g.Plan.Settings.Saves = true
		for i := range 1 + g.IntN(3) { // a run goes on without its lease, and comes back to save
			lease := g.Plan.Settings.Lease
			g.Plan.Faults = append(g.Plan.Faults, draw.Fault{At: g.Span(time.Second, g.Plan.Horizon*2/3), Kind: draw.FaultCut, Process: i + g.IntN(2), For: lease + g.Span(lease/2, 3*lease)})
		}
		for range 1 + g.IntN(4) {
			agent := draw.One(g.Dice, "kim", "lou") // of this row alone, so that no operator replays a task
			def := g.Definition(agent, g.ID(), false)
			def.NewTask = core.NewTask{
				Agent: agent, ID: fmt.Sprintf("saves%d", def.Number), Kind: "plain", Payload: def.Payload, Level: def.Level, MaxAttempts: 5, Backoff: -1,
			}
			def.Scripts = nil
			for range 5 {
				s := draw.Script{Saves: 1 + g.IntN(4), Progress: g.In(50), Heed: g.In(50), Work: g.Span(time.Second, 13*time.Second)}
				s.Then = draw.One(g.Dice, draw.Succeed, draw.Fail, draw.Fail, draw.Fail, draw.Panic, draw.Goexit)
				def.Scripts = append(def.Scripts, s)
			}
			r := draw.Request{At: g.Span(0, g.Plan.Horizon/2), Process: g.IntN(4), Kind: draw.AskSubmit, Agent: agent, ID: def.ID, Tasks: []*draw.Definition{def}}
			g.Plan.Requests = append(g.Plan.Requests, r)
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
func (r *run) save(t *core.Task[draw.Payload], number int) {
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

var (
	outputIsOwn   = invariant("output-is-own", "52", "What is shown as the output of a run is what that run has printed.")
	outputIsLast  = invariant("output-is-last", "52", "A run that was taken over writes over the output of no later one.")
	outputIsWhole = invariant("output-is-whole", "52", "In a kind world the output of a run that has ended has its last line.")
	outputOfLent  = invariant("output-of-lent", "52", "In a kind world the output that comes with the end of a lent run is kept.")
)

// AskOutput reads what a task has printed.
const AskOutput draw.RequestKind = "output"

var outputs = &feature{
	name:  "outputs",
	verbs: []string{"Print", "Printed"},
	holds: []held{{outputIsOwn, "output-of-another"}, {outputIsLast, "output-taken-over"}, {outputIsWhole, "output-without-end"}, {outputOfLent, "lent-output-without-end"}},
	plan: func(g *draw.Generator) {
		if g.In(70) {
			return
		}
		g.Plan.Settings.Prints = true
		for _, r := range g.Plan.Requests {
			if len(r.Tasks) > 0 && g.In(20) {
				g.Plan.Requests = append(g.Plan.Requests, draw.Request{At: r.At + g.Span(0, g.Plan.Horizon/4), Process: g.IntN(4), Kind: AskOutput, Agent: r.Tasks[0].Agent, ID: r.Tasks[0].ID})
			}
		}
	},
	asks: map[draw.RequestKind]asking{AskOutput: func(ctx context.Context, _ *World, p *process, r *draw.Request) (func(), error) {
		_, err := p.s.Output(ctx, r.Agent, r.ID, inspect.OutputFrom{})
		return func() {}, err
	}},
	watch: watchOutputs,
}

// printedEnd is the run of a task that has printed its end last, and when it has.
type printedEnd struct {
	fence store.Fence
	at    time.Duration
	lent  bool // it was sent with the end of the run, and stored before the answer
}

// sentBy is when the end of an output is stored for sure in a kind world: it is sent beside the outcome, and no run waits for it.
const sentBy = 5 * time.Second

// line is what a run prints: whose it is, and what it is about to do.
func (r *run) line(t *core.Task[draw.Payload], does string) {
	w := r.p.w
	if !w.plan.Settings.Prints {
		return
	}
	_, _ = fmt.Fprintf(t.Output(), "%s%s\n", lineOf(t.Agent, t.ID, t.Attempt, t.Fence), does)
	if does == "ends" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.printed[ref{t.Agent, t.ID}] = printedEnd{fence: t.Fence, at: w.elapsed()}
	}
}

// prints adds a line of a lent run, and returns what its worker is to send. The world is locked, or the run has ended.
func (r *lentRun) prints(does string) *output.Sent {
	if !r.p.w.plan.Settings.Prints {
		return nil
	}
	r.text += lineOf(r.info.Agent, r.info.ID, r.info.Attempt, r.info.Fence) + does + "\n"
	return &output.Sent{At: int64(r.taken), Text: r.text[r.taken:]}
}

// saidAll notes that the end of a lent run was stored at once, and so what it has printed last.
func (r *lentRun) saidAll(as *core.ReturnedAs) {
	if w := r.p.w; w.plan.Settings.Prints && as.Err == nil && !as.Lost {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.printed[ref{r.info.Agent, r.info.ID}] = printedEnd{fence: r.info.Fence, at: w.elapsed(), lent: true}
	}
}

// lineOf is how each line of a run begins.
func lineOf(agent, id string, attempt int, fence store.Fence) string {
	return fmt.Sprintf("%s/%s %d %d ", agent, id, attempt, fence)
}

// watchOutputs knows the last run that has printed in each place of a task.
func watchOutputs(a *auditor, _ *storeModel) watcher {
	type place struct {
		ref

		at int
	}
	last := map[place]store.Fence{}
	var tasks []ref
	calm := map[ref]store.Fence{} // runs that have begun in a kind world
	kind := false
	return watcher{
		began: func(r *run) {
			if kind {
				calm[ref{r.info.Agent, r.info.ID}] = r.info.Fence
			}
		},
		called: func(_ *call, request, answer any) {
			deleted, _ := request.([]store.Deletion)
			for i := range deleted { // it is forgotten what has been printed, and by which run
				maps.DeleteFunc(last, func(at place, _ store.Fence) bool { return at.ref == ref{deleted[i].Agent, deleted[i].ID} })
			}
			chunks, _ := request.([]output.Chunk)
			for i := range chunks {
				c := &chunks[i]
				at := place{ref{c.Agent, c.ID}, c.Place()}
				if answer.([]error)[i] == nil {
					a.must(outputIsLast, c.Fence >= last[at] || a.w.restored, "%s: run %d prints after run %d", at.ref, c.Fence, last[at])
					last[at] = c.Fence
					tasks = append(tasks, at.ref)
				}
			}
		},
		kind: func() { kind = true },
		rest: func() {
			for name := range a.w.printed { // no order shows in what is only read
				tasks = append(tasks, name)
			}
			for i, name := range tasks {
				if !slices.Contains(tasks[:i], name) {
					shown(a, name, calm[name])
				}
			}
		},
	}
}

// shown compares what is kept of a task with what its runs have printed; calm is its last run that began in a kind world.
func shown(a *auditor, name ref, calm store.Fence) {
	keeper, keeps := a.w.store.(output.Keeper)
	if !keeps || a.w.restored {
		return
	}
	runs, err := keeper.Printed(a.w.ctx, name.agent, name.id)
	if err != nil {
		return
	}
	end := a.w.printed[name]
	since := a.w.elapsed() - end.at
	if end.lent && end.fence == calm && since < a.w.plan.Settings.Retention {
		_, err := a.w.store.Get(a.w.ctx, store.Get{Agent: name.agent, IDs: []string{name.id}})
		has := slices.ContainsFunc(runs, func(r output.Run) bool { return r.Fence == calm })
		a.must(outputOfLent, has || err != nil, "%s: nothing is kept of what run %d has printed", name, calm)
	}
	for i := range runs {
		r := &runs[i]
		text, own := r.Text(0).Text, true
		for line := range strings.Lines(text) {
			// A task that is deleted while it runs loses what it has printed before.
			own = own && (strings.HasPrefix(line, lineOf(name.agent, name.id, r.Attempt, r.Fence)) || strings.HasPrefix(line, "[duly: "))
		}
		a.must(outputIsOwn, own, "%s: run %d, attempt %d, has %q", name, r.Fence, r.Attempt, text)
		if r.Fence == calm && end.fence == calm && since > sentBy {
			a.must(outputIsWhole, strings.HasSuffix(text, "ends\n"), "%s: run %d has ended, and has %q", name, r.Fence, text)
		}
	}
}

// printingBus is a bus to a store that keeps output.
type printingBus struct{ *bus }

// storeOf is the store as a process has it.
func storeOf(p *process) store.Store {
	b := &bus{p: p}
	if _, keeps := p.w.store.(output.Keeper); keeps && p.w.plan.Settings.Prints {
		return printingBus{b}
	}
	return b
}

// Print stores what runs have printed.
func (b printingBus) Print(ctx context.Context, chunks []output.Chunk) ([]error, error) {
	w := b.p.w
	key := func() string { return fmt.Sprint(chunks[0].Agent, chunks[0].ID, chunks[0].Number) }
	return through(ctx, b.bus, "Print", key, func(st store.Store) ([]error, error) {
		errs, err := st.(output.Keeper).Print(w.free(), chunks)
		if err == nil {
			w.audit.called(chunks, errs)
		}
		return errs, err
	})
}

// Printed reads it.
func (b printingBus) Printed(ctx context.Context, agent, id string) ([]output.Run, error) {
	return through(ctx, b.bus, "Printed", func() string { return agent + id }, func(st store.Store) ([]output.Run, error) {
		return st.(output.Keeper).Printed(b.p.w.free(), agent, id)
	})
}
