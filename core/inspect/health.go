package inspect

// Health: what the store and this process report of all tasks together, and what of it is wrong. The command line, the API and the console
// decide by it, each in its own words or in those of findings.go.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// Health is what can be known without reading tasks: it costs the same however many there are.
type Health struct {
	Ready     error // of Scheduler.Ready
	Stats     Stats
	Kinds     KindList
	Processes []model.Process
	Limits    []bound.LimitUse
	Budgets   []bound.BudgetUse
	Late      Lateness
	Hour      Window // what ran in the last hour
	Windows   bool   // whether that is counted
}

// Bounds of what counts as healthy.
const (
	lateAfter  = time.Minute        // of due work: more than any healthy process needs, also right after a restart
	lately     = 7 * 24 * time.Hour // as long as records are kept by default
	fewestRuns = 10                 // of a kind within an hour, for its failures to mean something
	mostFailed = 0.5                // of these
	fullMemory = 0.9                // of what a server may use
)

// Health reads the health of the store. It fails with the first call that the store does not answer.
func (s *View) Health(ctx context.Context) (*Health, error) {
	h := &Health{Ready: s.engine.Ready()}
	var err error
	if h.Stats, err = s.Stats(ctx); err != nil {
		return h, err
	}
	if h.Kinds, err = s.DescribeKinds(ctx); err != nil {
		return h, err
	}
	if h.Processes, err = s.Processes(ctx); err != nil {
		return h, err
	}
	if h.Limits, err = s.base.Store.Limits(ctx); err != nil {
		return h, err
	}
	if h.Budgets, err = s.base.Store.Budgets(ctx); err != nil {
		return h, err
	}
	if h.Late, err = s.Lateness(ctx); err != nil {
		return h, err
	}
	h.Hour, err = s.Window(ctx, time.Hour)
	h.Windows = err == nil
	if err != nil && model.CodeOf(err) != model.CodeInvalid { // invalid is a program without counters of the last hours
		return h, err
	}
	return h, nil
}

// Overdue is for how long work has been due that a process should have claimed; zero if there is none.
func (h *Health) Overdue() time.Duration {
	behind := h.Stats.Now.Sub(h.Stats.NextDue)
	if h.Stats.NextDue.IsZero() || behind < lateAfter {
		return 0
	}
	return behind
}

// Busy reports whether no known process has a free slot.
func (h *Health) Busy() bool {
	for i := range h.Processes {
		if p := &h.Processes[i]; p.InUse < p.Slots || p.Slots == 0 {
			return false
		}
	}
	return true
}

// slots are those of all known processes.
func (h *Health) slots() (inUse, total int) {
	for i := range h.Processes {
		inUse, total = inUse+h.Processes[i].InUse, total+h.Processes[i].Slots
	}
	return inUse, total
}

// Unhandled reports whether a kind has live tasks and no known process runs them.
func (k *KindInfo) Unhandled() bool {
	return k.Pause == nil && !k.Settings.Disabled && k.Processes == 0 && !k.Handled && k.Counters.Live > 0
}

// Unhandled are the kinds that no process runs.
func (h *Health) Unhandled() []KindInfo {
	var out []KindInfo
	for i := range h.Kinds.Kinds {
		if h.Kinds.Kinds[i].Unhandled() {
			out = append(out, h.Kinds.Kinds[i])
		}
	}
	return out
}

// Failing are the kinds of which most runs of the last hour have failed.
func (h *Health) Failing() []KindWindow {
	var out []KindWindow
	for i := range h.Hour.Kinds {
		if k := h.Hour.Kinds[i]; k.Runs >= fewestRuns && k.FailureRate() >= mostFailed {
			out = append(out, k)
		}
	}
	return out
}

// Idle are the limits without a rate that have tasks in line, and no run. One with a rate may wait for its next start. Between the end of a run
// and the next claim a limit is in this state for a moment.
func Idle(limits []bound.LimitUse) []bound.LimitUse {
	var out []bound.LimitUse
	for _, l := range limits {
		if l.Rate == 0 && l.Waiting > 0 && l.Running == 0 {
			out = append(out, l)
		}
	}
	return out
}

// UsedUp are the budgets that hold tasks back.
func UsedUp(budgets []bound.BudgetUse) []bound.BudgetUse {
	var out []bound.BudgetUse
	for i := range budgets {
		if budgets[i].UsedUp > 0 {
			out = append(out, budgets[i])
		}
	}
	return out
}

// TrimmedLately reports whether finished tasks were recently dropped before their time.
func (st *Stats) TrimmedLately() bool {
	return !st.LastTrimmed.IsZero() && st.Now.Sub(st.LastTrimmed) <= lately
}

// Abandoned returns how many handlers ignore that their context is cancelled, and a process that has some.
func (h *Health) Abandoned() (n int, process string) {
	for i := range h.Processes {
		if p := &h.Processes[i]; p.Abandoned > 0 {
			n, process = n+p.Abandoned, p.Name
		}
	}
	return n, process
}
