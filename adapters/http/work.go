package http

// Workers: runs that are handed out, kept and ended over the API.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// lending is what hands runs out. It keeps none.
type lending struct {
	*api

	lender  *core.Lender
	tickets tickets
}

// newLending lends runs of a scheduler, until the server stops.
func newLending(a *api, s *core.Scheduler) *lending {
	l := &lending{api: a, lender: core.NewLender(s), tickets: newTickets(&a.config)}
	l.lender.EndWith(a.config.Stopping)
	return l
}

// routes are the calls of workers.
func (a *lending) routes() []route {
	return []route{
		{Call: *operation.ClaimRuns.Call, stream: a.claimRuns},
		answers(a.api, operation.KeepRuns, a.keepRuns),
		{Call: *operation.ReturnRuns.Call, stream: a.returnRuns},
	}
}

// claimRuns hands out runs.
func (a *lending) claimRuns(w http.ResponseWriter, r *http.Request) {
	var q operation.Claim
	err := readBody(r, true, &q)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	out, unsent, err := a.Claim(r.Context(), &q)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.sendRuns(w, r, out, unsent)
}

// Claim hands out runs.
func (a *lending) Claim(ctx context.Context, q *operation.Claim) (*operation.Lent, func(), error) {
	_, lent, err := a.lend(ctx, q, nil)
	if err != nil {
		return nil, nil, err
	}
	return a.sealed(ctx, lent)
}

// lend stores ends and waits for runs within what the caller may do. No error of the claim comes before the ends: without it they are stored, too.
func (a *lending) lend(ctx context.Context, q *operation.Claim, ends []core.Returned) ([]core.ReturnedAs, core.Lent, error) {
	wait, err := a.waitOf(q.Wait)
	loan := core.Loan{Kinds: q.Kinds, Most: q.Most, Lease: time.Duration(q.Lease), Wait: wait, Worker: q.Worker}
	if err == nil {
		loan.Agents, err = a.agentsFor(ctx, q)
	}
	leave := func() {}
	if err == nil && wait > 0 {
		leave, err = a.waits.Enter(callerOf(ctx).credential, a.config.MaxWaits)
	}
	if err != nil {
		returned, failed := a.lender.Return(ctx, ends...)
		return returned, core.Lent{}, cmp.Or(failed, err)
	}
	defer leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if wait > 0 {
		calledOff := a.endWith(cancel)
		defer calledOff()
	}
	returned, lent, err := a.lender.Turn(ctx, ends, loan)
	if ctx.Err() != nil && len(lent.Runs) == 0 { // another server answers a worker that asks again
		err = nil
	}
	return returned, lent, err
}

// endWith has something end with the server; the function that it returns calls that off.
func (a *lending) endWith(cancel func()) func() {
	over := make(chan struct{})
	go func() {
		select {
		case <-a.config.Stopping: // for ever, if it is nil
			cancel()
		case <-over:
		}
	}()
	return func() { close(over) }
}

// agentsFor are the agents for whose runs a caller may ask; nil for all.
func (a *lending) agentsFor(ctx context.Context, q *operation.Claim) ([]string, error) {
	g := callerOf(ctx).grant
	for _, kind := range q.Kinds {
		if !g.runs(kind) {
			return nil, problem.New(core.CodeForbidden, "the credential does not cover the kind "+kind)
		}
	}
	agents := q.Agents
	switch {
	case agents != nil:
	case g.all():
		return nil, a.allowAll(ctx)
	case g.Patterns != nil:
		return nil, problem.New(core.CodeForbidden, "the credential covers agents by a pattern: name them as agent_ids")
	default:
		agents = some(g.Agents)
	}
	return agents, a.allow(ctx, agents...)
}

// sealed are runs as they are sent, and what gives them back; nil for none.
func (a *lending) sealed(ctx context.Context, lent core.Lent) (*operation.Lent, func(), error) {
	var unsent func()
	if len(lent.Runs) > 0 {
		unsent = func() { a.giveBack(ctx, lent) }
	}
	out := &operation.Lent{Runs: []json.RawMessage{}}
	if !lent.NextDue.IsZero() {
		out.Next = &lent.NextDue
	}
	for i := range lent.Runs {
		one, err := contract.EncodeLent(&lent.Runs[i], a.tickets.seal(&lent.Runs[i].Ticket))
		if err != nil {
			unsent()
			return nil, nil, err
		}
		out.Runs = append(out.Runs, one)
	}
	return out, unsent, nil
}

// sendRuns answers with runs, and has them given back if that fails.
func (a *lending) sendRuns(w http.ResponseWriter, r *http.Request, out any, unsent func()) {
	data, err := json.Marshal(out)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(append(data, '\n'))
	if unsent == nil {
		return
	}
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	// guard: unsent-runs
	if err != nil && !errors.Is(err, http.ErrNotSupported) || r.Context().Err() != nil {
		unsent()
	}
}

// giveBack releases runs that no worker has heard of.
func (a *lending) giveBack(ctx context.Context, lent core.Lent) {
	back := make([]core.Returned, len(lent.Runs))
	for i := range lent.Runs {
		back[i].Ticket = lent.Runs[i].Ticket
	}
	if _, err := a.lender.Return(context.WithoutCancel(ctx), back...); err != nil {
		a.unsent(ctx, err)
	}
}

// keepRuns extends leases and stores what the runs report.
func (a *lending) keepRuns(r *http.Request, q operation.Keep) (operation.Kept, error) {
	return a.Keep(r.Context(), q)
}

// Keep extends leases and stores what the runs report. What is wrong with one of them is no matter of the others.
func (a *lending) Keep(ctx context.Context, q operation.Keep) (operation.Kept, error) {
	if err := tooManyRuns(len(q.Runs)); err != nil {
		return operation.Kept{}, err
	}
	out := operation.Kept{Runs: make([]operation.KeptRun, len(q.Runs))}
	var keeps []core.Keep
	var of []int
	runs := make([]operation.KeepRun, len(q.Runs))
	for i, data := range q.Runs {
		if err := readRun(data, &runs[i]); err != nil {
			return operation.Kept{}, err
		}
	}
	for i := range runs {
		one := &runs[i]
		ticket, err := a.ticketOf(ctx, one.Ticket)
		k := core.Keep{Ticket: ticket, Progress: one.Progress, Checkpoint: one.Checkpoint, Used: one.Usage, Number: one.Number, Output: one.Output}
		if err == nil {
			err = a.lender.Check(&k)
		}
		if err != nil {
			out.Runs[i].Error = err.Error()
			continue
		}
		keeps, of = append(keeps, k), append(of, i)
	}
	kept, err := a.lender.Keep(ctx, keeps...)
	for i := range kept {
		out.Runs[of[i]] = keptAs(&kept[i])
	}
	return out, err
}

// readRun reads a run of a call strictly: what is no such run refuses the call as a whole.
func readRun(data []byte, into any) error {
	o, err := strictjson.Parse("runs", data)
	if err != nil {
		return err
	}
	return o.Read("a run", strictjson.Fields(into)...)
}

// keptAs is the answer to one.
func keptAs(k *core.Kept) operation.KeptRun {
	out := operation.KeptRun{Kept: k.Held, Reason: k.Order.Reason, Printed: k.Printed}
	switch {
	case k.Err != nil:
		out.Kept, out.Error = true, "the store did not answer: the run goes on, ask again"
	case errors.Is(k.Cause, core.ErrCancelled):
		out.End = operation.EndCancelled
	case errors.Is(k.Cause, core.ErrBudgetSpent):
		out.End = operation.EndBudget
	case errors.Is(k.Cause, core.ErrTimeout):
		out.End = operation.EndTimeout
	default:
	}
	return out
}

// ticketOf is what a ticket says, if it is good and its caller may run such tasks.
func (a *lending) ticketOf(ctx context.Context, text string) (core.Ticket, error) {
	t, err := a.tickets.open(text)
	if err != nil {
		return t, err
	}
	// guard: ticket-grant
	if err := a.mayEnd(ctx, &t); err != nil {
		return core.Ticket{}, err
	}
	return t, nil
}

// mayEnd refuses a caller whose credential does not cover a run.
func (a *lending) mayEnd(ctx context.Context, t *core.Ticket) error {
	if !callerOf(ctx).grant.runs(t.Kind) {
		return problem.New(core.CodeForbidden, "the credential does not cover the kind "+t.Kind)
	}
	return a.allow(ctx, t.Agent)
}

// worker are the rights of a caller as a worker: it runs tasks, and needs no right to have others run them.
type worker struct{ *Grant }

// Authorize refuses what the grant does not cover, as it does itself.
func (w worker) Authorize(ctx context.Context, who core.Principal, what core.Access) error {
	if what.Action != model.ActionRun {
		return w.Grant.Authorize(ctx, who, what)
	}
	return w.covered(ScopeWork, what)
}

// runs reports whether a grant covers runs of a kind.
func (g *Grant) runs(kind string) bool { return g.Kinds == nil || slices.Contains(g.Kinds, kind) }
