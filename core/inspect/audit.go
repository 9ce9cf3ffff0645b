package inspect

// Audits on demand: a whole walk through the store, and its report.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/store/audit"
)

// AuditOptions say how an audit works. Every zero is a good default.
type AuditOptions struct {
	// Repair requeues the tasks that are found; one whose due time was lost with its place is due now. It is safe at any time, also
	// while everything runs.
	Repair bool
	// Progress is called after each page with what was found so far.
	Progress func(soFar AuditReport)
}

// AuditReport is what an audit found.
type AuditReport struct {
	Tasks      int           // live tasks that were checked
	Found      int           // faults
	Repairable int           // of these, how many a repair mends, or has mended
	Faults     []audit.Fault // the first MaxFaults of them
}

// MaxFaults is how many faults a report names.
const MaxFaults = 100

// Audit checks every live task: it must wait where claims look for it, run under a lease, or be parked where
// something puts it back. A scheduler never leaves a task anywhere else; but a store can be damaged by hand, by a partial
// restore, or by losing writes that it acknowledged, and a task that nothing finds would stop silently. It also counts the tasks, by
// kind and by group, and compares the counters with that, unless something changes in the partition meanwhile: then the next
// audit does. It works page by page, so it never blocks others, and may be cut off: what it has repaired by then stays repaired.
func (s *View) Audit(ctx context.Context, o AuditOptions) (AuditReport, error) {
	var r AuditReport
	for at := new(auditPlace); at != nil; {
		next, err := s.auditPage(ctx, at, o.Repair, &r)
		if err != nil {
			return r, err
		}
		if o.Progress != nil {
			o.Progress(r)
		}
		at = next
	}
	return r, nil
}

// auditPage audits one page, and returns where the next one begins; nil after the last.
func (s *View) auditPage(ctx context.Context, at *auditPlace, repair bool, r *AuditReport) (*auditPlace, error) {
	pages, err := s.base.Store.Audit(ctx, []audit.Page{{Partition: at.partition, Cursor: at.cursor, Repair: repair}})
	if err != nil {
		return at, err
	}
	r.add(&pages[0])
	switch {
	case pages[0].Next != "":
		return &auditPlace{at.partition, pages[0].Next}, nil
	case at.partition+1 < s.base.Store.Partitions():
		return &auditPlace{partition: at.partition + 1}, nil
	default:
		return nil, nil //nolint:nilnil // which is the end
	}
}

// add adds a page to the report. Faults are listed up to a bound, and counted without one.
func (r *AuditReport) add(page *audit.Result) {
	r.Tasks += page.Tasks
	r.Found += len(page.Faults)
	for _, f := range page.Faults {
		if f.Code.Repairable() {
			r.Repairable++
		}
		if len(r.Faults) < MaxFaults {
			r.Faults = append(r.Faults, f)
		}
	}
}
