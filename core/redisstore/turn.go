package redisstore

// Turn: settlements and claims in one pipeline to each node.

import (
	"cmp"
	"context"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Turn ends runs and leases due tasks; see [store.Queue]. Redis carries out the scripts of a pipeline in their order. One that
// has to be sent again, as the server did not know it or had moved its partition, or as a plain one was not enough, may come
// after the scripts that follow it.
func (s *Store) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	var span *spanning
	if len(s.db.Parts) > 1 {
		span = &spanning{store: s, requests: requests, later: s.permits.waiting(requests)}
	}
	calls, members := s.settleCalls(runs, requests)
	settles := len(calls)
	calls = s.claimCalls(calls, requests)
	claims := settles + len(requests)
	if span != nil {
		for _, i := range span.later {
			calls[settles+i].Later = true
		}
	}
	calls = s.sweep(calls, requests)
	replies, errs := s.db.RunAll(ctx, call.VerbTurn, calls)
	s.sweptTo(calls[claims:], replies[claims:])
	settled, settleErr := settledBy(calls[:settles], runs, replies[:settles], errs[:settles], members)
	claimCalls, claimReplies, claimErrs := calls[settles:claims], replies[settles:claims], errs[settles:claims]
	if span != nil {
		span.calls, span.replies, span.errs = claimCalls, claimReplies, claimErrs
		span.answered(calls[:settles], replies[:settles], members)
		span.run(ctx)
		claimCalls, claimReplies, claimErrs = span.calls, span.replies, span.errs
	}
	claimed, claimErr := s.claimedBy(claimCalls, requests, claimReplies, claimErrs)
	if span != nil {
		s.spread(ctx, span, settled, claimed)
	}
	s.startLeft(ctx, requests, claimed)
	return store.Turned(runs, settled, settleErr, requests, claimed, claimErr)
}

// settledBy are the outcomes of runs, of which each call had some. It fails if all calls have.
func settledBy(calls []call.Call, runs []store.Settlement, replies [][]any, errs []error, members [][]int) ([]store.Settled, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	out := make([]store.Settled, len(runs))
	failed := 0
	for c, reply := range replies {
		if !parseSettled(out, &calls[c], runs, reply, members[c], errs[c]) {
			failed++
		}
	}
	if err := cmp.Or(errs...); err != nil && failed == len(replies) {
		return nil, err
	}
	return out, nil
}

// claimedBy are the claims in the replies to some requests. It fails if all have.
func (s *Store) claimedBy(calls []call.Call, requests []store.ClaimRequest, replies [][]any, errs []error) ([]store.Claim, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	out := make([]store.Claim, len(calls))
	failed := 0
	for i := range calls {
		out[i] = s.answered(&calls[i], &requests[i], replies[i], errs[i])
		if out[i].Err != nil && (requests[i].New == nil || errs[i] != nil) { // a task that is refused is an answer
			failed++
		}
	}
	if failed == len(calls) {
		return nil, out[0].Err
	}
	return out, nil
}
