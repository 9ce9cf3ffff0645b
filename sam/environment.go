package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// The function's settings, and of what is made from them once for the life of the environment.

// reachIn is how long Redis has to answer at the start.
const reachIn = 5 * time.Second

// environment are the settings.
type environment struct {
	redis        redisstore.Config
	tokens       []string
	runSubmitted bool
	name         string // of the function
}

// readEnvironment reads the settings. Its errors name the variable, never what it holds.
func readEnvironment(get func(string) string) (environment, error) {
	e := environment{redis: redisstore.Config{}.With(get), name: get("AWS_LAMBDA_FUNCTION_NAME")}
	if e.redis.URL == "" {
		return e, errors.New("DULY_REDIS_URL is not set: it must be a URL such as rediss://user:password@host:6379/0, " +
			"or DULY_REDIS_SECRET_ID the secret that has one")
	}
	for token := range strings.SplitSeq(get("DULY_TOKEN"), ",") {
		if token = strings.TrimSpace(token); token != "" {
			e.tokens = append(e.tokens, token)
		}
	}
	var err error
	e.runSubmitted, err = flag(get, "DULY_RUN_SUBMITTED")
	return e, err
}

// flag is a variable that is true or false; false if it is empty.
func flag(get func(string) string, name string) (bool, error) {
	text := get(name)
	if text == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s must be true or false", name)
	}
	return on, nil
}

// openStore connects to Redis once for the life of the environment: all invocations share its connections.
func (e environment) openStore(ctx context.Context, logger *slog.Logger) (*redisstore.Store, error) {
	c := e.redis
	c.Logger, c.Remember = logger, true // with alarms nearly each call is a cold start
	ctx, cancel := context.WithTimeout(ctx, reachIn)
	defer cancel()
	return redisstore.Open(ctx, c)
}

// api is the HTTP API. A request that AWS found to be signed may do everything, as may one with a token, if there are any;
// any other may only answer questions whose addresses it has, with any AuthType of the URL.
func api(s *core.Scheduler, c *core.Config, tokens []string, asks *httpadapter.Approvals) (http.Handler, error) {
	config := httpadapter.Config{
		Logger: c.Logger, Version: version, Tokens: tokens, Verifiers: []httpadapter.Verifier{&signedForAWS{}}, Approvals: asks,
	}
	if models != nil {
		var err error
		if config.MCP, err = models(s, c, c.Logger); err != nil {
			return nil, err
		}
	}
	return httpadapter.New(s, config), nil
}

// models answers models; nil in a function that was not built with MCP=1, as each cold start would load what it links.
var models func(s *core.Scheduler, c *core.Config, logger *slog.Logger) (httpadapter.MCP, error)

// signedForAWS accepts the requests whose signature AWS has checked (AuthType AWS_IAM). Who may sign is decided there, by a policy.
type signedForAWS struct{}

// Verify asks the event that brought the request: nothing that the client sends can claim it.
func (*signedForAWS) Verify(r *http.Request) (*httpadapter.Grant, error) {
	if lambdaadapter.Caller(r.Context()) == "" {
		return nil, httpadapter.ErrNoCredential
	}
	return &httpadapter.Grant{}, nil
}
