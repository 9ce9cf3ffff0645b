// Command lambda is an AWS Lambda function with handlers in Go: it runs what is due at each tick, and submits the tasks that
// arrive through SQS. Its settings are DULY_REDIS_URL and DIGEST_URL. sam/ is the one to deploy, with a template, a queue, a URL
// and alarms; this is what a function of your own needs at least.
//
// Set the function's timeout: Lambda's default is 3 s, less than a cold start and one task. Here a task may take 20 s: 60 s are right.
//
//	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -tags lambda.norpc -ldflags '-s -w' -o bootstrap ./examples/lambda
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// main makes everything once. Lambda keeps the process for the invocations that follow, which find the connections open.
func main() {
	logger := lambdacontext.NewLogger() // each line has the id of its request
	f, err := build(context.Background(), os.Getenv, logger)
	if err != nil {
		logger.Error("the function cannot start", slog.Any("err", err))
		os.Exit(1)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	// At SIGTERM, half a second before the process is killed, the context of what runs ends: its tasks are released.
	lambda.StartWithOptions(f.Invoke, lambda.WithContext(ctx), lambda.WithEnableSIGTERM(stop))
}

// build opens the store and registers the handlers. A failure here fails
// the start of the environment, visibly.
func build(ctx context.Context, get func(string) string, logger *slog.Logger) (*lambdaadapter.Function, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // of the ten that Lambda gives
	defer cancel()
	store, err := redisstore.Open(ctx, redisstore.Config{Logger: logger, Remember: true}.With(get))
	if err != nil {
		return nil, err
	}
	// A run has to end well before its invocation does: what is cut off starts again, for ever if it hangs.
	s, err := core.New(store, core.Config{Name: os.Getenv("AWS_LAMBDA_LOG_STREAM_NAME"), Concurrency: 20, Default: core.KindConfig{Timeout: 20 * time.Second}})
	if err != nil {
		return nil, err
	}
	d := &digests{url: get("DIGEST_URL"), client: &http.Client{}}
	core.Handle(s, "digest", d.write)
	return lambdaadapter.New(s, lambdaadapter.Config{RunSubmitted: true, Logger: logger})
}

// Digest is what a task of the kind "digest" holds.
type Digest struct {
	Topics []string `json:"topics"`
}

// digests asks a service to write digests.
type digests struct {
	url    string
	client *http.Client
}

// write stores what the service answers as the task's result.
func (d *digests) write(ctx context.Context, t *core.Task[Digest]) error {
	if len(t.Payload.Topics) == 0 {
		return core.SkipRetry(errors.New("topics: there has to be one"))
	}
	body, err := json.Marshal(map[string]any{"agent": t.Agent, "topics": t.Payload.Topics})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(body))
	if err != nil {
		return core.SkipRetry(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := d.client.Do(r)
	if err != nil {
		return err // again, after a pause
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 32<<10))
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusTooManyRequests:
		return core.Snooze(time.Minute) // no failed attempt
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("the service answered %s", res.Status)
	default:
		return t.SetResult(string(answer))
	}
}
