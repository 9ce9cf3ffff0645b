package core

// The turn: a claim that takes along what waits to be settled.

import (
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// claimWith claims. In a series the outcomes that wait for others travel with the claim, from any of its pulls.
func (p *pull) claimWith(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	batch := p.settler.board()
	if len(batch) == 0 {
		return p.s.store.Claim(ctx, requests)
	}
	runs := settlements(batch)
	p.settler.series.sends()
	settled, claims, err := p.s.store.Turn(ctx, runs, requests)
	// Before anything that was claimed starts: it may be the next run of what has just been settled.
	p.settler.arrived(batch, runs, settled, err)
	return claims, err
}

// board takes what waits for company, for a claim that begins.
func (t *settler) board() []*run {
	if t.series == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// A batch is already being stored, or one of its runs needs a callback, which takes an extra write.
	if t.working || slices.ContainsFunc(t.waiting, (*run).tells) {
		return nil
	}
	t.calm()
	return t.take()
}

// arrived takes note of how outcomes were settled that have travelled with a claim. Those that the store did not answer for, or
// that had to be decided a second time, are settled by themselves.
func (t *settler) arrived(batch []*run, runs []store.Settlement, settled []store.Settled, err error) {
	if err == nil {
		batch, runs, err = sortOut(batch, runs, settled)
	}
	if len(batch) == 0 {
		return
	}
	go func() {
		if err == nil {
			ctx, cancel := t.call(batch)
			batch, runs, err = t.try(ctx, batch, runs)
			cancel()
		}
		t.insist(batch, runs, err)
	}()
}
