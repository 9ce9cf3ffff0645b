package cli

// Models: what the API serves them, and the command mcp.

import (
	"cmp"
	"log/slog"

	"github.com/seed-6f6f2c11/duly/adapters/mcp"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
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
