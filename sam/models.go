//go:build duly_mcp

package main

import (
	"log/slog"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/mcp"
	"github.com/seed-6f6f2c11/duly/core"
)

// The function as MCP=1 builds it: models call its URL at /mcp. Kinds that have a Tool in settings are tools.
func init() {
	models = func(s *core.Scheduler, c *core.Config, logger *slog.Logger) (httpadapter.MCP, error) {
		config := mcp.Config{Kinds: map[string]core.KindConfig{}, Zone: c.Zone, Version: version, Logger: logger}
		for _, kind := range s.Kinds() {
			config.Kinds[kind] = c.Kinds[kind]
		}
		if err := config.Check(); err != nil {
			return nil, err
		}
		return mcp.New(s, config), nil
	}
}
