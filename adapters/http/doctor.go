package http

import (
	"net/http"

	"github.com/seed-6f6f2c11/duly/core"
)

// What is wrong, and audits: calls about the whole store.

// doctor answers with what this process finds wrong with its store and with itself. A store that does not answer is a finding, and no error.
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
		if c.Severity == core.SeverityFailed {
			failed++
		}
	}
	return http.StatusOK, struct {
		OK     bool           `json:"ok"` // no check has failed
		Checks []core.Finding `json:"checks"`
	}{failed == 0, checks}, nil
}
