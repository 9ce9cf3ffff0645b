// Package bounding checks and completes limits and budgets, and reads them from JSON and from profiles.
package bounding

// Limits: their checks, and those of a profile.

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// Bounded returns the limits and budgets in a record of a profile, as stores need them, without those that cannot be read, as of a later version.
func Bounded(agent string, r *record.Profile, now time.Time) (limits []bound.Limit, budgets []bound.Budget) {
	if r.Deleted {
		return nil, nil
	}
	for _, l := range LimitsIn(r) {
		l.About.Agent = agent
		limits = append(limits, l)
	}
	for _, text := range r.Budgets {
		if b, err := ReadBudget([]byte(text)); err == nil {
			b.About.Agent = agent
			if b, err = WholeBudget(b, r.Zone, now); err == nil {
				budgets = append(budgets, b)
			}
		}
	}
	return limits, budgets
}

// QuotaIn is the quota in a record; nil for none. One that cannot be read, as of a later version, bounds as far as it can be read.
func QuotaIn(r *record.Profile) *store.Quota {
	var q store.Quota
	if r.Deleted || r.Quota == "" || json.Unmarshal([]byte(r.Quota), &q) != nil || q.IsZero() {
		return nil
	}
	return &q
}

// LimitsIn are the limits in a record.
func LimitsIn(r *record.Profile) (out []bound.Limit) {
	for _, text := range r.Limits {
		l, err := ReadLimit([]byte(text))
		if err == nil {
			l, err = Whole(l)
		}
		if err == nil {
			out = append(out, l)
		}
	}
	return out
}

// EncodeBound is a limit or a budget of a profile as it is stored.
func EncodeBound(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "" // neither type can fail
	}
	return string(data)
}

// mostRuns is the most runs at once, and starts within a time, that a limit can allow.
const mostRuns = 1_000_000

// burstTime is how long a rate saves up starts if its Burst is zero: claims do not come at the exact moment of each.
const burstTime = 100 * time.Millisecond

// Whole checks a limit, and fills in what is left out.
func Whole(l bound.Limit) (bound.Limit, error) {
	if err := CheckLimitTarget(l.About); err != nil {
		return l, err
	}
	switch {
	case l.Adaptive && (l.Rate != 0 || l.Per != 0 || l.Burst != 0):
		return l, check.Invalid("rate", "is what an adaptive limit finds out by itself: leave it out, or adaptive")
	case l.Concurrency == 0 && l.Rate == 0 && !l.Adaptive:
		return l, check.Invalid("concurrency", "or rate is required, or adaptive: a limit of neither bounds nothing; to lift one, lift it")
	case l.Concurrency < 0 || l.Concurrency > mostRuns:
		return l, check.Invalid("concurrency", "must be between 1 and %d, not %d", mostRuns, l.Concurrency)
	case l.Rate < 0 || l.Rate > mostRuns:
		return l, check.Invalid("rate", "must be between 1 and %d, not %d", mostRuns, l.Rate)
	case l.Rate == 0 && l.Per != 0:
		return l, check.Invalid("rate", "is required with per")
	case l.Rate == 0 && l.Burst != 0:
		return l, check.Invalid("rate", "is required with burst")
	case l.Rate > 0 && (l.Per < time.Millisecond || l.Per > longestPer || l.Per%time.Millisecond != 0):
		return l, check.Invalid("per", "must be whole milliseconds between 1ms and %s, not %s", longestPer, l.Per)
	case l.Burst > mostRuns:
		return l, check.Invalid("burst", "must be at most %d, not %d", mostRuns, l.Burst)
	case l.Burst < 0:
		l.Burst = 0
	case l.Rate > 0 && l.Burst == 0:
		l.Burst = max(1, int(int64(l.Rate)*int64(burstTime)/int64(l.Per)))
	}
	return l, nil
}

// OfNoAgent refuses a target that belongs in the profile of one agent.
func OfNoAgent(t bound.LimitTarget) error {
	if t.Agent != "" {
		return check.Invalid("agent_id", "is that of a profile: what bounds one agent alone is set with its profile")
	}
	return nil
}

// CheckLimitTarget refuses an invalid target of a limit.
func CheckLimitTarget(t bound.LimitTarget) error {
	if t.Kind != "" {
		if err := check.ValidKind("kind", t.Kind); err != nil {
			return err
		}
	}
	if err := check.ValidText("limit_key", t.Key, check.MaxKeyLen); err != nil {
		return err
	}
	switch {
	case strings.Contains(strings.TrimSuffix(t.Key, "*"), "*"):
		return check.Invalid("limit_key", "may have a * at its end only, for any key that begins so, not %q", t.Key)
	case !store.Among(t.Each, []bound.Each{"", bound.EachAgent, bound.EachKey}):
		return check.Invalid("each", "must be agent or key, not %q", t.Each)
	case t.Each == bound.EachKey && t.Key == "":
		return check.Invalid("limit_key", "is required with each: key; * is any")
	}
	return nil
}

// ValidLimits refuses limits of the configuration that are invalid, alone or together.
func ValidLimits(limits []bound.Limit) error {
	if n := len(limits); n > bound.MostLimits {
		return check.Misconfigured("Limits", n, "must be at most %d, not %d", bound.MostLimits, n)
	}
	for i, l := range limits {
		if _, err := Whole(l); err != nil {
			invalid, _ := errors.AsType[*store.InvalidError](err)
			return &store.ConfigError{Field: fmt.Sprintf("Limits[%d].%s", i, invalid.Field), Value: l, Reason: invalid.Reason}
		}
		// The later one would count, and a reader of the earlier one would not know.
		if slices.ContainsFunc(limits[:i], func(other bound.Limit) bool { return other.About == l.About }) {
			return check.Misconfigured(fmt.Sprintf("Limits[%d]", i), l, "is about %s, which another limit above is about too: join them into one", l.About)
		}
	}
	return nil
}
