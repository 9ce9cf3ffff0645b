package codec

// Profiles and the usage of runs, as they are stored.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/bounding"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// ProfileBounds gives a record the limits, the budgets and the quota of a profile: as JSON, so that the usual reader reads them.
func ProfileBounds(r *record.Profile, p *model.Profile) {
	var limits, budgets []string
	for i := range p.Limits {
		limits = append(limits, bounding.EncodeBound(&p.Limits[i]))
	}
	for i := range p.Budgets {
		budgets = append(budgets, bounding.EncodeBound(&p.Budgets[i]))
	}
	r.Limits, r.Budgets = limits, budgets
	if !p.Quota.IsZero() {
		r.Quota = bounding.EncodeBound(&p.Quota)
	}
}

// UsageRecord is a usage as a record has it.
func UsageRecord(u model.Usage) string {
	if len(u) == 0 {
		return ""
	}
	var b strings.Builder
	for i, one := range u.Amounts() {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%d", one.Unit, one.Amount)
	}
	return b.String()
}

// readUsage reads what UsageRecord writes.
func readUsage(text string) model.Usage {
	var u model.Usage
	for one := range strings.FieldsSeq(text) {
		unit, amount, _ := strings.Cut(one, "=")
		n, err := strconv.ParseInt(amount, 10, 64)
		if err != nil {
			continue
		}
		if u == nil {
			u = model.Usage{}
		}
		u[unit] = float64(n) / float64(bound.AmountOne)
	}
	return u
}

// ProfileRecord is the profile as it is stored.
func ProfileRecord(p *model.Profile) record.Profile {
	r := record.Profile{Zone: p.Zone, Urgent: p.Urgent, Tenant: p.Tenant, Revision: p.Revision}
	for _, h := range p.Quiet {
		r.Quiet = append(r.Quiet, strings.Join([]string{h.From, h.To, strings.ToLower(strings.Join(h.Days, ","))}, "\x00"))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Labels)) {
		r.Labels = append(r.Labels, name+"\x00"+p.Labels[name])
	}
	return r
}
