package http

// Commands for the tasks of a list.

import (
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// bulk carries out a command: one step, for an agent that the caller may change, or for all agents if it may change these.
func (a *api) bulk(verb operate.BulkVerb) func(r *http.Request, b operation.Bulk) (operate.BulkStep, error) {
	return func(r *http.Request, b operation.Bulk) (operate.BulkStep, error) {
		if err := a.allow(r.Context(), b.Agent); err != nil {
			return operate.BulkStep{}, err
		}
		do := operate.Bulk{
			Do: verb, All: b.All, DryRun: b.DryRun, Confirm: b.Confirm, Count: b.Count, Order: core.Order{Reason: b.Reason, By: b.By},
			List: core.List{
				Agent: b.Agent, Status: b.Status, Kind: b.Kind, Key: b.Key, Group: b.Group, Labels: b.Labels, Overdue: b.Overdue, Limit: b.Limit, Cursor: b.Cursor,
			},
		}
		if err := a.selected(r.Context(), &do.List, b.Since, b.Until, b.Inside); err != nil {
			return operate.BulkStep{}, err
		}
		return a.scheduler.Bulk(r.Context(), do)
	}
}
