package steps

// The steps of a run that do something, sleep, or wait for a signal.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// ErrTimeout is the error of a wait for which nothing came in time.
var ErrTimeout = errors.New("nothing came in time")

// Run is a run whose steps are kept. Its methods may be called by several goroutines.
type Run struct {
	s    *core.Scheduler
	info *core.RunInfo

	saving sync.Mutex
	mu     sync.Mutex
	log    Log
	named  map[string]bool // the steps that this run has come to
	wrong  error           // why the log cannot be read
}

// Begin reads the log of a run, which is empty at first. The scheduler is for steps that submit tasks; a handler without them may leave it nil.
func Begin(s *core.Scheduler, info *core.RunInfo) *Run {
	r := &Run{s: s, info: info, named: map[string]bool{}}
	var data json.RawMessage
	if found, err := info.Checkpoint(&data); found && err == nil {
		ok := false
		if r.log, ok = ReadLog(data); !ok {
			r.wrong = core.SkipRetry(errors.New("the checkpoint of the task is no log of steps: it was left by a handler that has another one"))
		}
	}
	return r
}

// Key is a name of a step that is the same whenever it is repeated, and of no other step: the idempotency key of what it calls.
func (r *Run) Key(step string) string {
	return r.info.Agent + "/" + r.info.ID + "/" + r.info.Occurrence.UTC().Format("20060102T150405.000Z") + "/" + step
}

// Log is the log as it is now.
func (r *Run) Log() Log {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Log{Done: append([]Step(nil), r.log.Done...), Waits: r.log.Waits}
}

// Do does a step, or returns what it has returned in an earlier run. When it returns nil the result is stored, and the step is not done again in this
// occurrence. It fails with the error of the step, which is kept as it is; with [core.ErrLeaseLost] if another process has the task; and with the
// cause of ctx. While the store is away it waits, as what comes next must not begin before the step is stored.
func Do[T any](ctx context.Context, r *Run, name string, step func(ctx context.Context) (T, error)) (T, error) {
	var out T
	done, err := r.enter(name)
	if err != nil {
		return out, err
	}
	if done != nil {
		return decode[T](done)
	}
	if ctx.Err() != nil {
		return out, fmt.Errorf("step %s: %w", name, context.Cause(ctx))
	}
	begun, before := clock.Now(), r.info.Used()
	if out, err = step(ctx); err != nil {
		return out, fmt.Errorf("step %s: %w", name, err)
	}
	result, err := json.Marshal(out)
	if err != nil {
		return out, core.SkipRetry(fmt.Errorf("step %s: its result: %w", name, err))
	}
	r.did(Step{Name: name, Result: result, Millis: clock.Now().Sub(begun).Milliseconds(), Used: spent(before, r.info.Used())})
	return out, r.save(ctx, name)
}

// Sleep ends the run, and has it go on behind this step after a time: with no slot and no lease. It returns nil when that is over, and before that an
// error which the handler returns. An operator who runs the task by hand ends the sleep.
func (r *Run) Sleep(name string, d time.Duration) error {
	done, err := r.enter(name)
	if err != nil || done != nil {
		return err
	}
	if r.waited(name, ForTime) != nil {
		r.did(Step{Name: name}) // it is stored with the next step, and if there is none the run comes here again
		return nil
	}
	data, err := r.pause(Pause{Name: name, For: ForTime, Until: clock.Now().Add(d)})
	if err != nil {
		return err
	}
	return core.Yield(data, d)
}

// SignalKey is the key of the signal that [Wait] waits for: the id of the task, a slash, and the name of the step.
func (r *Run) SignalKey(step string) string { return bounded(r.info.ID + "/" + step) }

// Wait ends the run until a signal comes, and returns its payload; see [core.Await]. The signal's key is [Run.SignalKey]. With a timeout it waits no
// longer than that, and fails with [ErrTimeout]; with zero it waits for ever. An error which is not that is returned by the handler.
func Wait[T any](r *Run, name string, timeout time.Duration) (T, error) {
	return WaitFor[T](r, name, core.Signal{Key: r.SignalKey(name), Timeout: timeout})
}

// WaitFor is Wait for a signal with a key of its own, or that counts only from some: [core.FromApproval].
func WaitFor[T any](r *Run, name string, signal core.Signal) (T, error) {
	var none T
	done, err := r.enter(name)
	if err != nil {
		return none, err
	}
	if done != nil {
		return decode[T](done)
	}
	var until time.Time
	if signal.Timeout > 0 {
		until = clock.Now().Add(signal.Timeout)
	}
	if w := r.waited(name, ForSignal); w != nil {
		heard, ok := r.info.Heard()
		if ok && heard.Key == signal.Key && (heard.Told || heard.TimedOut) {
			step := Step{Name: name, Result: heard.Payload, TimedOut: !heard.Told}
			r.did(step) // it is heard again until it is stored, with the next step
			return decode[T](&step)
		}
		if until = w.Until; !until.IsZero() { // it was run by hand: it waits for the rest of its time
			signal.Timeout = max(until.Sub(clock.Now()), time.Millisecond)
		}
	}
	data, err := r.pause(Pause{Name: name, For: ForSignal, Until: until})
	if err != nil {
		return none, err
	}
	return none, core.Await(signal, data)
}

// decode is the result of a step that is done.
func decode[T any](s *Step) (T, error) {
	var out T
	if s.TimedOut {
		return out, fmt.Errorf("step %s: %w", s.Name, ErrTimeout)
	}
	if len(s.Result) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(s.Result, &out); err != nil {
		return out, core.SkipRetry(fmt.Errorf("step %s has returned something else before: %w", s.Name, err))
	}
	return out, nil
}

// enter comes to a step. It returns what is known of it if it is done.
func (r *Run) enter(name string) (*Step, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.wrong != nil:
		return nil, r.wrong
	case name == "":
		return nil, core.SkipRetry(&core.InvalidError{Field: "step", Reason: "needs a name"})
	case r.named[name]:
		return nil, core.SkipRetry(&core.InvalidError{Field: "step", Reason: fmt.Sprintf("%q comes twice in one run: steps are known by their names", name)})
	}
	r.named[name] = true
	if done := r.log.find(name); done != nil {
		copied := *done
		return &copied, nil
	}
	return nil, nil //nolint:nilnil // it is not done
}

// did notes that a step is done.
func (r *Run) did(step Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	step.At = now()
	r.log.Done = append(r.log.Done, step)
	if w := r.log.Waits; w != nil && w.Name == step.Name {
		r.log.Waits = nil
	}
}

// encode is the log as it is now.
func (r *Run) encode() (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.encode()
}

// waited is what the log says that the run has waited for, if it is this step.
func (r *Run) waited(name string, reason Reason) *Pause {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.log.Waits; w != nil && w.Name == name && w.For == reason {
		return w
	}
	return nil
}

// pause notes what the run waits for, and returns the log to be stored.
func (r *Run) pause(p Pause) (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Since = now()
	if w := r.log.Waits; w != nil && w.Name == p.Name {
		p.Since = w.Since
	}
	if !p.Until.IsZero() {
		p.Until = p.Until.UTC().Truncate(time.Millisecond)
	}
	r.log.Waits = &p
	return r.log.encode()
}

// Pauses between attempts to store a step.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// save stores the log, and tries until that is done. Steps of several goroutines are stored one after the other, so that no older log comes last.
func (r *Run) save(ctx context.Context, name string) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	data, err := r.encode()
	if err != nil {
		return err
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := r.info.Save(ctx, data)
		if err == nil || errors.Is(err, core.ErrLeaseLost) {
			return err
		}
		if _, invalid := errors.AsType[*core.InvalidError](err); invalid {
			return err
		}
		over := make(chan struct{})
		stop := clock.AfterFunc(pause, func() { close(over) })
		select {
		case <-over:
		case <-ctx.Done():
			stop()
			return fmt.Errorf("step %s is done, and may not be stored: %w", name, errors.Join(context.Cause(ctx), err))
		}
	}
}

// clock is the machine's: what it measures is shown, and decides nothing but how long a step is stored for.
var clock core.SystemClock

// now is a time as the log has it.
func now() time.Time { return clock.Now().UTC().Truncate(time.Millisecond) }
