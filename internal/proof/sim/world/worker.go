package world

// A worker: what runs lent tasks, with two servers that lend, keep and take back for it. Neither knows what the other has done.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// worker makes runs that are lent. It shares the fate of its process, and so do its servers; these are also
// started again while it goes on.
type worker struct {
	p       *process
	config  core.Config
	open    sync.WaitGroup
	servers [2]*core.Lender // guarded by World.mu, as its runs are
	runs    []*lentRun      // that have not ended
}

// lentRun is a run as a worker makes it. What is below its run is guarded by World.mu.
type lentRun struct {
	*run

	ticket   core.Ticket
	cancel   context.CancelCauseFunc
	number   int64 // of its last sign of life with something to store
	progress json.RawMessage
	sending  bool   // a sign of life is under way: there is one at a time
	ending   bool   // its handler has returned
	text     string // that it has printed
	taken    int    // bytes of it that need not be sent again
}

// newWorker makes the worker of a process.
func newWorker(p *process, config core.Config) *worker {
	k := &worker{p: p, config: config}
	for i := range k.servers {
		k.servers[i] = k.newServer()
	}
	return k
}

// newServer is a server that knows of no run.
func (k *worker) newServer() *core.Lender {
	s, err := core.New(storeOf(k.p), k.config)
	if err != nil {
		panic(err) // a mistake in the plan
	}
	return core.NewLender(s)
}

// server is the one that the next call goes to.
func (k *worker) server() *core.Lender {
	w := k.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.pauses.IntN(len(k.servers))
	if w.pauses.In(5) {
		k.servers[i] = k.newServer()
	}
	return k.servers[i]
}

// loop asks for runs until the process is to end, and waits for those that it has.
func (k *worker) loop() {
	p := k.p
	k.open.Go(k.beat)
	for p.ctx.Err() == nil && !p.w.over.Load() {
		wait := p.plan.Tick
		if free := p.plan.Concurrency - len(k.held()); free > 0 {
			ctx, cancel := context.WithCancel(p.ctx)
			hangsUp := clock{p}.AfterFunc(p.w.pauses.Span(time.Millisecond, 20*time.Second), cancel) // its caller, in the middle of a call
			server := k.server()
			p.pullFrom(true)
			lent, err := server.Lend(ctx, k.loan(free))
			p.pullFrom(false)
			hangsUp()
			cancel()
			k.begin(lent.Runs)
			if err == nil && !lent.NextDue.IsZero() && !p.w.plan.Settings.Alarm {
				wait = min(wait, max(p.s.Until(lent.NextDue), time.Millisecond))
			}
		}
		p.sleep(max(wait, 100*time.Millisecond))
	}
	for _, r := range k.held() { // SIGTERM: what can be given back is
		r.cancel(core.ErrStopping)
	}
	k.open.Wait()
}

// loan is what it asks for.
func (k *worker) loan(most int) core.Loan {
	return core.Loan{Kinds: k.p.plan.Kinds, Agents: k.p.plan.Pulls[0].Agents, Most: most, Lease: k.lease(), Worker: k.p.name}
}

func (k *worker) lease() time.Duration { return max(k.p.w.plan.Settings.Lease, core.MinLoanLease) }

// held are the runs that have not ended.
func (k *worker) held() []*lentRun {
	w := k.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*lentRun(nil), k.runs...)
}

// begin makes runs.
func (k *worker) begin(lent []core.LentRun) {
	w := k.p.w
	for i := range lent {
		l := &lent[i]
		body := draw.Payload{}
		_ = json.Unmarshal(l.Payload, &body) // the world has made it
		ctx, cancel := context.WithCancelCause(w.ctx)
		r := &lentRun{
			run:    &run{p: k.p, ctx: ctx, info: l.RunInfo, number: body.Number, next: make(chan step), fresh: true, lent: true},
			ticket: l.Ticket, cancel: cancel,
		}
		if l.Timeout > 0 {
			clock{k.p}.AfterFunc(l.Timeout, func() { cancel(core.ErrTimeout) })
		}
		w.mu.Lock()
		w.runs, k.runs = append(w.runs, r.run), append(k.runs, r)
		w.mu.Unlock()
		k.open.Go(func() { k.handle(r) })
	}
}

// handle does what the script of a run says.
func (k *worker) handle(r *lentRun) {
	w := k.p.w
	defer k.forget(r)
	for do := range r.next {
		switch do {
		case stepProgress:
			w.mu.Lock()
			r.progress = json.RawMessage(`"` + r.begun.String() + `"`)
			w.mu.Unlock()
		case stepSubmit:
			ctx, err := k.p.s.WithParent(r.ctx, model.TaskName{Agent: r.info.Agent, ID: r.info.ID}.String())
			if err == nil {
				_, err = k.p.s.Submit(ctx, r.script.Submits.NewTask)
			}
			w.told(fmt.Sprintf("a worker of %s submits %s", r.info.ID, r.script.Submits.ID), err, r.run)
			w.mu.Lock()
			r.busy = false
			w.mu.Unlock()
		case stepSave:
			k.save(r)
		case stepReturn:
			k.end(r)
			return
		}
	}
}

// forget takes a run out of those that it holds, and has the worker ask for the next: its end may have made room for one.
func (k *worker) forget(r *lentRun) {
	w := k.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range k.p.naps {
		if !n.deep && !w.plan.Settings.Alarm {
			n.at = min(n.at, w.elapsed())
		}
	}
	for i := range k.runs {
		if k.runs[i] == r {
			k.runs = append(k.runs[:i], k.runs[i+1:]...)
			return
		}
	}
}

// nap waits. Nothing wakes it before.
func (k *worker) nap(d time.Duration) {
	n := &nap{wake: make(chan struct{}), deep: true}
	k.p.w.mu.Lock()
	n.at = k.p.w.elapsed() + d
	k.p.naps = append(k.p.naps, n)
	k.p.w.mu.Unlock()
	<-n.wake
}

// beat sends signs of life of all runs, until there are none and no others come.
func (k *worker) beat() {
	w := k.p.w
	for !w.over.Load() && (k.p.ctx.Err() == nil || len(k.held()) > 0) {
		k.nap(k.lease() / 3)
		var runs []*lentRun
		for _, r := range k.held() {
			if k.claims(r) {
				runs = append(runs, r)
			}
		}
		k.keep(runs, nil)
	}
}

// claims takes the right to send a sign of life of a run.
func (k *worker) claims(r *lentRun) bool {
	k.p.w.mu.Lock()
	defer k.p.w.mu.Unlock()
	if r.sending || r.ending {
		return false
	}
	r.sending = true
	return true
}

// keptRuns is the key of the runs that a sign of life is about, in its context.
type keptRuns struct{}

// reaches reports whether the answer to a heartbeat is heard by a run. That of a lent one is heard by the runs whose worker has asked, and not by
// others of the same claim.
func (c *call) reaches(r *run) bool {
	runs, keeps := c.ctx.Value(keptRuns{}).([]*lentRun)
	return !r.lent && !keeps || slices.ContainsFunc(runs, func(k *lentRun) bool { return k.run == r })
}

// keep sends signs of life, of which the first has a checkpoint if there is one, and obeys the answers.
func (k *worker) keep(runs []*lentRun, checkpoint json.RawMessage) error {
	if len(runs) == 0 {
		return nil
	}
	w := k.p.w
	keeps, lost := make([]core.Keep, len(runs)), make([]bool, len(runs))
	w.mu.Lock()
	for i, r := range runs {
		keeps[i] = core.Keep{Ticket: r.ticket, Progress: r.progress, Output: r.prints("goes on")}
		if i == 0 {
			keeps[i].Checkpoint = checkpoint
		}
		if r.spent > 0 {
			keeps[i].Used = core.Usage{tokens: r.spent}
		}
		if r.progress = nil; keeps[i].Progress != nil || keeps[i].Checkpoint != nil || keeps[i].Used != nil {
			r.number++
			keeps[i].Number = r.number
		}
	}
	w.mu.Unlock()
	for i, r := range runs {
		lost[i] = r.isLost()
	}
	kept, err := k.server().Keep(context.WithValue(w.ctx, keptRuns{}, runs), keeps...)
	w.mu.Lock()
	for _, r := range runs {
		r.sending = false
	}
	w.mu.Unlock()
	for i := range kept {
		runs[i].kept(&kept[i], lost[i])
		runs[i].taken = max(runs[i].taken, int(kept[i].Printed))
		switch one := &kept[i]; {
		case one.Err != nil:
			err = errors.Join(err, one.Err)
		case !one.Held:
			runs[i].cancel(core.ErrLeaseLost)
			err = errors.Join(err, core.ErrLeaseLost)
		case one.Cause != nil:
			runs[i].cancel(one.Cause)
		}
	}
	return err
}

// save stores a checkpoint while the run goes on.
func (k *worker) save(r *lentRun) {
	for !k.p.w.over.Load() && !k.claims(r) {
		k.nap(100 * time.Millisecond)
	}
	r.spent += r.script.Tokens
	r.saved(r.saving, k.keep([]*lentRun{r}, json.RawMessage(fmt.Sprint(r.saving))))
}

// end returns a run, again and again until it is known what has become of it.
func (k *worker) end(r *lentRun) {
	w := k.p.w
	w.mu.Lock()
	r.ending = true
	w.mu.Unlock()
	r.spent += r.script.Tokens
	end := core.Returned{Ticket: r.ticket, Number: r.number, End: r.endLent, Output: r.prints("ends")}
	if r.spent == 0 && r.isCutOff() {
		end.End = nil
	}
	for !w.over.Load() {
		lost := r.isLost()
		var as []core.ReturnedAs
		var lent core.Lent
		if k.p.ctx.Err() == nil && w.pauses.In(50) {
			as, lent, _ = k.server().Turn(k.p.ctx, []core.Returned{end}, k.loan(1))
		} else {
			as, _ = k.server().Return(w.ctx, end)
		}
		k.begin(lent.Runs)
		if len(as) == 1 {
			r.ended(&as[0], lost)
			r.saidAll(&as[0])
			if err := as[0].Err; err == nil || errors.Is(err, core.ErrNotFound) {
				return
			}
		}
		k.nap(w.pauses.Span(100*time.Millisecond, 2*time.Second))
	}
}

// endLent returns as the script says. A worker that panics has failed.
func (r *lentRun) endLent(t *core.Task[json.RawMessage]) error {
	if r.script.Result {
		_ = t.SetResult(json.RawMessage(r.result)) // it is small
	}
	if r.spent > 0 {
		_ = t.Use(core.Usage{tokens: r.spent})
	}
	if r.isCutOff() {
		return core.ErrStopping
	}
	return r.says()
}

// isCutOff reports whether its worker gives it back, as it is about to stop.
func (r *lentRun) isCutOff() bool {
	return errors.Is(r.cause, core.ErrStopping) && (r.outcome == draw.Fail || r.outcome == draw.Panic || r.outcome == draw.Goexit)
}
