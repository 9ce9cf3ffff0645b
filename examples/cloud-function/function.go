// Package function is duly as a Cloud Run function: `make gcf-stage` puts it into a folder that deploys as source. Duly
// answers Cloud Scheduler, Pub/Sub pushes and the HTTP API, DulyEvent the events of a trigger. Settings are environment
// variables: DULY_REDIS_URL, DULY_PREFIX, DULY_TOKEN (for the API), and DULY_AUDIENCE and DULY_CALLER (whose OIDC tokens are
// accepted) or DULY_PRIVATE=true, if Google lets in only who may call the service.
package function

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // what the buildpack's main starts: so go.sum has it
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/seed-6f6f2c11/duly/adapters/gcf"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/oidc"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// It runs once for each instance, before the first request.
func init() { //nolint:gochecknoinits // functions are registered when the package is imported
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	f, err := build(os.Getenv, logger)
	if err != nil {
		logger.Error("the function cannot start", slog.Any("err", err))
		os.Exit(1)
	}
	functions.HTTP("Duly", f.ServeHTTP)
	functions.CloudEvent("DulyEvent", f.Event)
	go drainAtEnd(f, logger)
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

// build makes the function from environment variables alone, as a deployment has nothing else.
func build(get func(string) string, logger *slog.Logger) (*gcf.Function, error) {
	verify, err := verifier(get)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	store, err := redisstore.Open(ctx, redisstore.Config{Logger: logger, Remember: true}.With(get))
	if err != nil {
		return nil, err
	}
	s, err := core.New(store, core.Config{Name: os.Getenv("K_REVISION"), Concurrency: 20, Default: core.KindConfig{Timeout: 30 * time.Second}})
	if err != nil {
		return nil, err
	}
	handlers(s, logger)
	config := gcf.Config{Verify: verify, Logger: logger}
	if token := get("DULY_TOKEN"); token != "" {
		config.HTTP = httpadapter.New(s, httpadapter.Config{Tokens: []string{token}, Logger: logger})
	}
	return gcf.New(s, config)
}

// verifier checks the OIDC token that Cloud Scheduler and Pub/Sub send: the audience, the account, and that the issuer has
// verified it. The audience alone proves nothing, as anybody can ask for it.
func verifier(get func(string) string) (func(*http.Request) error, error) {
	if get("DULY_PRIVATE") == "true" {
		return gcf.Private, nil
	}
	issuer, keys := get("DULY_OIDC_ISSUER"), get("DULY_OIDC_KEYS")
	if (issuer == "") != (keys == "") {
		return nil, errors.New("set DULY_OIDC_ISSUER and DULY_OIDC_KEYS together: the keys are the issuer's")
	}
	callers := strings.FieldsFunc(get("DULY_CALLER"), func(r rune) bool { return r == ',' || r == ' ' })
	tokens, err := oidc.New(oidc.Config{Issuer: issuer, Keys: keys, Audience: get("DULY_AUDIENCE"), Emails: callers})
	if err != nil {
		return nil, fmt.Errorf("set DULY_AUDIENCE and DULY_CALLER, or DULY_PRIVATE=true: %w", err)
	}
	return func(r *http.Request) error {
		_, err := tokens.Verify(r)
		return err
	}, nil
}

// drainAtEnd ends the process well: Google sends SIGTERM ten seconds before it kills an instance.
func drainAtEnd(f *gcf.Function, logger *slog.Logger) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	if err := f.Drain(ctx); err != nil {
		logger.Warn("running tasks were released at shutdown", slog.Any("err", err))
	}
	time.Sleep(100 * time.Millisecond) // the server, which is not ours, sends the last answer after its call has returned
	os.Exit(0)
}
