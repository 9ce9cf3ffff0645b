package contract

// A lent run in the process of its worker: how it is read, and what is sent when it has ended.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strconv"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// Lent is a run that a worker has got.
type Lent struct {
	Task    *core.Task[json.RawMessage]
	Ticket  string
	Timeout time.Duration // how long it may take; zero for any time
}

// DecodeLent reads what EncodeLent has written. news, save and prints are those of [core.Outside]; the last is used if the server takes what a run
// prints, and nil otherwise.
func DecodeLent(data []byte, news func(), save func(ctx context.Context, checkpoint json.RawMessage) error, prints io.Writer) (*Lent, error) {
	in := lent{input: &input{}}
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("read a run: %w", err)
	}
	out := &Lent{Ticket: in.Ticket}
	if !in.Prints {
		prints = nil
	}
	o := core.Outside{
		RunInfo: core.RunInfo{
			Agent: in.Agent, ID: in.ID, Kind: in.Kind, Group: in.Group, Level: in.Level, Attempt: in.Attempt, Zone: in.Zone, Parent: in.Parent,
			Fence: in.Fence, TraceID: in.TraceID, Traceparent: in.Traceparent, SessionID: in.SessionID, UserID: in.UserID, Info: in.Info,
			Tags: in.Tags, Labels: in.Labels, Crashes: in.Crashes,
		},
		Calls: in.Call - 1, Checkpoint: in.Checkpoint, Gate: in.Gate, Values: in.Values, MaxResult: in.Most, News: news, Store: save, Output: prints,
	}
	if h := in.Heard; h != nil {
		o.Heard = &core.Heard{Key: h.Key, Told: h.Told, Payload: h.Payload, TimedOut: h.TimedOut, How: h.How, By: h.By, Question: h.Question}
	}
	for _, at := range []struct {
		text string
		into *time.Time
	}{{in.Due, &o.Due}, {in.Occurrence, &o.Occurrence}, {in.Submitted, &o.Submitted}} {
		var err error
		if *at.into, err = time.Parse(time.RFC3339, at.text); err != nil {
			return nil, fmt.Errorf("read a run: %w", err)
		}
	}
	if in.Timeout != "" {
		var err error
		if out.Timeout, err = time.ParseDuration(in.Timeout); err != nil {
			return nil, fmt.Errorf("read a run: %w", err)
		}
	}
	out.Task = &core.Task[json.RawMessage]{Payload: in.Payload, RunInfo: o.Run()}
	return out, nil
}

// End is what is sent of a run that has ended, beside its ticket: what its handler has returned, and why its context was done.
func End(t *core.RunInfo, err, cause error, now time.Time) map[string]any {
	fields := core.OutcomeFields(err, cause, now)
	result, progress := t.Recorded()
	if fields["release"] != nil { // nothing of it is kept, and what it has used counts
		result, progress = nil, nil
	}
	if fields["error"] != nil || fields["yield"] != nil || fields["await"] != nil {
		result = nil
	}
	if result != nil {
		fields["result"] = result
	}
	if progress != nil {
		fields["progress"] = progress
	}
	if used := unsaid(t.Used(), result); len(used) > 0 {
		fields["usage"] = used
	}
	// What no server takes for JSON, such as half of a surrogate pair, would have the runs refused that are sent with it.
	data, failed := json.Marshal(fields)
	if failed == nil {
		failed = core.CheckJSON("outcome", data)
	}
	if failed != nil {
		fields = map[string]any{"error": Text([]byte(failed.Error())), "no_retry": true}
	}
	return fields
}

// unsaid is what a run has used without what its result says of that: the server adds it when it reads the result, see [Keep].
func unsaid(used core.Usage, result json.RawMessage) core.Usage {
	said := core.NewTestRun(nil)
	if len(result) == 0 || useOf(said, result) != nil {
		return used
	}
	used = maps.Clone(used)
	for unit, amount := range said.Used() {
		// To the nearest millionth, as amounts are counted.
		left, _ := strconv.ParseFloat(strconv.FormatFloat(used[unit]-amount, 'f', 6, 64), 64)
		if used[unit] = left; left <= 0 {
			delete(used, unit)
		}
	}
	return used
}
