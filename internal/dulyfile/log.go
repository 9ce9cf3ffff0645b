package dulyfile

// The handler "log".

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/seed-6f6f2c11/duly/core"
)

// logRun is the handler that writes one line for each run.
// It needs no configuration, so that a first file can be tried at once.
func logRun(logger *slog.Logger) func(ctx context.Context, t *core.Task[json.RawMessage]) error {
	return func(ctx context.Context, t *core.Task[json.RawMessage]) error {
		attrs := []slog.Attr{slog.String("kind", t.Kind), slog.String("agent", t.Agent), slog.String("task", t.ID)}
		if t.Attempt > 1 {
			attrs = append(attrs, slog.Int("attempt", t.Attempt))
		}
		if t.Payload != nil {
			attrs = append(attrs, slog.Any("payload", t.Payload))
		}
		logger.LogAttrs(ctx, slog.LevelInfo, "run", attrs...)
		return nil
	}
}
