package metrics

import (
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// What is counted as it happens, in this process.

// The values of the label outcome that are no core.Outcome: such a run has not come to an end of its own, or is retried.
// They are part of the names that docs/reference/metrics.md promises.
const (
	outcomeRetried  = "retried"
	outcomeLost     = "lost"
	outcomeReleased = "released"
)

// outcomes are all values of the label outcome. The series of a kind exist, as zeros, before anything has happened: a
// counter that begins with 1 hides its first step from rate and increase.
var outcomes = []string{
	string(model.OutcomeSuccess), string(model.OutcomeFailed), outcomeRetried, string(model.OutcomeCancelled),
	string(model.OutcomeSnoozed), string(model.OutcomeYielded), string(model.OutcomeAwaiting), string(model.OutcomeSkipped), string(model.OutcomeCrashed),
	outcomeLost, outcomeReleased,
}

// Event counts an event: give it to core.Config.OnEvent, or call it from there. It never waits for anything.
// Series are bounded: kinds with a handler, and eleven outcomes of each.
func (m *Metrics) Event(e core.Event) {
	switch e.Type {
	case model.EventEnqueue:
		m.submitted.Inc()
	case model.EventStart:
		// By the clock of the store's events, and never below zero: clocks of two machines may differ.
		m.lagSeconds.WithLabelValues(m.label(e.Kind)).Observe(max(e.Time.Sub(e.Due), 0).Seconds())
	case model.EventFinish:
		outcome := string(e.Outcome)
		// core counts a retry as a failure, but an alarm wants those that are final.
		if e.Retried {
			outcome = outcomeRetried
		}
		m.ended(&e, outcome)
	case model.EventLost:
		m.lost.Inc()
		m.ended(&e, outcomeLost)
	case model.EventRelease:
		m.ended(&e, outcomeReleased)
	case model.EventBreaker:
		m.refused.WithLabelValues(string(e.Code)).Inc()
	case model.EventReset:
		m.resets.Inc()
	case model.EventHold:
		m.held.Inc()
	case model.EventFault:
		m.faults.WithLabelValues(string(e.Fault)).Inc()
	default: // the others say nothing of their own
	}
}

// ended counts a run, and how long it took if there was something to take time.
// A skip takes no time, and would make runs look short.
func (m *Metrics) ended(e *core.Event, outcome string) {
	kind := m.label(e.Kind)
	m.runs.WithLabelValues(kind, outcome).Inc()
	if e.Duration > 0 && e.Outcome != model.OutcomeSkipped {
		m.runSeconds.WithLabelValues(kind).Observe(e.Duration.Seconds())
	}
}

// Tick counts a tick: give it to core.Config.OnTick, or call it from there.
// An agent may get several batches in one tick; the tick counts when it ends.
func (m *Metrics) Tick(t core.Tick) {
	if t.Ended {
		m.ticks.Inc()
		m.tickTook.Observe(t.Duration.Seconds())
	}
}
