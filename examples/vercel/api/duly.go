// Package handler is duly as a function on Vercel: the HTTP API, called by QStash at the second at which something falls due, and once a day by
// Vercel's own cron, in case a call was lost. Handlers are in duly.yaml, or in Go below.
//
// Settings are environment variables: KV_URL (a Redis, as Upstash's integration sets it, or DULY_REDIS_URL), DULY_TOKEN for the API, CRON_SECRET, and
// QSTASH_TOKEN, QSTASH_CURRENT_SIGNING_KEY and QSTASH_NEXT_SIGNING_KEY, as QStash's integration sets them.
package handler

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	qstashalarm "github.com/seed-6f6f2c11/duly/adapters/alarm/qstash"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/qstash"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/host"
)

// file is what runs tasks without Go.
//
//go:embed duly.yaml
var file []byte

// handlers says what runs a task, kind by kind. Edit it.
func handlers(s *core.Scheduler, logger *slog.Logger) {
	core.Handle(s, "note", func(ctx context.Context, t *core.Task[json.RawMessage]) error {
		logger.LogAttrs(ctx, slog.LevelInfo, "note", slog.String("agent", t.Agent), slog.String("task", t.ID))
		return nil
	})
}

// instance is what an instance of the function keeps between requests. One that could not start tries again at the next request.
var instance struct {
	sync.Mutex
	api http.Handler
}

// Handler answers a request. Vercel looks for a function of this form.
func Handler(w http.ResponseWriter, r *http.Request) {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	instance.Lock()
	var err error
	if instance.api == nil {
		instance.api, err = build(r.Context(), os.Getenv, logger)
	}
	api := instance.api
	instance.Unlock()
	if err != nil {
		logger.ErrorContext(r.Context(), "the function cannot start", slog.Any("err", err))
		http.Error(w, "duly cannot start: the log of the function says why", http.StatusServiceUnavailable)
		return
	}
	api.ServeHTTP(w, r)
}

// build makes the API from environment variables and the file.
func build(ctx context.Context, get func(string) string, logger *slog.Logger) (http.Handler, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	token, domain := get("DULY_TOKEN"), get("VERCEL_PROJECT_PRODUCTION_URL")
	if token == "" || domain == "" {
		return nil, errors.New("set DULY_TOKEN, and let Vercel expose its system environment variables, so that QStash knows whom to call")
	}
	said, err := host.ReadFile(ctx, "duly.yaml", file)
	if err != nil {
		return nil, err
	}
	redis := said.Redis()
	redis.URL, redis.Logger, redis.Remember = cmp.Or(get("DULY_REDIS_URL"), get("KV_URL")), logger, true
	store, err := redisstore.Open(ctx, redis)
	if err != nil {
		return nil, err
	}
	base := "https://" + domain
	alarm, err := qstashalarm.New(qstashalarm.Config{URL: get("QSTASH_URL"), Token: get("QSTASH_TOKEN"), Destination: base + "/v1/run-due"})
	if err != nil {
		return nil, err
	}
	// QStash signs what it sends: it may run what is due, and nothing else.
	signed, err := qstash.New(qstash.Config{
		Keys: []string{get("QSTASH_CURRENT_SIGNING_KEY"), get("QSTASH_NEXT_SIGNING_KEY")}, URL: base,
		Grant: httpadapter.Grant{Name: "qstash", Scopes: []httpadapter.Scope{httpadapter.ScopeTrigger}},
	})
	if err != nil {
		return nil, err
	}
	settings := said.Config()
	settings.Alarm, settings.Concurrency, settings.Default.Timeout = alarm, cmp.Or(settings.Concurrency, 20), 30*time.Second
	s, err := core.New(store, settings)
	if err != nil {
		return nil, err
	}
	handlers(s, logger)
	if err := said.Start(ctx, s, logger); err != nil {
		return nil, err
	}
	return httpadapter.New(s, httpadapter.Config{
		Tokens: []string{token}, Verifiers: []httpadapter.Verifier{signed}, CronSecret: get("CRON_SECRET"), Logger: logger,
		MaxTimeout: 50 * time.Second, // vercel.json gives a request 60
	}), nil
}
