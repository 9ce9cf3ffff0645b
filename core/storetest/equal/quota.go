package equal

// Quotas.

import "github.com/seed-6f6f2c11/duly/core/store"

// quota is a random quota with little room.
func (d *draw) quota() *store.Quota {
	return &store.Quota{Live: d.pick(12), Recurring: d.pick(4), Submits: d.pick(8), Bytes: int64(d.pick(3)) * 20 << 10, Depth: 1}
}

// note notes the quota that an agent has got with its profile.
func (d *draw) note(c *store.ProfileChange, effects []store.Effect) {
	if len(effects) == 0 || effects[0].Code != store.EffectDone || d.was[c.Agent] == string(c.Now) {
		return
	}
	if c.Quota != nil && d.quotas == nil {
		d.quotas, d.was = map[string]*store.Quota{}, map[string]string{}
	}
	if d.quotas != nil {
		d.quotas[c.Agent], d.was[c.Agent] = c.Quota, string(c.Now)
	}
}

// quoted makes some tasks recur, and some bound by the quota of their agent: most were checked by it. Without a quota it draws nothing.
func (d *draw) quoted(s *store.Submission) {
	if d.quotas == nil {
		return
	}
	s.Recurs = d.pick(3) == 0
	if d.pick(3) > 0 && !s.Owed {
		s.Bound, s.Mark = true, d.quotas[s.Agent].Mark()
	}
	if d.pick(16) == 0 {
		s.Mark = "0123456789abcdef"
	}
}
