package http

// The ends of runs as workers send them.

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// returnRuns ends runs, and hands out the next if they are asked for.
func (a *lending) returnRuns(w http.ResponseWriter, r *http.Request) {
	var q operation.Return
	err := readBody(r, true, &q)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	out, unsent, err := a.Return(r.Context(), &q)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.sendRuns(w, r, out, unsent)
}

// Return ends runs, and hands out the next if they are asked for.
func (a *lending) Return(ctx context.Context, q *operation.Return) (*operation.Returned, func(), error) {
	said, next, err := readReturn(q)
	if err != nil {
		return nil, nil, err
	}
	out := &operation.Returned{Runs: make([]operation.ReturnedRun, len(said))}
	var ends []core.Returned
	var of []int
	for i := range said {
		end, err := a.returned(ctx, &said[i])
		if err != nil {
			out.Runs[i] = operation.ReturnedRun{Ended: operation.EndedRefused, Error: err.Error()}
			continue
		}
		ends, of = append(ends, end), append(of, i)
	}
	var returned []core.ReturnedAs
	var lent core.Lent
	if next != nil {
		returned, lent, err = a.lend(ctx, next, ends)
	} else {
		returned, err = a.lender.Return(ctx, ends...)
	}
	if len(returned) < len(ends) {
		return nil, nil, err
	}
	for i := range returned {
		out.Runs[of[i]] = returnedAs(&returned[i])
	}
	if next == nil || err != nil {
		return out, nil, nil //nolint:nilerr // the ends are stored: a claim that fails is made again by itself
	}
	var unsent func()
	out.Claimed, unsent, err = a.sealed(ctx, lent)
	return out, unsent, err
}

// readReturn reads the ends of runs, and the claim behind them; nil for none.
func readReturn(q *operation.Return) ([]end, *operation.Claim, error) {
	if err := tooManyRuns(len(q.Runs)); err != nil {
		return nil, nil, err
	}
	said := make([]end, len(q.Runs))
	for i, data := range q.Runs {
		if err := said[i].read(data); err != nil {
			return nil, nil, err
		}
	}
	if q.Claim == nil {
		return said, nil, nil
	}
	next := &operation.Claim{}
	o, err := strictjson.Parse("claim", q.Claim)
	if err == nil {
		err = o.Read("claim", strictjson.Fields(next)...)
	}
	return said, next, err
}

// end is the end of a run as it is sent: its ticket, and its outcome beside it.
type end struct {
	ticket  string
	number  int64
	release bool
	output  *operation.Printed
	used    core.Usage        // of a run that is given back
	outcome *contract.Outcome // nil for none
}

// read reads one strictly: what is no such end refuses the call as a whole.
func (e *end) read(data []byte) error {
	o, err := strictjson.Parse("runs", data)
	if err != nil {
		return err
	}
	own := strictjson.Object{}
	for _, name := range []string{"ticket", "number", "release", "output"} {
		if value, has := o[name]; has {
			own[name] = value
			delete(o, name)
		}
	}
	if err := own.Read("a run", strictjson.Field{Name: "ticket", Into: &e.ticket, Must: "must be a string"},
		strictjson.Field{Name: "number", Into: &e.number, Must: "must be a whole number", Zero: true},
		strictjson.Field{Name: "release", Into: &e.release, Must: "must be true or false"},
		strictjson.Field{Name: "output", Into: &e.output, Must: "must be an object of at, which is a number of bytes, and text"}); err != nil {
		return err
	}
	if usage, has := o["usage"]; e.release && has {
		delete(o, "usage")
		if err := (strictjson.Object{"usage": usage}).Read("a run", strictjson.Field{Name: "usage", Into: &e.used, Must: "must be an object of numbers"}); err != nil {
			return err
		}
	}
	if e.release && len(o) == 0 {
		return nil
	}
	rest, err := json.Marshal(o)
	if err == nil {
		e.outcome, err = contract.ParseOutcome(rest)
	}
	if err != nil {
		return &core.InvalidError{Field: "runs", Reason: "have an outcome that is none: " + err.Error()}
	}
	return nil
}

// returned is the end of one run, if its caller may end it and it makes sense.
func (a *lending) returned(ctx context.Context, e *end) (core.Returned, error) {
	ticket, err := a.ticketOf(ctx, e.ticket)
	out := core.Returned{Ticket: ticket, Number: e.number, Output: e.output}
	if err == nil {
		err = e.output.Check()
	}
	switch {
	case err != nil:
	case e.release && e.outcome != nil:
		err = &core.InvalidError{Field: "release", Reason: "must be alone beside the ticket, the usage and the output"}
	case len(e.used) > 0: // it had begun
		err = core.NewTestRun(nil).Use(e.used)
		out.End = func(t *core.Task[json.RawMessage]) error { return errors.Join(core.ErrStopping, t.Use(e.used)) }
	case e.outcome == nil:
	default:
		out.End, err = e.outcome.Read(a.config.Clock.Now())
	}
	return out, err
}

// returnedAs is the answer to one.
func returnedAs(e *core.ReturnedAs) operation.ReturnedRun {
	out := operation.ReturnedRun{Ended: operation.EndedAs(e.Status)}
	switch {
	case e.Err != nil:
		out.Ended, out.Error = operation.EndedUnknown, "the store did not answer: send it again"
	case e.Lost:
		out.Ended = operation.EndedLost
	case e.Released:
		out.Ended = operation.EndedReleased
	default:
	}
	if !e.Next.IsZero() {
		out.Next = &e.Next
	}
	return out
}

// tooManyRuns refuses a call about more runs than a claim has.
func tooManyRuns(n int) error {
	if n > core.MaxLent {
		return &core.InvalidError{Field: "runs", Reason: "are too many: the limit is 50 a call"}
	}
	return nil
}
