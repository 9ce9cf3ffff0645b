package world

// Clients: each request is made in a goroutine of its own, through the scheduler of some process, and gives up after a while.

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// patience is how long a client waits for an answer.
// It is longer than the longest delay of a call, so that a slow call may still be answered in time.
const patience = 6 * time.Second

// heard is an answer that a client or a handler got.
type heard struct {
	number int // of the request; zero for a handler
	what   string
	err    error
	of     *run   // in whose name a worker has asked; nil for others
	check  func() // what the auditor makes of it
}

// arrange notes what is going to be submitted, by number.
// Tasks that handlers submit are among them, as the auditor meets their numbers without having seen a
// request.
func (w *World) arrange() {
	for i := range w.plan.Requests {
		for _, def := range w.plan.Requests[i].Tasks {
			w.arrangeOne(def)
		}
	}
}

func (w *World) arrangeOne(def *draw.Definition) {
	w.defs[def.Number] = def
	for i := range def.Scripts {
		if child := def.Scripts[i].Submits; child != nil {
			w.arrangeOne(child)
		}
	}
}

// ask makes a request.
// A request to a dead process is never made, as with a host that is down. A client of one that dies
// later waits for ever; the end of the history lets it go.
func (w *World) ask(r *draw.Request) {
	p := w.processes[r.Process%len(w.processes)]
	if p.dead {
		return
	}
	number := w.asked
	what := r.String()
	w.trace("%s  is asked to %s", p.name, what)
	w.mu.Lock()
	w.clients++
	w.mu.Unlock()
	go func() {
		ctx, cancel := context.WithTimeout(w.ctx, patience)
		defer cancel()
		check, err := w.make(ctx, p, r)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.clients--
		w.heard = append(w.heard, heard{number, what, err, nil, check})
	}()
}

// make makes a request, and returns what is to be checked of the answer.
// It runs in the goroutine of the client, and the check in the driver's, while all else waits.
func (w *World) make(ctx context.Context, p *process, r *draw.Request) (check func(), err error) {
	check = func() {}
	switch r.Kind {
	case draw.AskSubmit:
		return w.submit(ctx, p, r)
	case draw.AskTouch:
		var n model.Noticed
		if n, err = p.s.Notice(ctx, r.ID, core.Subject{User: r.Agent}); err == nil {
			check = func() { w.audit.submits.noticed(&n) }
		}
	case draw.AskCancel:
		var status core.Status
		if status, err = p.s.Cancel(ctx, r.Agent, r.ID, core.Order{By: "op"}); err == nil {
			check = func() { w.audit.orders.wasCancelled(r.Agent, r.ID, status) }
		}
	case draw.AskDelete:
		err = p.s.Delete(ctx, r.Agent, r.ID)
	case draw.AskPause:
		err = p.s.Pause(ctx, r.Target, core.Pause{By: "op", For: r.For, Ahead: r.Target.ID == ""})
	case draw.AskResume:
		err = p.s.Resume(ctx, r.Target)
	case draw.AskRunNow:
		_, err = p.s.RunNow(ctx, r.Agent, r.ID)
	case draw.AskReplay:
		_, err = p.s.Replay(ctx, r.Agent, r.ID)
	// What the list says is compared at the end. Here reading is tried among faults, and the
	// explanations are compared with the model of this moment.
	case draw.AskRead:
		_, _, err = p.s.Tasks(ctx, core.List{Agent: r.Agent})
		check = func() {
			for _, t := range w.audit.model.sorted() {
				w.audit.balances.explained(t)
			}
			w.audit.balances.balancePauses()
		}
	case draw.AskAudit:
		var report inspect.AuditReport
		if report, err = p.s.Audit(ctx, inspect.AuditOptions{}); err == nil {
			check = func() { w.audit.orders.sound(&report) }
		}
	default:
		return w.askRow(ctx, p, r)
	}
	return check, err
}

func (w *World) submit(ctx context.Context, p *process, r *draw.Request) (func(), error) {
	tasks := make([]core.NewTask, len(r.Tasks))
	for i, def := range r.Tasks {
		tasks[i] = def.NewTask
	}
	out, err := p.s.Submit(ctx, tasks...)
	if err != nil {
		return func() { w.audit.submits.refused(r, err) }, err
	}
	return func() { w.audit.submits.accepted(r, out) }, nil
}

// told records the answer that a handler got.
func (w *World) told(what string, err error, of *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, heard{what: what, err: err, of: of, check: func() {}})
}

// hearClients shows the auditor the answers that clients got.
// Answers that came in the same step are sorted by request: the seed does not determine the order of
// their goroutines.
func (w *World) hearClients() {
	w.mu.Lock()
	all := w.heard
	w.heard = nil
	w.mu.Unlock()
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b heard) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.what, b.what)) })
	for _, h := range all {
		if h.err != nil {
			w.trace("answered: %s: %v", h.what, h.err)
		} else {
			w.trace("answered: %s", h.what)
		}
		w.audit.heard(h.err, h.of)
		h.check()
	}
}
