package worker

// A run: how it is begun and made, and how its end is returned.

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// run is a run that the worker has.
type run struct {
	lent    *contract.Lent
	ctx     context.Context //nolint:containedctx // of its handler
	cancel  context.CancelCauseFunc
	took    time.Duration
	end     map[string]any // what is sent of its end
	printed printed        // what it prints, if the server takes that
	denied  bool           // the server has refused its end: it is sent as a failure

	sending sync.Mutex // one sign of life at a time, so that answers come in the order of what they answer
	number  int64      // of the last that had something to store; of sending

	mu         sync.Mutex
	checkpoint json.RawMessage // to be stored
	progress   json.RawMessage // that was stored last, as was the use
	used       core.Usage
}

// begin starts runs. What comes when the worker has to stop is given back.
func (w *worker) begin(ctx context.Context, lent []json.RawMessage) {
	for _, data := range lent {
		r := &run{printed: printed{news: func() { signal(w.news) }}}
		var err error
		r.lent, err = contract.DecodeLent(data, func() { signal(w.news) }, func(ctx context.Context, c json.RawMessage) error { return w.save(ctx, r, c) }, &r.printed)
		if err != nil { // its lease ends by itself
			w.Logger.ErrorContext(ctx, "a run cannot be read: is the server of another version?", slog.Any("err", err))
			continue
		}
		//nolint:fatcontext // each run has its own, and none is within another
		r.ctx, r.cancel = context.WithCancelCause(core.InRun(ctx, r.lent.Task.RunInfo))
		w.mu.Lock()
		w.runs[r] = true
		w.mu.Unlock()
		if w.stops() {
			r.cancel(core.ErrStopping)
		}
		w.all.Go(func() { w.make(r) })
	}
}

// make makes a run, and hands its end over.
func (w *worker) make(r *run) {
	begun := time.Now()
	if t := r.lent.Timeout; t > 0 {
		defer time.AfterFunc(t, func() { r.cancel(core.ErrTimeout) }).Stop()
	}
	err := context.Cause(r.ctx)
	if err == nil {
		err = w.Handler(r.ctx, r.lent.Task)
	}
	r.took = time.Since(begun)
	r.end = contract.End(r.lent.Task.RunInfo, err, context.Cause(r.ctx), time.Now())
	r.cancel(nil)
	w.mu.Lock()
	w.ended = append(w.ended, r)
	w.mu.Unlock()
	signal(w.changed)
}

// mostBody is how much of a request's body is used: servers take a megabyte.
const mostBody = 700 << 10

// batch splits ends into those of one call and the rest.
func batch(ended []*run) (now, rest []*run) {
	size := 0
	for i, r := range ended {
		data, _ := json.Marshal(r.end) // contract.End has tried it
		if size += len(data) + len(r.lent.Ticket) + 100 + r.printed.size(); i == core.MaxLent || i > 0 && size > mostBody {
			return ended[:i:i], ended[i:]
		}
	}
	return ended, nil
}

// giveBack returns runs, and claims others in the same call. What is to be sent again is put back.
func (w *worker) giveBack(ctx context.Context, ends []*run, free int) error {
	sent, err := w.ends(ctx, ends)
	if err == nil && free > 0 {
		sent.Claim, err = json.Marshal(w.claimFor(free, false))
	}
	if err != nil {
		w.again(ends)
		return err
	}
	call, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	answer, err := w.Server.ReturnRuns(call, sent)
	if err == nil && len(answer.Runs) != len(ends) {
		err = errShort
	}
	if w.answered("return", err) != nil {
		w.again(ends)
		return err
	}
	var left []*run
	for i, r := range ends {
		switch w.returned(r, &answer.Runs[i]) {
		case operation.EndedUnknown:
			if w.stops() {
				left, err = append(left, r), errUnknown
				continue
			}
			w.all.Go(func() { w.later(ctx, r) })
		case operation.EndedRefused:
			left = append(left, r)
		default:
		}
	}
	w.again(left)
	if answer.Claimed != nil {
		w.begin(ctx, answer.Claimed.Runs)
	}
	return err
}

// later returns a run by itself whose part of the store is away: the others do not wait for it. What that call leaves goes with the others.
func (w *worker) later(ctx context.Context, r *run) {
	w.sleep(ctx, quick)
	if w.stops() {
		w.again([]*run{r})
	} else {
		_ = w.giveBack(ctx, []*run{r}, 0)
	}
	signal(w.changed)
}

// ends are the ends of runs as they are sent. A checkpoint that is not stored yet goes before them, as they have no room for it.
func (w *worker) ends(ctx context.Context, of []*run) (sent operation.Return, err error) {
	for _, r := range of {
		if r.saves() {
			if err := w.store(ctx, r); err != nil && r.saves() {
				return sent, err
			}
		}
		data, err := json.Marshal(r.said())
		if err != nil {
			return sent, err
		}
		sent.Runs = append(sent.Runs, data)
	}
	return sent, nil
}

// errUnknown is why an end is sent again at which the store of the server was away.
var errUnknown = errors.New("the store of the server did not answer")

// errShort is why a call counts as failed whose answer leaves runs out.
var errShort = errors.New("the server has not answered for all runs")

// again has runs returned before others.
func (w *worker) again(left []*run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(slices.Clip(left), w.ended...)
}

// said is what is sent of the end of a run.
func (r *run) said() map[string]any {
	r.sending.Lock()
	defer r.sending.Unlock()
	said := maps.Clone(r.end)
	said["ticket"] = r.lent.Ticket
	if r.number > 0 {
		said["number"] = r.number
	}
	if piece := r.printed.piece(true); piece != nil {
		said["output"] = piece
	}
	return said
}

// returned takes the answer about a run that was returned, and reports its end. It returns [operation.EndedUnknown] or [operation.EndedRefused] if its
// end is to be sent again.
func (w *worker) returned(r *run, a *operation.ReturnedRun) operation.EndedAs {
	e := core.Event{Type: model.EventFinish, Status: core.StatusWaiting, Outcome: r.outcome()}
	e.Error, _ = r.end["error"].(string)
	switch a.Ended {
	case operation.EndedUnknown:
		return a.Ended
	case operation.EndedRefused:
		if !r.denied { // it makes no sense to the server: that is a mistake of the program, which would repeat it
			r.denied, r.end = true, map[string]any{"error": "its outcome was refused: " + a.Error, "no_retry": true}
			return a.Ended
		}
		e.Type = model.EventLost
	case operation.EndedLost:
		e.Type = model.EventLost
	case operation.EndedReleased:
		e.Type = model.EventRelease
	case operation.EndedCancelled:
		e.Status, e.Outcome = core.StatusCancelled, model.OutcomeCancelled
	case operation.EndedCompleted:
		e.Status = core.StatusCompleted
	case operation.EndedFailed:
		e.Status = core.StatusFailed
	default:
	}
	if a.Next != nil {
		e.Next = *a.Next
	}
	w.mu.Lock()
	delete(w.runs, r)
	w.mu.Unlock()
	t := r.lent.Task
	e.Agent, e.ID, e.Kind, e.Attempt, e.Time, e.Duration, e.Process = t.Agent, t.ID, t.Kind, t.Attempt, time.Now(), r.took, w.Name
	w.OnEvent(e)
	return ""
}

// outcome is how a run has ended, by what is sent of it.
func (r *run) outcome() model.Outcome {
	switch {
	case r.end["error"] != nil:
		return model.OutcomeFailed
	case r.end["await"] != nil:
		return model.OutcomeAwaiting
	case r.end["snooze"] != nil || r.end["yield"] != nil:
		return model.OutcomeSnoozed
	default:
		return model.OutcomeSuccess
	}
}
