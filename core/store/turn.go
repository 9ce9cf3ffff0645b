package store

// Turn: outcomes and the next claim in one call, and its meaning for a store that has no shorter way.

import "context"

// halves are the verbs that a turn is made of.
type halves interface {
	Claim(ctx context.Context, requests []ClaimRequest) ([]Claim, error)
	Settle(ctx context.Context, runs []Settlement) ([]Settled, error)
}

// InTurn is [Queue.Turn] by way of Settle and then Claim, for stores that save nothing by doing both in one call.
func InTurn(ctx context.Context, s halves, runs []Settlement, requests []ClaimRequest) ([]Settled, []Claim, error) {
	var settled []Settled
	var claims []Claim
	var settleErr, claimErr error
	if len(runs) > 0 {
		settled, settleErr = s.Settle(ctx, runs)
	}
	if len(requests) > 0 {
		claims, claimErr = s.Claim(ctx, requests)
	}
	return Turned(runs, settled, settleErr, requests, claims, claimErr)
}

// Turned is the answer to a turn whose halves have been answered, or have failed as a whole. The error of a half is in each of
// its items if the other half was carried out, so that none is lost with the other.
func Turned(runs []Settlement, settled []Settled, settleErr error, requests []ClaimRequest, claims []Claim, claimErr error) ([]Settled, []Claim, error) {
	switch {
	case settleErr != nil && (claimErr != nil || len(requests) == 0):
		return nil, nil, settleErr
	case claimErr != nil && len(runs) == 0:
		return nil, nil, claimErr
	case settleErr != nil:
		settled = make([]Settled, len(runs))
		for i := range settled {
			settled[i].Err = settleErr
		}
	case claimErr != nil:
		claims = make([]Claim, len(requests))
		for i := range claims {
			claims[i].Look = Look{Partition: requests[i].Partition, Err: claimErr}
		}
	}
	return settled, claims, nil
}
