package core

// Profiles as decisions need them: parsed once, and kept, as each claim brings them.

import (
	"cmp"
	"strings"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// habits are a profile as it is worked with. They never change.
type habits struct {
	stored record.Profile
	data   string // as it is stored
	zone   string // an IANA name; empty for UTC
	quiet  *schedule.Quiet
}

// kept are the profiles that a process has met, by what is stored, and by the agents that it has submitted for: what the last of those had
// is what the next is planned with.
type keptHabits struct {
	mu   sync.Mutex
	all  map[string]*habits
	last map[string]*habits
}

// mostHabits bounds what is kept; when it is reached all of it is forgotten, and comes back as it is used.
const mostHabits = 4096

// of are the habits of a stored profile, for a default zone; nil without one. One that cannot be read has no quiet hours: a task that
// starts is better than one that never does.
func (k *keptHabits) of(data []byte, zone string) *habits {
	if len(data) == 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if h := k.all[string(data)]; h != nil {
		return h
	}
	h := &habits{data: string(data), zone: zone}
	var err error
	if h.stored, err = record.DecodeProfile(data); err == nil && !h.stored.Deleted {
		if h.stored.Zone != "" {
			h.zone = h.stored.Zone
		}
		h.quiet, _ = schedule.ParseQuiet(h.hours(), h.zone) // it was accepted when it was set
	}
	if k.all == nil || len(k.all) >= mostHabits {
		k.all = map[string]*habits{}
	}
	k.all[h.data] = h
	return h
}

// saw notes the profile that an agent has, and lastOf is what was noted last.
func (k *keptHabits) saw(agent string, h *habits) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case h == nil:
		delete(k.last, agent)
		return
	case k.last == nil || len(k.last) >= mostHabits:
		k.last = map[string]*habits{}
	}
	k.last[agent] = h
}

func (k *keptHabits) lastOf(agent string) *habits {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last[agent]
}

// hours are the quiet hours as they were set.
func (h *habits) hours() []QuietHours {
	var out []QuietHours
	for _, line := range h.stored.Quiet {
		parts := strings.SplitN(line, "\x00", 3)
		if len(parts) != 3 {
			continue
		}
		q := QuietHours{From: parts[0], To: parts[1]}
		if parts[2] != "" {
			q.Days = strings.Split(parts[2], ",")
		}
		out = append(out, q)
	}
	return out
}

// profile is what was set.
func (h *habits) profile(agent string) Profile {
	p := Profile{Agent: agent, Zone: h.stored.Zone, Quiet: h.hours(), Urgent: h.stored.Urgent, Revision: h.stored.Revision}
	for _, l := range h.stored.Labels {
		name, value, _ := strings.Cut(l, "\x00")
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[name] = value
	}
	p.Limits = limitsIn(&h.stored)
	for _, text := range h.stored.Budgets {
		if b, err := ReadBudget([]byte(text)); err == nil {
			p.Budgets = append(p.Budgets, b)
		}
	}
	return p
}

// until is the end of the quiet time that a time is in for a task, or the time itself.
func (h *habits) until(at store.Millis, level Level, urgent bool) store.Millis {
	if h == nil || h.quiet == nil || at >= store.Never || h.stored.Urgent && (urgent || level == LevelHigh) {
		return at
	}
	return max(store.MillisOf(h.quiet.Until(at.Time())), at)
}

// zoneOf is the zone of a task's times as its handler is told it.
func (s *Scheduler) zoneOf(c *Claimed, b *body) string {
	if b.Zone != ZoneOfAgent {
		return b.zone()
	}
	return cmp.Or(s.habits.of(c.Profile, s.config.Zone).zoned(cronSpec{zone: ZoneOfAgent}, s.config.Zone).zone, "UTC")
}

// zoned is a cron schedule in the zone that it has for an agent; zone is the default.
func (h *habits) zoned(spec cronSpec, zone string) cronSpec {
	if spec.zone != ZoneOfAgent {
		return spec
	}
	if spec.zone = zone; h != nil {
		spec.zone = h.zone
	}
	return spec
}
