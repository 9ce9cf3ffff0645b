package lambda

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/aws/sdk"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// DefaultAnswerWithin is how long a task waits for the answer of a function that is only started.
const DefaultAnswerWithin = time.Hour

// from begins the errors of this package, and the keys of the signals that its tasks wait for.
const from = "lambda"

// Config says which function is invoked, and how.
type Config struct {
	// Function is its name or its ARN, with a version or an alias behind a colon if one is meant.
	Function string
	// Async starts the function, and waits for its answer by a signal.
	Async bool
	// AnswerWithin is how long an answer may take with Async: DefaultAnswerWithin if zero.
	AnswerWithin time.Duration
	// Region is that of the function: that of its ARN, or of the environment, if empty.
	Region string
	// Endpoint is that of Lambda: the region's if empty, or AWS_ENDPOINT_URL_LAMBDA and AWS_ENDPOINT_URL of the environment.
	Endpoint string
	// Clock is core.SystemClock if nil.
	Clock core.Clock
}

// Handler invokes a function. Its Run is a handler for [core.Handle]. It is safe for concurrent use.
type Handler struct {
	config Config
	client *lambda.Client
}

// New reads the configuration of AWS, and calls no server.
func New(ctx context.Context, c Config) (*Handler, error) {
	if c.Function == "" || strings.ContainsAny(c.Function, " /") {
		return nil, &core.ConfigError{Field: "To", Reason: "must be the name or the ARN of a function, such as digest or arn:aws:lambda:eu-north-1:123456789012:function:digest"}
	}
	if c.AnswerWithin < 0 || c.AnswerWithin > 0 && !c.Async {
		return nil, &core.ConfigError{Field: "AnswerWithin", Reason: "must be positive, and is for functions that are only started: it needs async"}
	}
	if parts := strings.Split(c.Function, ":"); c.Region == "" && parts[0] == "arn" && len(parts) > 3 {
		c.Region = parts[3]
	}
	if c.AnswerWithin == 0 {
		c.AnswerWithin = DefaultAnswerWithin
	}
	if c.Clock == nil {
		c.Clock = core.SystemClock{}
	}
	loaded, err := sdk.Load(ctx, c.Region, c.Endpoint)
	if err != nil {
		return nil, err
	}
	return &Handler{config: c, client: lambda.NewFromConfig(loaded)}, nil
}

// Target is the handler as duly.yaml has it.
func Target() contract.Target {
	return contract.Target{Name: from, Open: func(ctx context.Context, c contract.TargetConfig) (contract.Runner, error) {
		return New(ctx, Config{Function: c.To, Async: c.Async, AnswerWithin: c.AnswerWithin, Region: c.Region, Endpoint: c.Endpoint})
	}}
}

// Run invokes the function for one task, and waits for it as long as ctx and the timeout of the task's kind allow, unless it is only started.
func (h *Handler) Run(ctx context.Context, t *core.Task[json.RawMessage]) error {
	key := ""
	if h.config.Async {
		if heard, waited := t.Heard(); waited && asks(heard.Key, t.Attempt) && (heard.Told || heard.TimedOut) {
			return h.answered(t, &heard)
		}
		key = fmt.Sprintf("%s-%d-%d", from, t.Fence, t.Attempt)
	}
	event, err := contract.EncodeMessage(ctx, t, replyTo(t.Agent, key))
	if err != nil {
		return core.SkipRetry(fmt.Errorf("%s: encode the task: %w", from, err))
	}
	in := &lambda.InvokeInput{FunctionName: aws.String(h.config.Function), Payload: event}
	if h.config.Async {
		in.InvocationType = types.InvocationTypeEvent
	}
	out, err := h.client.Invoke(ctx, in)
	switch {
	case err != nil:
		return sdk.Failure(from, err, h.config.Clock.Now())
	case h.config.Async:
		return core.Await(core.Signal{Key: key, Timeout: h.config.AnswerWithin}, nil)
	case out.FunctionError != nil:
		return failed(out.Payload)
	default:
		return h.returned(t.RunInfo, out.Payload)
	}
}

// asks reports whether a key is that of a wait of this attempt. The answer to an earlier one, which has failed, is not that to the next.
func asks(key string, attempt int) bool {
	return strings.HasPrefix(key, from+"-") && strings.HasSuffix(key, "-"+strconv.Itoa(attempt))
}

// replyTo is the path of the API that takes an answer; empty for none.
func replyTo(agent, key string) string {
	if key == "" {
		return ""
	}
	return "/v1/signals/" + url.PathEscape(agent) + "/" + key
}

// answered is what an answer that came by a signal means: it has the form of the outcome of a worker.
func (h *Handler) answered(t *core.Task[json.RawMessage], heard *core.Heard) error {
	if heard.TimedOut {
		return fmt.Errorf("%s: %s has not answered within %s", from, h.config.Function, h.config.AnswerWithin)
	}
	said, err := contract.ParseOutcome(heard.Payload)
	if err != nil {
		return core.SkipRetry(fmt.Errorf("%s: the answer %w", from, err)) // the work is done
	}
	outcome, err := said.Read(h.config.Clock.Now())
	if err != nil {
		return core.SkipRetry(fmt.Errorf("%s: the answer %w", from, err))
	}
	return outcome(t)
}

// failed is the error of a function.
func failed(payload []byte) error {
	var said struct{ ErrorType, ErrorMessage string }
	text := string(payload)
	if json.Unmarshal(payload, &said) == nil && said.ErrorMessage != "" {
		text = strings.TrimPrefix(said.ErrorType+": ", ": ") + said.ErrorMessage
	}
	return fmt.Errorf("%s: the function has failed: %s", from, contract.Text([]byte(text)[:min(len(text), contract.MostErrorAnswer)]))
}

// returned is what the answer of a function means. One that answers to URLs, too, says so with a status.
func (h *Handler) returned(t *core.RunInfo, payload []byte) error {
	r := &contract.Reply{From: from, Status: http.StatusOK, Header: http.Header{}, Body: payload}
	var said struct {
		StatusCode int               `json:"statusCode"`
		Headers    map[string]string `json:"headers"`
		Body       string            `json:"body"`
		Base64     bool              `json:"isBase64Encoded"`
	}
	if json.Unmarshal(payload, &said) == nil && said.StatusCode > 0 {
		r.Status, r.Body = said.StatusCode, []byte(said.Body)
		for name, value := range said.Headers {
			r.Header.Set(name, value)
		}
		if decoded, err := base64.StdEncoding.DecodeString(said.Body); err == nil && said.Base64 {
			r.Body = decoded
		}
	}
	if string(r.Body) == "null" { // it returns nothing
		r.Body = nil
	}
	r.Body = r.Body[:min(len(r.Body), t.MaxResult()+1)] // one byte more than a result may have, so that Keep can tell
	return r.Outcome(t, h.config.Clock.Now())
}
