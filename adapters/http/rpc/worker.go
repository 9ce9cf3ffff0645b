package rpc

// The calls of workers: those of the API, in messages. What they mean is the API's.

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/http/rpc/schedulerpb"
	"github.com/seed-6f6f2c11/duly/core"
)

// mostWork is how many bytes a message of a worker may have, decompressed: results and checkpoints of some runs.
const mostWork = 1 << 20

// worker answers the calls of WorkerService.
type worker struct {
	*service

	workers operation.Workers
}

var _ schedulerpb.WorkerServiceHandler = (*worker)(nil)

// Workers makes what answers the calls of workers, and names the service.
func (h *Handler) Workers(w operation.Workers) (string, http.Handler) {
	_, calls := schedulerpb.NewWorkerServiceHandler(&worker{h.own, w}, append(h.options, connect.WithReadMaxBytes(mostWork))...)
	return schedulerpb.WorkerServiceName, giver{calls}
}

// giver has runs given back whose answer could not be sent.
type giver struct{ calls http.Handler }

// unsentKey is the key, in the context of a call, of what is to be called if its answer cannot be sent.
type unsentKey struct{}

func (g giver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var unsent func()
	out := &watched{ResponseWriter: w}
	g.calls.ServeHTTP(out, r.WithContext(context.WithValue(r.Context(), unsentKey{}, &unsent)))
	if unsent == nil {
		return
	}
	if out.failed == nil {
		out.failed = http.NewResponseController(w).Flush()
	}
	// guard: unsent-messages
	if out.failed != nil || r.Context().Err() != nil {
		unsent()
	}
}

// watched is an answer that remembers whether it could be written.
type watched struct {
	http.ResponseWriter

	failed error
}

// Write writes.
func (w *watched) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	if err != nil {
		w.failed = err
	}
	return n, err
}

// Unwrap is for the controller of the answer.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what is written.
func (w *watched) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// lends notes what gives runs back that cannot be sent.
func lends(ctx context.Context, unsent func()) {
	if to, ok := ctx.Value(unsentKey{}).(*func()); ok {
		*to = unsent
	}
}

// Claim hands out runs.
func (w *worker) Claim(ctx context.Context, r *connect.Request[schedulerpb.ClaimRequest]) (*connect.Response[schedulerpb.ClaimResponse], error) {
	q, err := claimOf(r.Msg)
	var lent *operation.Lent
	var unsent func()
	if err == nil {
		lent, unsent, err = w.workers.Claim(ctx, q)
	}
	lends(ctx, unsent)
	if err != nil {
		return nil, w.failed(ctx, r.Spec().Procedure, err)
	}
	return connect.NewResponse(lentAs(lent)), nil
}

// claimOf is what a worker asks for.
func claimOf(m *schedulerpb.ClaimRequest) (*operation.Claim, error) {
	q := &operation.Claim{Kinds: m.GetKinds(), Agents: m.GetAgentIds(), Most: int(m.GetMost()), Worker: m.GetWorker()}
	if len(q.Agents) == 0 {
		q.Agents = nil // a message does not tell an empty list from none
	}
	wait, err := durationOf("wait", m.GetWait())
	if err == nil && wait > 0 {
		q.Wait = wait.String()
	}
	lease := time.Duration(0)
	if err == nil {
		lease, err = durationOf("lease", m.GetLease())
		q.Lease = operation.Duration(lease)
	}
	return q, err
}

// durationOf is a duration of a message; zero if it is missing.
func durationOf(field string, d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if err := d.CheckValid(); err != nil || d.AsDuration() <= 0 {
		return 0, &core.InvalidError{Field: field, Reason: "must be longer than 0s: leave it out for the default"}
	}
	return d.AsDuration(), nil
}

// lentAs are runs as they are sent; nil for none.
func lentAs(lent *operation.Lent) *schedulerpb.ClaimResponse {
	if lent == nil {
		return nil
	}
	out := &schedulerpb.ClaimResponse{NextDueAt: nextDue(lent.Next)}
	for _, run := range lent.Runs {
		out.Runs = append(out.Runs, string(run))
	}
	return out
}

// nextDue is a time of a message; nil for never.
func nextDue(t *time.Time) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return stamp(*t)
}

// Keep holds runs for another lease.
func (w *worker) Keep(ctx context.Context, r *connect.Request[schedulerpb.KeepRequest]) (*connect.Response[schedulerpb.KeepResponse], error) {
	q := operation.Keep{}
	for _, sign := range r.Msg.GetRuns() {
		fields := map[string]any{"ticket": sign.GetTicket()}
		if sign.GetNumber() != 0 {
			fields["number"] = sign.GetNumber()
		}
		if len(sign.GetUsage()) > 0 {
			fields["usage"] = sign.GetUsage()
		}
		if o := sign.GetOutput(); o != nil {
			fields["output"] = operation.Printed{At: o.GetAt(), Text: o.GetText()}
		}
		run, err := joined(fields, map[string]string{"progress": sign.GetProgress(), "checkpoint": sign.GetCheckpoint()})
		if err != nil {
			return nil, w.failed(ctx, r.Spec().Procedure, err)
		}
		q.Runs = append(q.Runs, run)
	}
	kept, err := w.workers.Keep(ctx, q)
	if err != nil {
		return nil, w.failed(ctx, r.Spec().Procedure, err)
	}
	out := &schedulerpb.KeepResponse{}
	for _, k := range kept.Runs {
		out.Runs = append(out.Runs, &schedulerpb.KeptRun{Kept: k.Kept, End: string(k.End), Reason: k.Reason, Error: k.Error, Printed: k.Printed})
	}
	return connect.NewResponse(out), nil
}

// joined is an object with fields, and with those that have JSON of their own.
func joined(fields map[string]any, texts map[string]string) (json.RawMessage, error) {
	for name, text := range texts {
		if text == "" {
			continue
		}
		if !json.Valid([]byte(text)) {
			return nil, &core.InvalidError{Field: name, Reason: "must be JSON"}
		}
		fields[name] = json.RawMessage(text)
	}
	out, err := json.Marshal(fields)
	if err != nil { // a number of the usage that JSON does not have
		return nil, &core.InvalidError{Field: "usage", Reason: "must be finite numbers"}
	}
	return out, nil
}

// Return ends runs, and hands out the next.
func (w *worker) Return(ctx context.Context, r *connect.Request[schedulerpb.ReturnRequest]) (*connect.Response[schedulerpb.ReturnResponse], error) {
	q, err := returnOf(r.Msg)
	var returned *operation.Returned
	var unsent func()
	if err == nil {
		returned, unsent, err = w.workers.Return(ctx, q)
	}
	lends(ctx, unsent)
	if err != nil {
		return nil, w.failed(ctx, r.Spec().Procedure, err)
	}
	out := &schedulerpb.ReturnResponse{Claimed: lentAs(returned.Claimed)}
	for i := range returned.Runs {
		as := &returned.Runs[i]
		out.Runs = append(out.Runs, &schedulerpb.ReturnedRun{Ended: string(as.Ended), NextDueAt: nextDue(as.Next), Error: as.Error})
	}
	return connect.NewResponse(out), nil
}

// returnOf are the ends of runs, and what is asked for next.
func returnOf(m *schedulerpb.ReturnRequest) (*operation.Return, error) {
	q := &operation.Return{}
	for _, end := range m.GetRuns() {
		run, err := endOf(end)
		if err != nil {
			return nil, err
		}
		q.Runs = append(q.Runs, run)
	}
	if m.GetClaim() == nil {
		return q, nil
	}
	claim, err := claimOf(m.GetClaim())
	if err == nil {
		q.Claim, err = json.Marshal(claim)
	}
	return q, err
}

// endOf is the end of a run: its outcome, and the fields of the message beside it.
func endOf(end *schedulerpb.End) (json.RawMessage, error) {
	fields := map[string]any{}
	if text := end.GetOutcome(); text != "" {
		outcome := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(text), &outcome); err != nil || outcome == nil {
			return nil, &core.InvalidError{Field: "outcome", Reason: "must be a JSON object"}
		}
		for name, value := range outcome {
			fields[name] = value
		}
	}
	for _, name := range []string{"ticket", "number", "release", "output"} {
		if _, has := fields[name]; has {
			return nil, &core.InvalidError{Field: "outcome", Reason: "has " + name + ", which is a field of the message"}
		}
	}
	fields["ticket"] = end.GetTicket()
	if end.GetNumber() != 0 {
		fields["number"] = end.GetNumber()
	}
	if end.GetRelease() {
		fields["release"] = true
	}
	if o := end.GetOutput(); o != nil {
		fields["output"] = operation.Printed{At: o.GetAt(), Text: o.GetText()}
	}
	return joined(fields, nil)
}
