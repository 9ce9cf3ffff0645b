package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/seed-6f6f2c11/duly/core"
)

// handlers says what runs a task, kind by kind. Edit it: a handler of yours is another call of core.Handle. A task whose
// kind has no handler waits.
func handlers(s *core.Scheduler, get func(string) string) error {
	logger := lambdacontext.NewLogger()
	core.Handle(s, "note", func(ctx context.Context, t *core.Task[json.RawMessage]) error {
		logger.LogAttrs(ctx, slog.LevelInfo, "note", slog.String("agent", t.Agent), slog.String("task", t.ID),
			slog.String("payload", string(t.Payload)))
		return nil
	})
	return webhooks(s, get) // a URL for each kind in DULY_WEBHOOKS
}

// settings are those of the scheduler. Timeout has to be well below the function's own: a run that the end of an
// invocation cuts off is no failed attempt and starts again, which a handler that hangs would do for ever.
func settings() core.Config {
	return core.Config{
		Name:        os.Getenv("AWS_LAMBDA_LOG_STREAM_NAME"), // where the log of the process that ran a task is
		Concurrency: 20, Default: core.KindConfig{Timeout: 20 * time.Second},
	}
}
