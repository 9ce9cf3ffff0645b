// Command cloud-run is duly as a Cloud Run service, without the functions framework: Cloud Scheduler ticks it, Pub/Sub pushes
// and Eventarc feed it, GET /readyz says whether Redis answers. Deploy it with --no-allow-unauthenticated: Google then refuses
// unknown callers. With DULY_ALARM_QUEUE, DULY_ALARM_URL and DULY_ALARM_ACCOUNT, Cloud Tasks calls it when something is due. Its other settings are DULY_REDIS_URL (and DULY_REDIS_CA, _CERT and _KEY), DULY_PREFIX, HOST and PORT (every address and 8080), and DULY_DRAIN (8s), how
// long what is under way may take to end after SIGTERM.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/gcf"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/host"
)

// file is what runs tasks without Go.
//
//go:embed duly.yaml
var file []byte

// main ends with code 1, so that Cloud Run shows a failed start as such.
func main() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(logger); err != nil {
		logger.Error("the service has ended", slog.Any("err", err))
		os.Exit(1)
	}
}

// run serves until SIGTERM. Then what is under way has some time to end, and less if there is another SIGTERM; what has not
// ended is released, uncharged.
func run(logger *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	grace, err := time.ParseDuration(cmp.Or(os.Getenv("DULY_DRAIN"), "8s")) // Google kills an instance ten seconds after SIGTERM
	if err != nil {
		return fmt.Errorf("DULY_DRAIN: %w", err)
	}
	store, s, asks, err := build(ctx, logger)
	if err != nil {
		return err
	}
	verify := gcf.Private
	if os.Getenv("DULY_PUBLIC") == "true" {
		verify = func(*http.Request) error { return errors.New("this deployment is for people who answer questions") }
	}
	f, err := gcf.New(s, gcf.Config{Verify: verify, HTTP: others(s, asks, logger), Timeout: 5 * time.Minute, Logger: logger})
	if err != nil {
		return err
	}
	address := net.JoinHostPort(os.Getenv("HOST"), cmp.Or(os.Getenv("PORT"), "8080"))
	server := &http.Server{Addr: address, Handler: f, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	drain(ctx, f, grace, logger)
	// The last answers are written after the drain, as their requests were under way until then.
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(flush), store.Close())
}

// build opens the store and registers the handlers: those of duly.yaml, and those in Go.
func build(ctx context.Context, logger *slog.Logger) (*redisstore.Store, *core.Scheduler, *httpadapter.Approvals, error) {
	said, err := host.ReadFile(ctx, "duly.yaml", file)
	if err != nil {
		return nil, nil, nil, err
	}
	asks, err := said.Approvals()
	if err != nil {
		return nil, nil, nil, err
	}
	redis := said.Redis()
	redis.Logger, redis.Remember = logger, true
	store, err := redisstore.Open(ctx, redis)
	if err != nil {
		return nil, nil, nil, err
	}
	settings := said.Config() // with its alarm: calls when something is due, in place of a tick a minute
	settings.Name, settings.Concurrency, settings.Default.Timeout = os.Getenv("K_REVISION"), cmp.Or(settings.Concurrency, 20), 30*time.Second
	s, err := core.New(store, settings)
	if err == nil {
		handlers(s, logger)
		err = said.Start(ctx, s, logger)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, store.Close())
	}
	return store, s, asks, nil
}

// drain lets what is under way end, for a while or until the next signal.
func drain(ctx context.Context, f *gcf.Function, grace time.Duration, logger *slog.Logger) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	last, stop := signal.NotifyContext(last, syscall.SIGTERM, os.Interrupt)
	defer stop()
	logger.InfoContext(ctx, "draining")
	if err := f.Drain(last); err != nil {
		logger.WarnContext(ctx, "running tasks were released at shutdown", slog.Any("err", err))
	}
}

// others are what the host's own callers do not send: the probes of Cloud Run, which asks whether an instance is ready, and people who answer questions. A
// private service lets in no people: deploy it a second time for them, with --allow-unauthenticated, DULY_PUBLIC=true and the same file, and give approvals: its URL.
func others(s *core.Scheduler, asks *httpadapter.Approvals, logger *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	if asks != nil {
		mux.Handle("/v1/signed/", asks.Handler(s, logger))
	}
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 500*time.Millisecond) // probes wait a second
		defer cancel()
		if _, err := s.NextDue(ctx); err != nil {
			http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
		}
	})
	return mux
}

// handlers says what runs a task, kind by kind. Edit it.
func handlers(s *core.Scheduler, logger *slog.Logger) {
	core.Handle(s, "note", func(ctx context.Context, t *core.Task[json.RawMessage]) error {
		logger.LogAttrs(ctx, slog.LevelInfo, "note", slog.String("agent", t.Agent), slog.String("task", t.ID))
		return nil
	})
	core.Handle(s, "wait", func(ctx context.Context, t *core.Task[string]) error {
		d, err := time.ParseDuration(t.Payload)
		if err != nil {
			return core.SkipRetry(err)
		}
		logger.LogAttrs(ctx, slog.LevelInfo, "waiting", slog.String("task", t.ID))
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}
