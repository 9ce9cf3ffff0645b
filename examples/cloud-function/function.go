// Package function is duly as a Cloud Run function: `make gcf-stage` puts all of this folder into one that deploys as source. Duly
// answers Cloud Scheduler, Pub/Sub pushes and the HTTP API, DulyEvent the events of a trigger. Handlers are in duly.yaml, or in Go
// below. Settings are environment variables: DULY_REDIS_URL, DULY_PREFIX, DULY_TOKEN (for the API), and DULY_AUDIENCE and
// DULY_CALLER (whose OIDC tokens are accepted) or DULY_PRIVATE=true, if Google lets in only who may call the service; with DULY_CALLER
// it is some of those. With DULY_ALARM_QUEUE, DULY_ALARM_URL and DULY_ALARM_ACCOUNT, Cloud Tasks calls Duly when something is due.
package function

import (
	"cmp"
	"context"
	_ "embed"
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
	"github.com/seed-6f6f2c11/duly/host"
)

// file is what runs tasks without Go.
//
//go:embed duly.yaml
var file []byte

// source is where Google puts this folder, below the one in which a function starts.
const source = "serverless_function_source_code"

// It runs once for each instance, before the first request.
func init() { //nolint:gochecknoinits // functions are registered when the package is imported
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	_ = os.Chdir(source) // so that the file finds its programs; elsewhere there is none
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
	said, err := host.ReadFile(ctx, "duly.yaml", file)
	if err != nil {
		return nil, err
	}
	redis := said.Redis()
	redis.Logger, redis.Remember = logger, true
	store, err := redisstore.Open(ctx, redis)
	if err != nil {
		return nil, err
	}
	settings := said.Config() // with its alarm: calls when something is due, in place of a tick a minute
	settings.Name, settings.Concurrency, settings.Default.Timeout = get("K_REVISION"), cmp.Or(settings.Concurrency, 20), 30*time.Second
	s, err := core.New(store, settings)
	if err != nil {
		return nil, err
	}
	handlers(s, logger)
	if err := said.Start(ctx, s, logger); err != nil {
		return nil, err
	}
	config := gcf.Config{Verify: verify, Logger: logger}
	asks, err := said.Approvals()
	if err != nil {
		return nil, err
	}
	inbound, err := said.Hooks()
	if err != nil {
		return nil, err
	}
	switch token := get("DULY_TOKEN"); {
	case token != "":
		config.HTTP = httpadapter.New(s, httpadapter.Config{Tokens: []string{token}, Approvals: asks, Hooks: inbound, Logger: logger})
	case inbound != nil:
		return nil, errors.New("hooks: the file has some, and they are a part of the API: set DULY_TOKEN")
	case asks != nil: // the pages of questions alone: their addresses are known by their signature
		config.HTTP = asks.Handler(s, logger)
	}
	return gcf.New(s, config)
}

// verifier checks the OIDC token that Cloud Scheduler and Pub/Sub send: the audience, the account, and that the issuer has
// verified it. The audience alone proves nothing, as any account can request it.
func verifier(get func(string) string) (func(*http.Request) error, error) {
	callers := strings.FieldsFunc(get("DULY_CALLER"), func(r rune) bool { return r == ',' || r == ' ' })
	switch private := get("DULY_PRIVATE") == "true"; {
	case private && len(callers) > 0:
		return gcf.Invokers(callers...), nil
	case private:
		return gcf.Private, nil
	}
	issuer, keys := get("DULY_OIDC_ISSUER"), get("DULY_OIDC_KEYS")
	if (issuer == "") != (keys == "") {
		return nil, errors.New("set DULY_OIDC_ISSUER and DULY_OIDC_KEYS together: the keys are the issuer's")
	}
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
