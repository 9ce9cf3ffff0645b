// Command cloud-run is duly as a Cloud Run service, without the functions framework: Cloud Scheduler ticks it, and Pub/Sub
// pushes and Eventarc feed it. Deploy it with --no-allow-unauthenticated: Google then refuses unknown callers. Its settings
// are DULY_REDIS_URL, DULY_PREFIX and PORT.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/gcf"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

func main() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(logger); err != nil {
		logger.Error("the service has ended", slog.Any("err", err))
		os.Exit(1)
	}
}

// run serves until SIGTERM; then it has eight of the ten seconds that Google leaves it.
func run(logger *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: os.Getenv("DULY_REDIS_URL"), Prefix: os.Getenv("DULY_PREFIX"), Logger: logger})
	if err != nil {
		return err
	}
	s, err := core.New(store, core.Config{Concurrency: 20, Default: core.KindConfig{Timeout: 30 * time.Second}})
	if err != nil {
		return err
	}
	core.Handle(s, "note", func(ctx context.Context, t *core.Task[json.RawMessage]) error {
		logger.LogAttrs(ctx, slog.LevelInfo, "note", slog.String("agent", t.Agent), slog.String("task", t.ID))
		return nil
	})
	f, err := gcf.New(s, gcf.Config{Verify: gcf.Private, Timeout: 5 * time.Minute, Logger: logger})
	if err != nil {
		return err
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	server := &http.Server{Addr: ":" + port, Handler: f, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 8*time.Second)
	defer cancel()
	if err := f.Drain(last); err != nil {
		logger.Warn("what was under way was given back", slog.Any("err", err))
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(flush), store.Close())
}
