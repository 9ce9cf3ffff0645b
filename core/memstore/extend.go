package memstore

import (
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core"
)

// Extend moves the ends of leases; see [core.Store].
func (s *Store) Extend(ctx context.Context, leases []core.Extension) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, &core.StoreError{Verb: "extend", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	held := make([]bool, len(leases))
	for i := range leases {
		p := s.parts[leases[i].Partition]
		c := p.claims[leases[i].Fence]
		if c == nil || c.at < 0 {
			continue
		}
		held[i] = true
		c.end = now.Add(leases[i].Lease)
		p.leases.fix(c)
		for _, pr := range leases[i].Progress {
			if pr.Index < 0 || pr.Index >= len(c.runs) || c.runs[pr.Index].task == nil {
				continue
			}
			t := c.runs[pr.Index].task
			t.state = slices.Clone(pr.State) // its crashes stay counted until the run ends
		}
	}
	return held, nil
}
