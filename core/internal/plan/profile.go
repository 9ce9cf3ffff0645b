package plan

// Profiles as decisions need them: parsed once, and cached, as each claim returns them.

import (
	"strings"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/internal/bounding"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Profile are a parsed profile. They never change.
type Profile struct {
	Stored record.Profile
	Data   string // as it is stored
	zone   string // an IANA name; empty for UTC
	quiet  *schedule.Quiet
	quota  *store.Quota
	mark   string // of the quota
}

// ProfileCache are the profiles that a process has read, by their stored bytes, and by the agents that it has submitted for: the next submit for an
// agent is planned with the profile of the last.
type ProfileCache struct {
	mu   sync.Mutex
	all  map[string]*Profile
	last map[string]*Profile
}

// mostProfiles bounds each cache; when it is reached the cache is cleared, and fills again with use.
const mostProfiles = 4096

// Of returns the parsed form of a stored profile, for a default zone; nil without one. One that cannot be read has no quiet hours: a task that
// starts is better than one that never does.
func (k *ProfileCache) Of(data []byte, zone string) *Profile {
	if len(data) == 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if h := k.all[string(data)]; h != nil {
		return h
	}
	h := &Profile{Data: string(data), zone: zone}
	var err error
	if h.Stored, err = record.DecodeProfile(data); err == nil && !h.Stored.Deleted {
		if h.Stored.Zone != "" {
			h.zone = h.Stored.Zone
		}
		h.quiet, _ = schedule.ParseQuiet(h.hours(), h.zone) // it was accepted when it was set
		h.quota = bounding.QuotaIn(&h.Stored)
		h.mark = h.quota.Mark()
	}
	if k.all == nil || len(k.all) >= mostProfiles {
		k.all = map[string]*Profile{}
	}
	k.all[h.Data] = h
	return h
}

// SetLast records the profile that an agent has, and LastOf returns what was recorded last.
func (k *ProfileCache) SetLast(agent string, h *Profile) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case h == nil:
		delete(k.last, agent)
		return
	case k.last == nil || len(k.last) >= mostProfiles:
		k.last = map[string]*Profile{}
	}
	k.last[agent] = h
}

// LastOf is the profile that an agent had when it last submitted; nil if that is not known.
func (k *ProfileCache) LastOf(agent string) *Profile {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last[agent]
}

// hours are the quiet hours as they were set.
func (h *Profile) hours() []model.QuietHours {
	var out []model.QuietHours
	for _, line := range h.Stored.Quiet {
		parts := strings.SplitN(line, "\x00", 3)
		if len(parts) != 3 {
			continue
		}
		q := model.QuietHours{From: parts[0], To: parts[1]}
		if parts[2] != "" {
			q.Days = strings.Split(parts[2], ",")
		}
		out = append(out, q)
	}
	return out
}

// Model is the profile as it was set.
func (h *Profile) Model(agent string) model.Profile {
	p := model.Profile{Agent: agent, Zone: h.Stored.Zone, Quiet: h.hours(), Urgent: h.Stored.Urgent, Tenant: h.Stored.Tenant, Revision: h.Stored.Revision}
	for _, l := range h.Stored.Labels {
		name, value, _ := strings.Cut(l, "\x00")
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[name] = value
	}
	p.Limits = bounding.LimitsIn(&h.Stored)
	if h.quota != nil {
		p.Quota = *h.quota
	}
	for _, text := range h.Stored.Budgets {
		if b, err := bounding.ReadBudget([]byte(text)); err == nil {
			p.Budgets = append(p.Budgets, b)
		}
	}
	return p
}

// Bounds is the quota, not to be changed; nil for none.
func (h *Profile) Bounds() *store.Quota {
	if h == nil {
		return nil
	}
	return h.quota
}

// Mark is that of the quota; empty for none.
func (h *Profile) Mark() string {
	if h == nil {
		return ""
	}
	return h.mark
}

// Until is the end of the quiet time that contains a time, for a task, or the time itself.
func (h *Profile) Until(at moment.Millis, level store.Level, urgent bool) moment.Millis {
	if h == nil || h.quiet == nil || at >= moment.Never || h.Stored.Urgent && (urgent || level == store.LevelHigh) {
		return at
	}
	return max(moment.Of(h.quiet.Until(at.Time())), at)
}

// Zoned is a cron schedule in the zone that it has for an agent; zone is the default.
func (h *Profile) Zoned(spec codec.CronSpec, zone string) codec.CronSpec {
	if spec.Zone != model.ZoneOfAgent {
		return spec
	}
	if spec.Zone = zone; h != nil {
		spec.Zone = h.zone
	}
	return spec
}
