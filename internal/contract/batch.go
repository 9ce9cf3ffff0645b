package contract

// Batches: the JSON that a program or a server gets for several runs, and the outcomes that it answers with.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// said is what a program or a server says about one run of a batch: an empty object, or null, for a run that succeeded.
type said struct {
	Result     json.RawMessage `json:"result"`      // what the run has to show; it succeeded
	Progress   json.RawMessage `json:"progress"`    // how far it has come
	Usage      json.RawMessage `json:"usage"`       // what it has used, for budgets: an object of numbers
	Error      *string         `json:"error"`       // the run has failed, also if it is empty
	NoRetry    bool            `json:"no_retry"`    // with error: a retry would not help
	Cancel     bool            `json:"cancel"`      // with error: it cancels its task
	RetryAfter string          `json:"retry_after"` // with error: a duration; it is tried again after it, uncharged
	Snooze     string          `json:"snooze"`      // a duration; it runs again after it, uncharged
	Yield      string          `json:"yield"`       // the same, with a checkpoint
	Await      json.RawMessage `json:"await"`       // the key of a signal, or an object with key, timeout and on_timeout: it waits for that
	Checkpoint json.RawMessage `json:"checkpoint"`  // with yield or await: the next run gets it
	NextIn     string          `json:"next_in"`     // a duration; it succeeded, and the interval of the task is this from now on
}

// outcomeBytes is how much an outcome may be beside its result.
const outcomeBytes = 4 << 10

// MostOutcomes is how long the answer to a batch may be, in bytes, with a byte more that tells a longer one.
func MostOutcomes(ts []*core.Task[json.RawMessage]) int {
	return len(ts)*(2*ts[0].MaxResult()+outcomeBytes) + 1
}

// EncodeBatch is the JSON array of the runs of a batch, each as Encode has it.
func EncodeBatch(ts []*core.Task[json.RawMessage]) ([]byte, error) {
	all := make([]json.RawMessage, len(ts))
	for i, t := range ts {
		one, err := Encode(t)
		if err != nil {
			return nil, err
		}
		all[i] = one
	}
	return json.Marshal(all)
}

// Shared are the values of bindings on which all runs of a batch agree.
func Shared(ts []*core.Task[json.RawMessage]) core.Values {
	shared := core.Values{}
	for name, value := range ts[0].Bound() {
		same := true
		for _, t := range ts[1:] {
			other, has := t.Bound()[name]
			same = same && has && other == value
		}
		if same {
			shared[name] = value
		}
	}
	return shared
}

// All is the same outcome for each of some runs.
func All(ts []*core.Task[json.RawMessage], err error) []error {
	outcomes := make([]error, len(ts))
	for i := range outcomes {
		outcomes[i] = err
	}
	return outcomes
}

// Outcomes are those of the runs of a batch, by an answer that has an outcome for each, in their order. One that does not, or has one that makes no
// sense, is an error, and nothing is kept: which of the runs were meant is not known. now is the time that retry_after counts from.
func Outcomes(ts []*core.Task[json.RawMessage], answer []byte, now time.Time) ([]error, error) {
	var all []said
	d := json.NewDecoder(bytes.NewReader(answer))
	d.DisallowUnknownFields()
	switch err := d.Decode(&all); {
	case err == io.EOF:
		return nil, fmt.Errorf("must be a JSON array of %d outcomes, and is empty", len(ts))
	case err != nil || !IsJSON(answer): // json.Valid of the whole also refuses what follows the array
		return nil, errors.Join(fmt.Errorf("must be a JSON array of %d outcomes, not %.40q", len(ts), answer), err)
	case len(all) != len(ts):
		return nil, fmt.Errorf("must have an outcome for each of the %d tasks, not %d", len(ts), len(all))
	}
	outcomes := make([]error, len(ts))
	for i := range all {
		var err error
		if outcomes[i], err = all[i].outcome(ts[i].RunInfo, now); err != nil {
			return nil, fmt.Errorf("outcome %d: %w", i, err)
		}
	}
	// Only now, so that an answer that is refused as a whole leaves nothing behind.
	for i := range all {
		if err := all[i].keep(ts[i].RunInfo); err != nil {
			outcomes[i] = err
		}
	}
	return outcomes, nil
}

// Outcome is what a worker says about one run, as a batch has it for each.
type Outcome struct{ said said }

// ParseOutcome reads one. Its error is about JSON that is none.
func ParseOutcome(data []byte) (*Outcome, error) {
	o := &Outcome{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return o, d.Decode(&o.said)
}

// Read returns a function that says it about a run, and returns what its handler would. What makes no sense is an error. now is the time that
// retry_after counts from.
func (o *Outcome) Read(now time.Time) (func(t *core.Task[json.RawMessage]) error, error) {
	s := o.said
	if _, err := s.outcome(core.NewTestRun(nil), now); err != nil {
		return nil, err
	}
	return func(t *core.Task[json.RawMessage]) error {
		outcome, err := s.outcome(t.RunInfo, now)
		if err == nil {
			err = s.keep(t.RunInfo)
		}
		if err != nil {
			return core.SkipRetry(err)
		}
		return outcome
	}, nil
}

// keep keeps the result of a run that has succeeded.
func (s *said) keep(t *core.RunInfo) error {
	if s.fails() || s.Yield != "" || s.Await != nil || string(s.Result) == "null" {
		return nil
	}
	if err := Keep(t, s.Result); err != nil {
		return core.SkipRetry(fmt.Errorf("the result cannot be kept: %w", err)) // its work is done
	}
	return nil
}

// fails reports whether an outcome is a failure.
func (s *said) fails() bool { return s.Error != nil }

// outcome is the outcome of a run. Its error says what is invalid.
func (s *said) outcome(t *core.RunInfo, now time.Time) (outcome, err error) {
	switch {
	case !s.fails() && (s.NoRetry || s.Cancel || s.RetryAfter != ""):
		return nil, errors.New("has no_retry, cancel or retry_after, which need an error")
	case s.fails() && (s.Snooze != "" || s.Yield != "" || s.NextIn != "" || s.Await != nil):
		return nil, errors.New("has an error, which excludes snooze, yield, await and next_in")
	case len(s.Checkpoint) > 0 && s.Yield == "" && s.Await == nil:
		return nil, errors.New("has a checkpoint, which needs a yield or an await")
	}
	if err := s.steer(t, &outcome); err != nil || !s.fails() {
		return outcome, err
	}
	return s.failure(now)
}

// steer takes what the outcome says beside success and failure, and sets what the run is to return for it.
func (s *said) steer(t *core.RunInfo, outcome *error) error {
	steering := NewSteering(t)
	for _, say := range []struct{ name, value string }{
		{Progress, string(s.Progress)}, {Usage, string(s.Usage)}, {Snooze, s.Snooze}, {NextIn, s.NextIn}, {Yield, s.Yield}, {Await, s.awaits()},
	} {
		if say.value == "" || say.value == "null" {
			continue
		}
		if say.name == Yield || say.name == Await {
			say.value += " " + string(s.Checkpoint)
		}
		if err := steering.Say(say.name, say.value); err != nil {
			return err
		}
	}
	*outcome = steering.Outcome()
	return nil
}

// awaits is what the outcome says it waits for, as [Steering.Say] takes it.
func (s *said) awaits() string {
	var key string
	if json.Unmarshal(s.Await, &key) == nil {
		return key
	}
	return string(s.Await)
}

// failure is the outcome of a run that has failed.
func (s *said) failure(now time.Time) (outcome, err error) {
	n := 0
	for _, is := range []bool{s.NoRetry, s.Cancel, s.RetryAfter != ""} {
		if is {
			n++
		}
	}
	failed := errors.New(Text([]byte(*s.Error)))
	switch {
	case n > 1:
		return nil, errors.New("no_retry, cancel and retry_after exclude each other: say one of them")
	case s.NoRetry:
		return core.SkipRetry(failed), nil
	case s.Cancel:
		return core.Cancel(failed), nil
	case s.RetryAfter != "":
		d, err := time.ParseDuration(s.RetryAfter)
		if err != nil || d < 0 || d > longest {
			return nil, fmt.Errorf("retry_after must be a duration such as 10m, not %.40q", s.RetryAfter)
		}
		return core.RetryAfter(now.Add(d), failed), nil
	default:
		return failed, nil
	}
}

// Trace is the traceparent that all tasks of a batch share, as they do where duly traces their runs; empty if they differ.
func Trace(ts []*core.Task[json.RawMessage]) string {
	for _, t := range ts[1:] {
		if t.Traceparent != ts[0].Traceparent {
			return ""
		}
	}
	return ts[0].Traceparent
}
