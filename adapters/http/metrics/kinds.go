package metrics

import (
	"slices"
	"sync"

	"github.com/seed-6f6f2c11/duly/core"
)

// Kinds as labels. A label for each submitted kind would grow without bound: kinds
// that have a handler are few.

// otherKind is the label of all kinds that have no handler here.
const otherKind = "other"

// kinds bound the label kind. A client that may submit can invent any number of kinds; those that have a handler are a program's
// own, and few.
// It has a lock of its own, as events come from many goroutines at once.
type kinds struct {
	mu        sync.RWMutex
	scheduler *core.Scheduler
	known     map[string]bool
}

// label is the name of a kind in a label.
// Nearly all calls find the kind known, under a read lock.
func (m *Metrics) label(kind string) string {
	m.kinds.mu.RLock()
	known, s := m.kinds.known[kind], m.kinds.scheduler
	m.kinds.mu.RUnlock()
	switch {
	case known:
		return kind
	case s == nil || !slices.Contains(s.Kinds(), kind):
		return otherKind
	default:
		m.learn(kind)
		return kind
	}
}

// watch makes the kinds that a scheduler has handlers for known.
// A handler that is registered later is found by label, when its first task comes.
func (m *Metrics) watch(s *core.Scheduler) {
	m.kinds.mu.Lock()
	m.kinds.scheduler = s
	m.kinds.mu.Unlock()
	for _, kind := range s.Kinds() {
		m.learn(kind)
	}
}

// learn makes a kind known, with all its series.
// Its series start at zero, so that rate sees their first step.
func (m *Metrics) learn(kind string) {
	for _, outcome := range outcomes {
		m.runs.WithLabelValues(kind, outcome)
	}
	m.runSeconds.WithLabelValues(kind)
	m.lagSeconds.WithLabelValues(kind)
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	if m.kinds.known == nil {
		m.kinds.known = map[string]bool{}
	}
	m.kinds.known[kind] = true
}
