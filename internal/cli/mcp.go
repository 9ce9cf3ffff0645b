package cli

// Models: what the API serves them, and the command mcp.

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/mcp"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/cli/linelog"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// modelsOf is what models see of a file. Without handlers any kind may be scheduled: other processes have them.
func modelsOf(c *dulyfile.File, version string) mcp.Config {
	var kinds map[string]core.KindConfig
	for _, h := range c.Handlers {
		if kinds == nil {
			kinds = map[string]core.KindConfig{}
		}
		kinds[h.Kind] = h.Settings
	}
	return mcp.Config{Kinds: kinds, Agent: c.Defaults.Agent, Zone: c.Defaults.Zone, Version: version, Retention: cmp.Or(c.Redis.Retention, redisstore.DefaultRetention)}
}

// forModels is what answers models on the port.
func (a *api) forModels(s *core.Scheduler, logger *slog.Logger) *mcp.Server {
	config := a.models
	config.Logger, config.Stopping = logger, a.stopping
	return mcp.New(s, config)
}

// mcpCommand serves one model on standard input and output, for one agent. What it schedules is run by the daemons of the store.
func mcpCommand(p *process, o *options) *cobra.Command {
	var agent string
	scopes := []string{string(httpadapter.ScopeRead), string(httpadapter.ScopeWrite)}
	cmd := command("mcp", "Let a model schedule tasks and look at them, by MCP on standard input and output",
		"  duly mcp --agent ada -c duly.yaml\n  duly mcp --agent ada --server https://duly.example\n  claude mcp add duly -- duly mcp --agent ada -c /etc/duly/duly.yaml",
		func(cmd *cobra.Command, _ []string) error {
			at, err := o.place(cmd.Context())
			if err != nil {
				return err
			}
			if at.server.URL != "" {
				if cmd.Flags().Changed("scopes") {
					return usage("leave it out: the token has its scopes", "--scopes is for a model on a Redis")
				}
				return onServer(&at, func(c *remote.Client) error {
					ctx, err := inRun(cmd.Context(), c)
					if err != nil {
						return err
					}
					return remote.Models(ctx, c, agent, p.stdin, p.stdout)
				})
			}
			return serveModel(cmd.Context(), p, o, agent, scopes)
		})
	flags := cmd.Flags()
	flags.StringVar(&agent, "agent", "", "the agent that the model works for (default that of the file, or of the token)")
	flags.StringSliceVar(&scopes, "scopes", scopes, "what the model may do: read, write and approve; an approval by a model is none, so add approve for one whose client asks a person")
	return cmd
}

// serveModel serves the model from the store. It has no more rights than its scopes, for its agent.
func serveModel(ctx context.Context, p *process, o *options, agent string, scopes []string) error {
	c, err := loadFile(ctx, o)
	if err != nil {
		return err
	}
	if agent = cmp.Or(agent, c.Defaults.Agent); agent == "" {
		return usage("name it with --agent", "for which agent is the model?")
	}
	grant := &httpadapter.Grant{Name: "mcp", Agents: []string{agent}}
	for _, name := range scopes {
		scope := httpadapter.Scope(strings.TrimSpace(name))
		if !slices.Contains([]httpadapter.Scope{httpadapter.ScopeRead, httpadapter.ScopeWrite, httpadapter.ScopeApprove}, scope) {
			return usage("use some of read, write and approve", "--scopes has %q, which no model needs", name)
		}
		grant.Scopes = append(grant.Scopes, scope)
	}
	models := modelsOf(c, p.version)
	if err := models.Check(); err != nil {
		return usage("see docs/mcp.md", "%w", err)
	}
	s, st, err := openScheduler(ctx, c)
	if err != nil {
		return err
	}
	defer st.end(ctx)
	if ctx, err = inRun(ctx, s); err != nil {
		return err
	}
	models.Logger, models.Stopping = slog.New(linelog.New(os.Stderr)), ctx.Done()
	ctx = core.WithPrincipal(ctx, core.Principal{Name: grant.Name, Rights: grant})
	return mcp.New(s, models).Run(ctx, agent, &sdk.IOTransport{Reader: io.NopCloser(p.stdin), Writer: keptOpen{p.stdout}})
}

// keptOpen is a writer that outlives who closes it.
type keptOpen struct{ io.Writer }

// Close does nothing.
func (keptOpen) Close() error { return nil }
