package http

import (
	"net/http"
	"slices"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// Diagnoses and audits: calls about the whole store.

// doctor answers with the findings of this process about its store and itself. A store that does not answer is a finding, and no error.
func (a *api) doctor(r *http.Request, _ operation.Empty) (operation.Checks, error) {
	checks := a.scheduler.Diagnose(r.Context())
	failed := slices.ContainsFunc(checks, func(f inspect.Finding) bool { return f.Severity == inspect.SeverityFailed })
	return operation.Checks{OK: !failed, Checks: checks}, nil
}

// audit carries out one step of an audit, which is for callers that may change the tasks of all agents, also if it repairs nothing: it is as much
// work for the store.
func (a *api) audit(r *http.Request, q operation.Audit) (operation.Audited, error) {
	report, next, err := a.scheduler.AuditStep(r.Context(), inspect.AuditStep{Repair: q.Repair, Cursor: q.Cursor, Pages: q.Pages})
	return operation.Audited{
		Tasks: report.Tasks, Found: report.Found, Repairable: report.Repairable, Faults: some(report.Faults), Next: next,
	}, err
}
