package core

// The report of a pull while it works.

import (
	"sync"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// mostFailures is how many failures a RunsError names.
const mostFailures = 5

// tally gathers a report from many goroutines.
type tally struct {
	mu     sync.Mutex
	report Report
	agents map[string]struct{}
	failed RunsError
}

// add changes the report under its lock, as runs end at the same time.
func (t *tally) add(change func(r *Report)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.report)
}

// failure counts a failed run, and names it while there is room.
func (t *tally) failure(f model.RunFailure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed.Count++
	if len(t.failed.Failures) < mostFailures {
		t.failed.Failures = append(t.failed.Failures, f)
	}
}
