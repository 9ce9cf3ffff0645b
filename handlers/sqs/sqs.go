// Package sqs is a ready-made handler that sends each task to a queue of Amazon SQS, by Amazon's library. The task is done when the queue has taken the message: what
// its receiver makes of it is the receiver's affair.
//
// The message is the run as JSON. In a FIFO queue the messages of an agent are in order, and the repeat of a message within five minutes is dropped.
package sqs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/aws/sdk"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// from begins the errors of this package.
const from = "sqs"

// mostGroup is how long the name of a group may be.
const mostGroup = 128

// Config says which queue gets the messages.
type Config struct {
	// QueueURL is that of the queue: https://sqs.REGION.amazonaws.com/ACCOUNT/NAME.
	QueueURL string
	// Region is the queue's: that of its URL, or of the environment, if empty.
	Region string
	// Endpoint is that of SQS: the region's if empty, or AWS_ENDPOINT_URL_SQS and AWS_ENDPOINT_URL of the environment.
	Endpoint string
	// Clock is core.SystemClock if nil.
	Clock core.Clock
}

// Handler sends messages. Its Run is a handler for [core.Handle]. It is safe for concurrent use.
type Handler struct {
	config Config
	fifo   bool
	client *sqs.Client
}

// New reads the configuration of AWS, and calls no server.
func New(ctx context.Context, c Config) (*Handler, error) {
	u, err := url.Parse(c.QueueURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") == "" {
		return nil, &core.ConfigError{Field: "To", Reason: "must be the URL of a queue, such as https://sqs.eu-north-1.amazonaws.com/123456789012/digests"}
	}
	if parts := strings.Split(u.Hostname(), "."); c.Region == "" && parts[0] == "sqs" && len(parts) > 3 {
		c.Region = parts[1]
	}
	if c.Clock == nil {
		c.Clock = core.SystemClock{}
	}
	loaded, err := sdk.Load(ctx, c.Region, c.Endpoint)
	if err != nil {
		return nil, err
	}
	return &Handler{config: c, fifo: strings.HasSuffix(u.Path, ".fifo"), client: sqs.NewFromConfig(loaded)}, nil
}

// Target is the handler as duly.yaml has it.
func Target() contract.Target {
	return contract.Target{Name: from, Open: func(ctx context.Context, c contract.TargetConfig) (contract.Runner, error) {
		return New(ctx, Config{QueueURL: c.To, Region: c.Region, Endpoint: c.Endpoint})
	}}
}

// Run sends one task.
func (h *Handler) Run(ctx context.Context, t *core.Task[json.RawMessage]) error {
	body, err := contract.EncodeMessage(ctx, t, "")
	if err != nil {
		return core.SkipRetry(fmt.Errorf("%s: encode the task: %w", from, err))
	}
	in := &sqs.SendMessageInput{QueueUrl: aws.String(h.config.QueueURL), MessageBody: aws.String(string(body))}
	if h.fifo {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String(group(t.Agent)), aws.String(contract.MessageID(t.RunInfo))
	}
	out, err := h.client.SendMessage(ctx, in)
	if err != nil {
		return sdk.Failure(from, err, h.config.Clock.Now())
	}
	return t.SetResult(map[string]string{"message_id": aws.ToString(out.MessageId)})
}

// group is the group of an agent. SQS takes letters, digits and punctuation of ASCII alone.
func group(agent string) string {
	if len(agent) <= mostGroup && !strings.ContainsFunc(agent, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return agent
	}
	sum := sha256.Sum256([]byte(agent))
	return hex.EncodeToString(sum[:])
}
