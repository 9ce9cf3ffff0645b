package remote

// Agents: their profiles, and all of an agent at once.

import (
	"context"
	"io"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// agents are the calls about agents: profiles, and what moves and forgets them.
type agents struct{ *connection }

// Profile is the profile of an agent.
func (c agents) Profile(ctx context.Context, agent string) (core.Profile, error) {
	return send(ctx, c.connection, operation.AgentProfile, operation.Empty{}, agent)
}

// Profiles is a page of the profiles of all agents.
func (c agents) Profiles(ctx context.Context, cursor string, limit int) ([]core.Profile, string, error) {
	page, err := send(ctx, c.connection, operation.ListProfiles, operation.Page{Limit: limit, Cursor: cursor})
	return page.Profiles, page.Next, err
}

// SetProfile sets the profile of an agent as a whole.
func (c agents) SetProfile(ctx context.Context, p core.Profile) (core.Profile, error) {
	return send(ctx, c.connection, operation.SetProfile, operation.ProfileOf(&p), p.Agent)
}

// DeleteProfile deletes the profile of an agent.
func (c agents) DeleteProfile(ctx context.Context, agent string) error {
	_, err := send(ctx, c.connection, operation.DeleteProfile, operation.Empty{}, agent)
	return err
}

// Forget deletes all of an agent. The server does not say how far it is meanwhile.
func (c agents) Forget(ctx context.Context, agent string, _ func(operate.Forgotten)) (operate.Forgotten, error) {
	done, err := send(ctx, c.connection, operation.ForgetAgent, operation.Forget{}, agent)
	return done.Forgotten, err
}

// CountForget counts what Forget would delete.
func (c agents) CountForget(ctx context.Context, agent string) (operate.Forgotten, error) {
	would, err := send(ctx, c.connection, operation.ForgetAgent, operation.Forget{DryRun: true}, agent)
	return would.Forgotten, err
}

// Export writes all of an agent as lines of JSON. What it returns has no number of tasks, as the lines are not looked at.
func (c agents) Export(ctx context.Context, agent string, w io.Writer) (int, error) {
	return 0, c.exchange(ctx, operation.Export.Call, operation.Empty{}, []string{agent}, func(res *http.Response) error {
		_, err := io.Copy(w, res.Body)
		return err
	})
}
