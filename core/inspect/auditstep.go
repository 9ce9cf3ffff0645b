package inspect

// Audits a step at a time, for callers that cannot wait for a whole one.

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
)

// Bounds of a step of an audit: pages, and for how long it begins further ones.
const (
	DefaultAuditPages = 100
	MaxAuditPages     = 1000

	longestStep = 5 * time.Second
)

// AuditStep says where a step of an audit begins, and how it works.
type AuditStep struct {
	Repair bool   // as in AuditOptions
	Cursor string // that of the step before; empty for the first
	Pages  int    // at most; DefaultAuditPages if zero
}

// AuditStep audits some pages, as [View.Audit] does with all, and returns their report, and the cursor of the next step: empty after the
// last. It ends early after five seconds, and with a page that fills the list of faults, so that an audit in steps lists every fault except
// those of a page with more than MaxFaults. A step may be repeated. An audit that is continued after more than ten minutes still checks every
// task, but compares no counters of the partition that it was in.
func (s *View) AuditStep(ctx context.Context, step AuditStep) (r AuditReport, next string, err error) {
	if step.Pages == 0 {
		step.Pages = DefaultAuditPages
	}
	if step.Pages < 1 || step.Pages > MaxAuditPages {
		return r, "", check.Invalid("pages", "must be between 1 and %d, not %d", MaxAuditPages, step.Pages)
	}
	at, err := parseAuditPlace(step.Cursor, s.base.Store.Partitions())
	if err != nil {
		return r, "", err
	}
	begun := s.base.Config.Clock.Now()
	for n := 0; at != nil; n++ {
		if n == step.Pages || r.Found >= MaxFaults || s.base.Config.Clock.Now().Sub(begun) >= longestStep {
			return r, at.String(), nil
		}
		if at, err = s.auditPage(ctx, at, step.Repair, &r); err != nil {
			return r, at.String(), err
		}
	}
	return r, "", nil
}

// auditPlace is where a page of an audit begins; zero for the first.
type auditPlace struct {
	partition int
	cursor    string // in it
}

// String is the place as a cursor.
func (p *auditPlace) String() string { return fmt.Sprintf("%d.%s", p.partition, p.cursor) }

// parseAuditPlace reads a cursor, which comes from a client. The store checks the part within a partition.
func parseAuditPlace(cursor string, partitions int) (*auditPlace, error) {
	if cursor == "" {
		return new(auditPlace), nil
	}
	partition, within, found := strings.Cut(cursor, ".")
	at, err := strconv.Atoi(partition)
	if !found || err != nil || at < 0 || at >= partitions || len(cursor) > maxCursorLen {
		return nil, check.Invalid("cursor", "must be the next_cursor of a step before, or left out")
	}
	return &auditPlace{at, within}, nil
}
