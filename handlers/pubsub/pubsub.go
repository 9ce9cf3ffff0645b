// Package pubsub is a ready-made handler that publishes each task to a topic of Google Cloud Pub/Sub, by Google's library. The task is done when the topic has taken
// the message: what its subscribers make of it is their affair.
//
// The message is the run as JSON, with the attributes agent_id, id, kind and message_id. Its ordering key is the agent: a subscription that wants it gets the messages
// of an agent in order.
package pubsub

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"sync"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/pubsub/v1"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// from begins the errors of this package.
const from = "pubsub"

// Config says which topic gets the messages.
type Config struct {
	// Topic is its full name: projects/PROJECT/topics/TOPIC.
	Topic string
	// Endpoint is that of Pub/Sub: Google's if empty. An emulator, at PUBSUB_EMULATOR_HOST of the environment, comes before both, and gets no credentials.
	Endpoint string
	// Clock is core.SystemClock if nil.
	Clock core.Clock
}

// Handler publishes messages. Its Run is a handler for [core.Handle]. It is safe for concurrent use.
type Handler struct {
	config  Config
	options []option.ClientOption

	mu      sync.Mutex
	service *pubsub.Service // made by the first run: looking for credentials may call a server
}

var topics = regexp.MustCompile(`^projects/[^/\s]+/topics/[^/\s]+$`)

// New checks the configuration, without any call.
func New(c Config) (*Handler, error) {
	if !topics.MatchString(c.Topic) {
		return nil, &core.ConfigError{Field: "To", Reason: "must be the full name of a topic, such as projects/acme/topics/digests"}
	}
	h := &Handler{config: c}
	if h.config.Clock == nil {
		h.config.Clock = core.SystemClock{}
	}
	if c.Endpoint != "" {
		h.options = []option.ClientOption{option.WithEndpoint(c.Endpoint)}
	}
	if emulator := os.Getenv("PUBSUB_EMULATOR_HOST"); emulator != "" {
		h.options = []option.ClientOption{option.WithEndpoint("http://" + emulator), option.WithoutAuthentication()}
	}
	return h, nil
}

// Target is the handler as duly.yaml has it.
func Target() contract.Target {
	return contract.Target{Name: from, Open: func(_ context.Context, c contract.TargetConfig) (contract.Runner, error) {
		return New(Config{Topic: c.To, Endpoint: c.Endpoint})
	}}
}

// open makes the client once. One that could not be made is tried again by the next run.
func (h *Handler) open(ctx context.Context) (*pubsub.Service, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.service == nil {
		service, err := pubsub.NewService(context.WithoutCancel(ctx), h.options...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		h.service = service
	}
	return h.service, nil
}

// Run publishes one task.
func (h *Handler) Run(ctx context.Context, t *core.Task[json.RawMessage]) error {
	body, err := contract.EncodeMessage(ctx, t, "")
	if err != nil {
		return core.SkipRetry(fmt.Errorf("%s: encode the task: %w", from, err))
	}
	service, err := h.open(ctx)
	if err != nil {
		return err
	}
	out, err := service.Projects.Topics.Publish(h.config.Topic, &pubsub.PublishRequest{Messages: []*pubsub.PubsubMessage{{
		Data: base64.StdEncoding.EncodeToString(body), OrderingKey: t.Agent,
		Attributes: map[string]string{"agent_id": t.Agent, "id": t.ID, "kind": t.Kind, "message_id": contract.MessageID(t.RunInfo)},
	}}}).Context(ctx).Do()
	if err != nil {
		return h.failed(err)
	}
	if len(out.MessageIds) == 0 {
		return nil
	}
	return t.SetResult(map[string]string{"message_id": out.MessageIds[0]})
}

// failed is what an error of the library means for a run.
func (h *Handler) failed(err error) error {
	said, answered := errors.AsType[*googleapi.Error](err)
	if !answered {
		return fmt.Errorf("%s: %w", from, err)
	}
	r := &contract.Reply{From: from, Status: said.Code, Header: said.Header, Body: []byte(cmp.Or(said.Message, said.Body))}
	switch said.Code {
	case http.StatusTooManyRequests:
		return r.Throttled(h.config.Clock.Now())
	case http.StatusUnauthorized: // a token that has just ended
		return r.Err()
	default:
		return r.Refused(h.config.Clock.Now())
	}
}
