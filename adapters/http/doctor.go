package http

import (
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Diagnoses and audits: calls about the whole store.

// doctor answers with the findings of this process about its store and itself. A store that does not answer is a finding, and no error.
func (a *api) doctor(r *http.Request) (int, any, error) {
	_, err := query(r)
	if err == nil {
		err = a.allowAll(r)
	}
	if err != nil {
		return 0, nil, err
	}
	checks := a.scheduler.Diagnose(r.Context())
	failed := 0
	for _, c := range checks {
		if c.Severity == inspect.SeverityFailed {
			failed++
		}
	}
	return http.StatusOK, struct {
		OK     bool              `json:"ok"` // no check has failed
		Checks []inspect.Finding `json:"checks"`
	}{failed == 0, checks}, nil
}

// audit carries out one step of an audit, which is for callers that may change the tasks of all agents, also if it repairs nothing: it is as much
// work for the store.
func (a *api) audit(r *http.Request) (int, any, error) {
	data, err := optionalBody(r)
	if err != nil {
		return 0, nil, err
	}
	var step inspect.AuditStep
	if err := decode(data,
		strictjson.Field{Name: "repair", Into: &step.Repair, Must: mustBeBool},
		strictjson.Field{Name: "cursor", Into: &step.Cursor, Must: mustBeString},
		strictjson.Field{Name: "pages", Into: &step.Pages, Must: "must be a whole number from 1 to 1000"},
	); err != nil {
		return 0, nil, err
	}
	if err := a.allowAll(r); err != nil {
		return 0, nil, err
	}
	report, next, err := a.scheduler.AuditStep(r.Context(), step)
	faults := report.Faults
	if faults == nil {
		faults = []store.Fault{}
	}
	return http.StatusOK, struct {
		Tasks      int           `json:"tasks"`
		Found      int           `json:"found"`
		Repairable int           `json:"repairable"`
		Faults     []store.Fault `json:"faults"`
		Next       string        `json:"next_cursor"`
	}{report.Tasks, report.Found, report.Repairable, faults, next}, err
}
