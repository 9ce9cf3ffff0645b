// Command sam is duly as an AWS Lambda function, deployed by template.yaml: it runs what is due at each tick of its
// schedule, submits the tasks that arrive in its queue, and serves the HTTP API at its URL. Handlers of your own go into
// handlers.go. Its settings are environment variables, which the template sets.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/redis/go-redis/v9/logging"

	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/host/aws"
)

// version is set by the linker; see the Makefile.
var version string

func main() {
	c := settings()
	c.Logger = lambdacontext.NewLogger() // each line that belongs to an invocation has its requestId
	f, err := build(context.Background(), c, handlers)
	if err != nil {
		reportInit(err)
		os.Exit(1)
	}
	serve(f.Invoke)
}

// build makes the function from the environment. Lambda gives it ten seconds.
func build(ctx context.Context, c core.Config, register registrar) (*lambdaadapter.Function, error) {
	logging.Disable() // what goes wrong with Redis is in our own errors
	v := aws.NewVault(os.Getenv)
	get, err := v.Open(ctx, os.Getenv)
	if err != nil {
		return nil, err
	}
	e, err := readEnvironment(get)
	if err != nil {
		return nil, err
	}
	if err := v.LogIn(&e.redis, get); err != nil {
		return nil, err
	}
	store, err := e.openStore(ctx, c.Logger)
	if err != nil {
		return nil, err
	}
	clock, queue, err := alarm(get)
	if err != nil {
		return nil, err
	}
	c.Alarm = clock
	if c.Callbacks, err = callbacks(get); err != nil {
		return nil, err
	}
	asks, err := approvals(get)
	if err != nil {
		return nil, err
	}
	s, err := core.New(store, c)
	if err != nil {
		return nil, err
	}
	if err := register.call(s, get); err != nil {
		return nil, err
	}
	served, err := api(s, &c, e.tokens, asks)
	if err != nil {
		return nil, err
	}
	return lambdaadapter.New(s, lambdaadapter.Config{
		HTTP: served, RunSubmitted: e.runSubmitted, Logger: c.Logger, Metrics: e.name,
		AlarmQueue: queue, Alarm: clock,
	})
}

// registrar registers the handlers. get is the environment, with the secrets that it names.
type registrar func(s *core.Scheduler, get func(string) string) error

// call makes a kind that core.Handle refuses, as it is empty or has a handler already, an error: a panic would end the process
// before the reason can be reported to Lambda.
func (r registrar) call(s *core.Scheduler, get func(string) string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the handlers cannot be registered: %v", v)
		}
	}()
	return r(s, get)
}

// invoke answers one event.
type invoke func(ctx context.Context, event json.RawMessage) (json.RawMessage, error)

// Invoke makes it a handler that gets and gives the bytes as they are.
func (i invoke) Invoke(ctx context.Context, event []byte) ([]byte, error) { return i(ctx, event) }

// serve runs Lambda's loop. When the environment is shut down, half a second before it is killed, what is under way is
// cancelled, so that its tasks are released and need not wait for their leases to run out.
func serve(i invoke) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	lambda.StartWithOptions(i, lambda.WithContext(ctx), lambda.WithEnableSIGTERM(stop))
}

// reportInit reports to Lambda why the function cannot start, so that its invoker sees the reason too, and not only the log.
func reportInit(err error) {
	lambdacontext.NewLogger().LogAttrs(context.Background(), slog.LevelError, "the function cannot start", slog.Any("err", err))
	body, _ := json.Marshal(map[string]string{"errorMessage": err.Error(), "errorType": "Duly.InitError"}) // two texts
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	to := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/init/error"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body)) //nolint:gosec // Lambda says where
	if err != nil {
		return
	}
	r.Header.Set("Lambda-Runtime-Function-Error-Type", "Duly.InitError")
	client := http.Client{Transport: &http.Transport{}} // by no proxy
	if res, err := client.Do(r); err == nil {           //nolint:gosec // see above
		_ = res.Body.Close()
	}
}
