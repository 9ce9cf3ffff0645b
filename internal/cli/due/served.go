package due

// What the API serves besides tasks: approvals by people, and models.

import (
	"cmp"
	"log/slog"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/mcp"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// Approvals makes the addresses of a file; nil if it has none.
func Approvals(c *dulyfile.File) (*httpadapter.Approvals, error) {
	if c.Approvals == nil {
		return nil, nil //nolint:nilnil // none are wanted
	}
	a, err := httpadapter.NewApprovals(c.Approvals.URL, []byte(c.Approvals.Secret))
	if err != nil {
		return nil, exit.Misuse("see docs/signals.md", "%w", err)
	}
	return a, nil
}

// Models is what models see of a file. Without handlers any kind may be scheduled: other processes have them.
func Models(c *dulyfile.File, version string) (mcp.Config, error) {
	var kinds map[string]core.KindConfig
	for _, h := range c.Handlers {
		if kinds == nil {
			kinds = map[string]core.KindConfig{}
		}
		kinds[h.Kind] = h.Settings
	}
	models := mcp.Config{Kinds: kinds, Agent: c.Defaults.Agent, Zone: c.Defaults.Zone, Version: version, Retention: cmp.Or(c.Redis.Retention, redisstore.DefaultRetention)}
	if err := models.Check(); err != nil {
		return models, exit.Misuse("see docs/mcp.md", "%w", err)
	}
	return models, nil
}

// forModels is what answers models on the port.
func (a *api) forModels(s *core.Scheduler, logger *slog.Logger) *mcp.Server {
	config := a.models
	config.Logger, config.Stopping = logger, a.stopping
	return mcp.New(s, config)
}
