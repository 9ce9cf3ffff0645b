package world

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core"
)

// The rows of plain tasks: what the generator of requests draws by itself, and the files named audit_ hold.

// What of these is sown a fault into was so before there were rows: see the list of internal/sim/mutants.
var plainFeatures = []*feature{
	{
		name:   "tasks",
		fields: []string{"Agent", "ID", "Kind", "Payload", "At", "Delay", "Level", "LimitKey", "OnConflict", "Submission.Agent", "Submission.ID", "Submission.Kind", "Submission.Key", "Submission.Level", "Submission.Due", "Submission.Body", "Submission.State", "Submission.Conflict", "Submission.Version", "Submission.OldGroup", "Submission.OldLen"},
		verbs:  []string{"Submit", "Look", "Claim", "Settle", "Extend"},
	},
	{
		name:   "recurring tasks",
		fields: []string{"Every", "From", "Cron", "Jitter", "Overlap", "Misfire", "PauseAfter", "MinInterval"},
	},
	{name: "attempts", fields: []string{"MaxAttempts", "Backoff"}},
	{name: "groups", fields: []string{"Group", "Submission.Group"}, verbs: []string{"Group"}},
	{name: "activity", verbs: []string{"Touch"}},
	{
		name:  "operators",
		verbs: []string{"Replay", "RunNow", "Cancel", "Delete", "Hold", "Unhold", "Audit"},
	},
	{
		name: "readers", verbs: []string{"Get", "List", "Find", "Agents", "Limits", "Holds", "Stats"},
		plan: func(g *generator) {
			for range g.IntN(3) {
				g.plan.Requests = append(g.plan.Requests, Request{At: g.span(0, g.plan.Horizon), Process: g.IntN(4), Kind: AskWatch})
			}
		},
		asks: map[RequestKind]asking{AskWatch: askWatch},
	},
}

// AskWatch reads what a client sees that watches all agents at once.
const AskWatch RequestKind = "watch"

func askWatch(ctx context.Context, _ *World, p *process, _ *Request) (func(), error) {
	_, _, err := p.s.Agents(ctx, 0, "")
	if err == nil {
		_, _, err = p.s.Tasks(ctx, core.List{Overdue: true})
	}
	if err == nil {
		_, err = p.s.Limits(ctx)
	}
	if err == nil {
		_, err = p.s.Budgets(ctx)
	}
	return func() {}, err
}
