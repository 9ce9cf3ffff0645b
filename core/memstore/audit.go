package memstore

import (
	"slices"

	"github.com/seed-6f6f2c11/duly/core"
)

// audit looks at all tasks of a partition: here a page has no end. What it finds would be a mistake in this package, so
// there is nothing to repair.
func (p *partition) audit(now core.Millis) core.Effect {
	found := &core.Audited{}
	for _, a := range p.agents {
		for _, t := range a.tasks {
			found.Tasks++
			if code := p.fault(t, now); code != "" {
				found.Faults = append(found.Faults, core.Fault{Agent: a.name, ID: t.ID, Code: code})
			}
		}
	}
	return core.Effect{Audited: found}
}

func (p *partition) fault(t *task, now core.Millis) core.FaultCode {
	switch {
	case t.claim != nil:
		if t.claim.term.at < 0 || !slices.ContainsFunc(t.claim.runs, func(h held) bool { return h.task == t }) {
			return core.FaultLost
		}
	case t.parked != "":
		if !p.comesBack(t) {
			return core.FaultStranded
		}
	case t.at < 0:
		return core.FaultLost
	case p.serial[t.Agent] != nil: // it is put back in time when the run ends
	case t.agent.at < 0 || t.agent.visit > max(t.due, now):
		return core.FaultAsleep
	}
	return ""
}

// comesBack reports whether something will put back what is parked where a task is.
func (p *partition) comesBack(t *task) bool {
	if t.parked == t.Kind {
		return true
	}
	for _, s := range scopes(t) {
		_, held := p.holds[s]
		opened := slices.ContainsFunc(p.open, func(o opened) bool { return o.scope == s })
		if s.parking() == t.parked && (held || opened) {
			return true
		}
	}
	return false
}
