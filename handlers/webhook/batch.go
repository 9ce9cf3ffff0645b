package webhook

// Batches: one message about several tasks, and what its answer means for each.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// RunBatch posts all tasks of a batch in one message: it is a handler for [core.HandleBatch]. The server gets a JSON array of the runs, and answers
// with a JSON array that has an outcome for each, in the same order. Any other answer of 2xx fails all of them, which
// are tried again; any other status means for all what it means for one.
//
// A handler with a dialect runs no batches: they fail.
func (h *Handler) RunBatch(ctx context.Context, ts []*core.Task[json.RawMessage]) []error {
	if h.dialect != nil {
		return contract.All(ts, core.SkipRetry(errors.New("webhook: a dialect has no batches: leave out batch of the kind")))
	}
	body, err := contract.EncodeBatch(ts)
	if err != nil {
		return contract.All(ts, fmt.Errorf("webhook: encode the tasks: %w", err))
	}
	r, err := h.message(ctx, contract.Shared(ts), batchID(ts), body)
	if err != nil {
		return contract.All(ts, err)
	}
	if trace := contract.Trace(ts); trace != "" {
		r.Header.Set("Traceparent", trace)
	}
	said, err := h.post(r, body, contract.MostOutcomes(ts))
	switch {
	case err != nil:
		return contract.All(ts, err)
	case !said.OK():
		return contract.All(ts, said.Refused(h.clock.Now()))
	}
	if names := said.Steers(); len(names) > 0 {
		return contract.All(ts, fmt.Errorf("webhook: the header %s%s steers one run: the answer to a batch says it in the outcome of a task", contract.Prefix, names[0]))
	}
	outcomes, err := contract.Outcomes(ts, said.Body, h.clock.Now())
	if err != nil {
		return contract.All(ts, fmt.Errorf("webhook: the answer to a batch %w", err))
	}
	return outcomes
}

// batchID names a batch: the same tasks at the same occurrences in the same order are the same message. A receiver that has to know each task
// again does so by its id and occurrence.
func batchID(ts []*core.Task[json.RawMessage]) string {
	sum := sha256.New()
	for _, t := range ts {
		_, _ = io.WriteString(sum, contract.MessageID(t.RunInfo)) // a hash never fails
	}
	return "batch_" + hex.EncodeToString(sum.Sum(nil)[:16])
}
