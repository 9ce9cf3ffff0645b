package webhook

// A URL as the gate of a kind: what the status and the body of its answer say about a run.

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// GateConfig says which server is asked whether there is anything to do.
type GateConfig struct {
	Config

	// Timeout is how long it may take: 30 seconds if zero. The timeout of the run counts from before the gate is asked.
	Timeout time.Duration
}

// Gate asks a server whether there is anything to do. Its Ask is a gate for [core.Gate].
//
// The run is posted as Handler does, with another Webhook-Id for each question. The status of the answer decides:
//
//	200                   the run starts, and the body goes to the handler, unless it is a JSON object with "wake" or "wakeAgent" false
//	204, 304              there is nothing to do
//	412                   the same, if the message had an If-None-Match
//	other                 an error as for a handler: the run fails, or is put off by a Retry-After
//
// The ETag of a 200 is kept with the task once its run has succeeded, and sent with the next question as If-None-Match.
type Gate struct {
	handler *Handler
	timeout time.Duration
}

// NewGate checks the configuration as New does.
func NewGate(c GateConfig) (*Gate, error) {
	if c.Timeout < 0 {
		return nil, &core.ConfigError{Field: "Timeout", Value: c.Timeout, Reason: fmt.Sprintf("must not be negative, not %s", c.Timeout)}
	}
	h, err := New(c.Config)
	if err != nil {
		return nil, err
	}
	return &Gate{handler: h, timeout: cmp.Or(c.Timeout, contract.GateTimeout)}, nil
}

// Ask posts one run and waits for the answer.
func (g *Gate) Ask(ctx context.Context, t *core.RunInfo) (core.GateAnswer, error) {
	body, err := contract.EncodeGate(t)
	if err != nil {
		return core.GateAnswer{}, core.SkipRetry(fmt.Errorf("webhook: encode the task: %w", err))
	}
	within, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	r, err := g.handler.request(within, t, questionID(t), body)
	if err != nil {
		return core.GateAnswer{}, err
	}
	tag := t.GateTag()
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	said, err := g.handler.post(r, body, model.MaxGateInput+1)
	switch {
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return core.GateAnswer{}, fmt.Errorf("webhook: no answer within %s", g.timeout)
	case err != nil:
		return core.GateAnswer{}, err
	}
	return g.decide(said, tag != "")
}

// decide is what an answer says. conditional is whether the question had an If-None-Match: servers answer 304 to a GET alone, and 412 to
// what is posted.
func (g *Gate) decide(said *contract.Reply, conditional bool) (core.GateAnswer, error) {
	switch status := said.Status; {
	case status == http.StatusOK:
		let, err := contract.Answer(said.Body)
		if err != nil {
			return core.GateAnswer{}, fmt.Errorf("webhook: %w", err)
		}
		// One that is too long is not kept: then the whole answer comes again.
		if tag := said.Header.Get("ETag"); len(tag) <= model.MaxGateTag {
			let.Tag = tag
		}
		return let, nil
	case status == http.StatusNoContent, status == http.StatusNotModified, status == http.StatusPreconditionFailed && conditional:
		return core.GateAnswer{}, nil
	case status < http.StatusMultipleChoices:
		return core.GateAnswer{}, fmt.Errorf("webhook: %d %s: a gate must answer 200, 204 or 304", status, http.StatusText(status))
	default:
		return core.GateAnswer{}, said.Refused(g.handler.clock.Now())
	}
}
