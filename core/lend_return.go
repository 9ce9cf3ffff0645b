package core

// Runs that were lent: how they come back, and end.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Returned is a lent run that has ended.
type Returned struct {
	Ticket Ticket
	// End is the end of the run as a handler's: it may set a result, progress and usage, and returns an outcome. Nil gives the run back, uncharged,
	// as if it had not begun.
	End func(t *Task[json.RawMessage]) error
	// Number is that of the last [Keep] of the run which has stored something; zero if there was none, or they had none. With it, a task that was lent
	// by this process need not be read again.
	Number int64
	// Output is what the run has printed that is not stored yet; nil for nothing. It is stored if the run still had its task.
	Output *SentOutput
}

// ReturnedAs is what became of it.
type ReturnedAs struct {
	Lost     bool // another worker has the task, or may have it: nothing of the run is stored
	Released bool // it was given back
	Status   Status
	Next     time.Time // when the task is due again; zero if not
	Err      error     // nothing is known: send it again. A *[NotFoundError] for a task that is gone
}

// Return ends lent runs with any outcome. Their tasks are read once, and settled in one call; the fence decides whether a run still has its task. Sent
// again, as its answer was lost, a run that has ended changes nothing and is answered as before, while the history of its task has it. The answers are in
// the order of ends.
func (l *Lender) Return(ctx context.Context, ends ...Returned) ([]ReturnedAs, error) {
	e, err := l.ends(ctx, ends)
	if err != nil {
		return nil, err
	}
	return l.store(ctx, e), nil
}

// Turn is Return and [Lender.Lend] in one call of the store: the claim takes the ends along. The ends are stored however the claim goes, and what is
// wrong with either is found before.
func (l *Lender) Turn(ctx context.Context, ends []Returned, of Loan) ([]ReturnedAs, Lent, error) {
	of, err := l.checked(of)
	if err != nil {
		return nil, Lent{}, err
	}
	e, err := l.ends(ctx, ends)
	if err != nil {
		return nil, Lent{}, err
	}
	lent, err := l.lend(ctx, of, &e.settler)
	as := l.store(ctx, e)
	return as, l.inForce(ctx, lent), err
}

// ends are runs that have come back, decided and not stored.
type ends struct {
	settler settler
	runs    []Returned
	pulls   []*pull // one for each worker
	out     []ReturnedAs
}

// ends decides how runs end.
func (l *Lender) ends(ctx context.Context, runs []Returned) (*ends, error) {
	if len(runs) > MaxLent {
		return nil, check.Invalid("runs", "are %d: the limit is %d a call", len(runs), MaxLent)
	}
	e := &ends{settler: settler{s: l.s, held: true}, runs: runs, out: make([]ReturnedAs, len(runs))}
	workers, seen := map[string][]int{}, map[store.Run]bool{}
	for i := range runs {
		if err := cmp.Or(l.checkTicket(&runs[i].Ticket), runs[i].Output.Check()); err != nil {
			return nil, err
		}
		run := runs[i].Ticket.run()
		if e.out[i].Lost = seen[run]; seen[run] {
			continue
		}
		seen[run] = true
		workers[runs[i].Ticket.Worker] = append(workers[runs[i].Ticket.Worker], i)
	}
	for _, worker := range slices.Sorted(maps.Keys(workers)) {
		l.endFrom(ctx, worker, runs, workers[worker], e)
	}
	return e, nil
}

// endWithin is how long the ends of runs are tried to be stored in one call.
const endWithin = 10 * time.Second

// endFrom decides how runs of one worker end.
func (l *Lender) endFrom(ctx context.Context, worker string, ends []Returned, of []int, e *ends) {
	at := map[*run]int{}
	o := &loan{Loan: Loan{Worker: worker, Lease: DefaultLoanLease}}
	o.ended = func(r *run, result store.Settled) {
		o.mu.Lock()
		defer o.mu.Unlock()
		e.out[at[r]] = returnedAs(r, result)
	}
	// The outcome is stored also if the worker does not wait for the answer. A store that is away is not waited for: the worker sends it again.
	ctx = context.WithoutCancel(ctx)
	p := newPull(ctx, l.s, Scope{loan: o, MaxDuration: endWithin})
	p.settler = &e.settler
	p.outlook.AimAtNothing() // no partition is asked
	e.pulls = append(e.pulls, p)
	var runs []*run
	for _, i := range of {
		r, err := l.restore(ctx, p, &ends[i].Ticket, ends[i].Number)
		if r == nil {
			e.out[i] = ReturnedAs{Lost: err == nil, Err: err}
			continue
		}
		at[r] = i
		runs = append(runs, r)
	}
	for _, r := range runs {
		if end := ends[at[r]].End; end != nil {
			r.conclude(r.end(end), max(l.s.base.StoreNow().Sub(ends[at[r]].Ticket.Claimed), 0), true)
		} else {
			giveBack(p, r, false)
		}
	}
}

// store stores the ends that no claim has taken along.
func (l *Lender) store(ctx context.Context, e *ends) []ReturnedAs {
	e.settler.flush()
	for _, p := range e.pulls {
		p.open.Wait()
		p.heartbeat.Stop()
		p.toReplan.CarryOut(p.ctx)
		_, _ = p.finish(nil)
		p.close()
	}
	printed := l.prints(len(e.out))
	for i := range e.out {
		// guard: lent-output-ends
		if end := &e.out[i]; !end.Lost && end.Err == nil {
			printed.add(&e.runs[i].Ticket, e.runs[i].Output, true, new(int64))
		}
		// guard: ended-before
		if e.out[i].Lost {
			e.out[i] = l.endedBefore(ctx, &e.runs[i].Ticket)
		}
	}
	printed.store(ctx)
	return e.out
}

// endedBefore is what became of a run that its task does not have any more: it is lost, unless the history says that it has ended.
func (l *Lender) endedBefore(ctx context.Context, t *Ticket) ReturnedAs {
	as := ReturnedAs{Lost: true}
	found, err := l.s.store.Get(ctx, store.Get{Agent: t.Agent, IDs: []string{t.ID}})
	if err != nil {
		return as // its task is gone, or cannot be read now
	}
	task := codec.Inform(&found.Tasks[0])
	for _, r := range task.Runs {
		// Another run of the worker begins no sooner than this one has ended, or its lease.
		after := moment.Of(r.Started).Sub(t.Claimed)
		if r.Process != t.Worker || after < 0 || after >= MinLoanLease || slices.Contains(noEnds, r.Outcome) {
			continue
		}
		as = ReturnedAs{Status: task.Status, Next: task.NextRun}
		if !task.Status.Finished() {
			as.Status = StatusWaiting
		}
	}
	return as
}

// noEnds are outcomes in the history that no worker has sent.
var noEnds = []model.Outcome{model.OutcomeCrashed, model.OutcomeSkipped, model.OutcomeReleased}

// returnedAs is what became of a run by the answer of the store.
func returnedAs(r *run, result store.Settled) ReturnedAs {
	// guard: lent-unknown
	if unknown, ok := errors.AsType[givenUpError](result.Err); ok {
		return ReturnedAs{Err: unknown.error}
	}
	// guard: lent-refused
	if result.Err != nil {
		return ReturnedAs{Lost: true}
	}
	out := ReturnedAs{Released: r.verdict.Released, Status: StatusWaiting, Next: result.Due.Time()}
	switch r.verdict.Settlement.Verb {
	case store.VerbComplete:
		out.Status = StatusCompleted
	case store.VerbFail:
		out.Status = StatusFailed
	case store.VerbCancel:
		out.Status = StatusCancelled
	default:
	}
	return out
}

// restore is a lent run as if it had been made here; nil if its task has ended or is waiting.
func (l *Lender) restore(ctx context.Context, p *pull, t *Ticket, number int64) (*run, error) {
	claimed, err := l.read(ctx, t, number)
	if claimed == nil {
		return nil, err
	}
	l.learn(t.run(), nil, 0, 0)
	c := &store.Claim{Look: store.Look{Partition: t.Partition}, Fence: t.Fence, Tasks: []Claimed{*claimed}}
	r := &run{pull: p, claimed: &c.Tasks[0], recorder: recorder{most: int32(p.s.config.MaxResult)}} //nolint:gosec // it is bounded by mostBytes
	if err := r.body.Decode(claimed.Body); err != nil {
		return nil, fmt.Errorf("decode task: %w", err)
	}
	if err := r.state.Decode(claimed.State); err != nil {
		return nil, fmt.Errorf("decode state: %w", err)
	}
	r.describe()
	r.info.Claimed = t.Claimed.Time()
	p.heartbeat.Add(c, p.s.config.Clock.Now().Add(t.Lease), t.Lease) // so that it can be taken back if no other process has begun it since
	p.open.Enter(t.Agent, 1)
	return r, nil
}

// read is the task of a lent run, as it was claimed but for its state, which is the last one; nil if the task has ended or is waiting. It is read where
// this process does not know it.
func (l *Lender) read(ctx context.Context, t *Ticket, number int64) (*Claimed, error) {
	if c, known := l.recall(t.run(), number); known {
		c.Run = t.run()
		return &c, nil
	}
	found, err := l.s.store.Get(ctx, store.Get{Agent: t.Agent, IDs: []string{t.ID}})
	if err != nil {
		return nil, err
	}
	st := &found.Tasks[0]
	l.s.base.Observe(found.Now)
	if st.Status != StatusInProgress {
		return nil, nil //nolint:nilnil // it is lost, and nothing is wrong
	}
	profile, err := l.s.store.ProfileOf(ctx, t.Agent)
	if err != nil {
		return nil, err
	}
	return &Claimed{
		Run: t.run(), Kind: st.Kind, Level: st.Level, Due: t.Due, Submitted: st.Submitted, Crashes: t.Crashes, Body: st.Body, State: st.State, Profile: profile,
	}, nil
}

// end is the outcome of a run that has come back.
func (r *run) end(end func(t *Task[json.RawMessage]) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: fmt.Sprint(v)}
		}
	}()
	t, err := decodeTask[json.RawMessage](r)
	if err == nil {
		err = end(t)
	}
	if errors.Is(err, errLent) || errors.Is(err, ErrLeaseLost) { // only the store says that
		err = &outcome.FatalError{Reason: "outcome", Err: errors.New(err.Error())}
	}
	return err
}
