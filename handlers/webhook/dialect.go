package webhook

// What is posted to servers that know nothing of duly.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// Dialect says what is posted in place of a task, and what of the answer is its result. It is used by many goroutines at once.
type Dialect interface {
	// Request is what is posted for a run, as JSON, and where: path is added to the URL of the handler, with its segments escaped; empty for none.
	// Its error is the outcome of the run, and nothing is posted.
	Request(t *core.Task[json.RawMessage]) (path string, body []byte, err error)
	// Result is what is kept of a successful answer, as JSON; nil for nothing.
	Result(answer []byte) []byte
}

// Payload is a [Dialect] that posts the payload of the task alone, as JSON, and keeps the answer.
type Payload struct{}

// Request is the payload; null without one.
func (Payload) Request(t *core.Task[json.RawMessage]) (path string, body []byte, err error) {
	if len(t.Payload) == 0 {
		return "", []byte("null"), nil
	}
	return "", t.Payload, nil
}

// Result is the answer.
func (Payload) Result(answer []byte) []byte { return answer }

// mostAnswer is how much of an answer is read for a dialect, which keeps a part of it.
const mostAnswer = 1 << 20

// said is what is posted for a run.
func (h *Handler) said(t *core.Task[json.RawMessage]) (path string, body []byte, err error) {
	if h.dialect != nil {
		return h.dialect.Request(t)
	}
	if body, err = contract.Encode(t); err != nil {
		err = core.SkipRetry(fmt.Errorf("webhook: encode the task: %w", err))
	}
	return "", body, err
}

// most is how many bytes of an answer are read: one more than a result may have, so that Keep can tell.
func (h *Handler) most(t *core.RunInfo) int {
	if h.dialect != nil {
		return max(mostAnswer, t.MaxResult()+1)
	}
	return t.MaxResult() + 1
}

// outcome turns an answer into the outcome of the run.
func (h *Handler) outcome(t *core.RunInfo, said *contract.Reply) error {
	switch {
	case said.OK() && h.dialect != nil:
		said.Body = h.dialect.Result(said.Body)
	case h.once && said.Status >= 500 && said.Status != http.StatusServiceUnavailable:
		return core.SkipRetry(fmt.Errorf("%w: it may have been done, and is not sent again", said.Err()))
	}
	return said.Outcome(t, h.clock.Now())
}

// watch reports whether anything of a request has been sent to its server.
func watch(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := new(atomic.Bool)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}), sent
}
