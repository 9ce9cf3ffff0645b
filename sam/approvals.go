package main

import (
	"errors"
	"fmt"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

// Approvals: pages on which people answer a question, at a second URL of the function that needs no signature.

// approvals makes the addresses below DULY_APPROVALS_URL, such as the stack's output ApprovalsUrl; nil without a secret. Handlers of your own make
// them of it: see docs/signals.md. Before the URL is known, at the first deployment, pages are served and no addresses are made.
func approvals(get func(string) string) (*httpadapter.Approvals, error) {
	url, secret := get("DULY_APPROVALS_URL"), get("DULY_APPROVALS_SECRET")
	if secret == "" {
		if url != "" {
			return nil, errors.New("DULY_APPROVALS_URL needs DULY_APPROVALS_SECRET, by which addresses are known")
		}
		return nil, nil //nolint:nilnil // nobody is asked
	}
	if url == "" {
		url = unknownURL
	}
	a, err := httpadapter.NewApprovals(url, []byte(secret))
	if err != nil {
		return nil, fmt.Errorf("DULY_APPROVALS_URL and DULY_APPROVALS_SECRET: %w", err)
	}
	return a, nil
}

// unknownURL is below a name that cannot be registered.
const unknownURL = "https://set-approvals-url.invalid"
