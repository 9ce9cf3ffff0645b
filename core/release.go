package core

// Runs that their process gives back, uncharged.

import "github.com/seed-6f6f2c11/duly/core/internal/decide"

// release gives a run back that has not begun.
func (p *pull) release(r *run) {
	r.verdict.Settlement, r.verdict.Released = decide.Release(r.claimed), true
	p.settler.add(r)
}
