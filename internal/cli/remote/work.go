package remote

// Runs of workers.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
)

// Lending is what a server offers to workers.
type Lending struct{ *Client }

// ClaimRuns claims runs for a worker.
func (l Lending) ClaimRuns(ctx context.Context, claim operation.Claim) (operation.Lent, error) {
	return send(ctx, l.Client, operation.ClaimRuns, claim)
}

// KeepRuns extends the leases of runs, and stores what they report.
func (l Lending) KeepRuns(ctx context.Context, keep operation.Keep) (operation.Kept, error) {
	return send(ctx, l.Client, operation.KeepRuns, keep)
}

// ReturnRuns ends runs, and claims the next.
func (l Lending) ReturnRuns(ctx context.Context, ends operation.Return) (operation.Returned, error) {
	return send(ctx, l.Client, operation.ReturnRuns, ends)
}
