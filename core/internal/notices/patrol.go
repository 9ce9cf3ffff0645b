package notices

// The patrol: the pages of an audit that daemons walk through in addition to their work.

import (
	"context"
	"log/slog"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
)

// mostReported is how many reported faults that no repair mends a process remembers.
const mostReported = 1000

// Patrol is how far a process has come in auditing its store.
type Patrol struct {
	Base *base.Base

	mu       sync.Mutex
	at       int    // which of the partitions
	cursor   string // in it
	reported map[audit.Fault]bool
}

// Next audits the next page of the store, and repairs what it finds. Each fault is an event, and an error in the log: once when it is repaired, and once if it cannot
// be. A partition that does not answer begins again when the others have had their turn.
func (p *Patrol) Next(ctx context.Context, partitions []int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(partitions)
	if partitions == nil {
		n = p.Base.Store.Partitions()
	}
	if n == 0 {
		return nil
	}
	at := p.at % n
	if partitions != nil {
		at = partitions[at]
	}
	pages, err := p.Base.Store.Audit(ctx, []audit.Page{{Partition: at, Cursor: p.cursor, Repair: true}})
	if err != nil {
		p.at, p.cursor = (p.at+1)%n, "" // it may be away
		return err
	}
	page := pages[0]
	for _, f := range page.Faults {
		p.report(ctx, f)
	}
	if p.cursor = page.Next; p.cursor == "" {
		p.at = (p.at + 1) % n
	}
	return nil
}

// report reports a fault that was found: each time it was repaired, as it was another one then, otherwise once.
func (p *Patrol) report(ctx context.Context, f audit.Fault) {
	what := "it was repaired"
	if !f.Code.Repairable() {
		what = "no repair mends it: see duly audit"
		if p.reported[f] {
			return
		}
		if p.reported == nil || len(p.reported) >= mostReported {
			p.reported = map[audit.Fault]bool{}
		}
		p.reported[f] = true
	}
	p.Base.Config.Logger.ErrorContext(ctx, "an audit has found a fault", slog.String("fault", string(f.Code)), slog.String("agent", f.Agent),
		slog.String("task", f.ID), slog.String("repair", what))
	p.Base.Emit(model.Event{Type: model.EventFault, Agent: f.Agent, ID: f.ID, Fault: f.Code, By: check.ByDuly, Error: string(f.Code) + ": " + what})
}
