package remote

// Runs of workers.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
)

// ClaimRuns claims runs for a worker.
func (c *Client) ClaimRuns(ctx context.Context, claim operation.Claim) (operation.Lent, error) {
	return send(ctx, c, operation.ClaimRuns, claim)
}

// KeepRuns extends the leases of runs, and stores what they report.
func (c *Client) KeepRuns(ctx context.Context, keep operation.Keep) (operation.Kept, error) {
	return send(ctx, c, operation.KeepRuns, keep)
}

// ReturnRuns ends runs, and claims the next.
func (c *Client) ReturnRuns(ctx context.Context, ends operation.Return) (operation.Returned, error) {
	return send(ctx, c, operation.ReturnRuns, ends)
}
