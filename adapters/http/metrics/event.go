package metrics

import (
	"github.com/seed-6f6f2c11/duly/core"
)

// What is counted as it happens, in this process.

// The values of the label outcome that are no core.Outcome: such a run has not come to an end of its own, or comes again.
const (
	outcomeRetried  = "retried"
	outcomeLost     = "lost"
	outcomeReleased = "released"
)

// outcomes are all values of the label outcome. The series of a kind exist, as zeros, before anything has happened: a
// counter that begins with 1 hides its first step from rate and increase.
var outcomes = []string{
	string(core.OutcomeSuccess), string(core.OutcomeFailed), outcomeRetried, string(core.OutcomeCancelled),
	string(core.OutcomeSnoozed), string(core.OutcomeYielded), string(core.OutcomeSkipped), string(core.OutcomeCrashed),
	outcomeLost, outcomeReleased,
}

// Event counts an event: give it to core.Config.OnEvent, or call it from there. It never waits for anything.
func (m *Metrics) Event(e core.Event) {
	switch e.Type {
	case core.EventEnqueue:
		m.submitted.Inc()
	case core.EventStart:
		m.lagSeconds.WithLabelValues(m.label(e.Kind)).Observe(max(e.Time.Sub(e.Due), 0).Seconds())
	case core.EventFinish:
		outcome := string(e.Outcome)
		if e.Retried {
			outcome = outcomeRetried
		}
		m.ended(&e, outcome)
	case core.EventLost:
		m.lost.Inc()
		m.ended(&e, outcomeLost)
	case core.EventRelease:
		m.ended(&e, outcomeReleased)
	case core.EventFault:
		m.faults.WithLabelValues(string(e.Fault)).Inc()
	default: // the others say nothing of their own
	}
}

// ended counts a run, and how long it took if there was something to take time.
func (m *Metrics) ended(e *core.Event, outcome string) {
	kind := m.label(e.Kind)
	m.runs.WithLabelValues(kind, outcome).Inc()
	if e.Duration > 0 && e.Outcome != core.OutcomeSkipped {
		m.runSeconds.WithLabelValues(kind).Observe(e.Duration.Seconds())
	}
}

// Tick counts a tick: give it to core.Config.OnTick, or call it from there.
func (m *Metrics) Tick(t core.Tick) {
	if t.Ended {
		m.ticks.Inc()
		m.tickTook.Observe(t.Duration.Seconds())
	}
}
