package bounding

// Limits, budgets and quotas as JSON: the one strict reader for HTTP, profiles and the command line.

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// ReadLimit reads a limit from JSON, in the form that the file has. A burst of zero is none, and one that is left out the default of
// [core.Scheduler.SetLimits]. Whether it makes sense is checked when it is set. Fails with an *[store.InvalidError].
func ReadLimit(data []byte) (bound.Limit, error) {
	var l bound.Limit
	var text string
	var burst *int
	err := readBound("a limit", data, []boundField{
		{"kind", &l.About.Kind, mustBeString},
		{"limit_key", &l.About.Key, mustBeString},
		{"each", &l.About.Each, `must be "agent" or "key"`},
		{"concurrency", &l.Concurrency, mustBeWhole},
		{"rate", &text, `must be a string such as "60/1m"`},
		{"adaptive", &l.Adaptive, "must be true or false"},
		{"burst", &burst, mustBeWhole},
	})
	if err == nil && text != "" {
		l.Rate, l.Per, err = ParseRate(text)
	}
	switch {
	case err != nil || burst == nil:
	case *burst < 0:
		err = check.Invalid("burst", "must not be negative, not %d: send 0 for none", *burst)
	case *burst == 0:
		l.Burst = -1
	default:
		l.Burst = *burst
	}
	return l, err
}

// ReadBudget reads a budget from JSON, in the form that the file has. Fails with an *[store.InvalidError].
func ReadBudget(data []byte) (bound.Budget, error) {
	var b bound.Budget
	var amount float64
	err := readBound("a budget", data, []boundField{
		{"kind", &b.About.Kind, mustBeString},
		{"limit_key", &b.About.Key, mustBeString},
		{"each", &b.About.Each, `must be "agent", "key" or "task"`},
		{"unit", &b.About.Unit, mustBeString},
		{"per", &b.About.Per, `must be "hour", "day" or "month"`},
		{"amount", &amount, "must be a number"},
		{"zone", &b.Zone, mustBeString},
		{"then", &b.Then, `must be "hold", "pause" or "notify"`},
	})
	if err == nil {
		b.Amount, err = ParseAmount(amount)
	}
	return b, err
}

const (
	mustBeString = "must be a string"
	mustBeWhole  = "must be a whole number"
)

// boundField is a field of a limit or a budget, what it is read into, and what to say if that fails.
type boundField struct {
	name string
	into any
	must string
}

// readBound reads the fields of an object; null counts as left out. An empty string and a zero are refused: a sender means something by them, but
// they would count as left out.
func readBound(what string, data []byte, fields []boundField) error {
	names, values, err := check.JSONObject("body", data)
	if err != nil {
		return err
	}
	for _, name := range names {
		at := len(fields) - 1
		for at >= 0 && fields[at].name != name {
			at--
		}
		value := string(values[name])
		switch {
		case at < 0:
			return check.Invalid(check.Clip(name), "is not a field of %s", what)
		case value == "null":
		case value == `""`:
			return check.Invalid(name, "must not be empty: leave it out if it has no value")
		case value == "0" && name == "amount": // it has no default
			return check.Invalid(name, "must not be 0: give a larger one")
		case value == "0" && name != "burst":
			return check.Invalid(name, "must not be 0: leave it out for the default")
		case json.Unmarshal(values[name], fields[at].into) != nil:
			return &store.InvalidError{Field: name, Reason: fields[at].must}
		}
	}
	return nil
}

// ReadQuota reads a quota from JSON, in the form that the file has. Whether it makes sense is checked when it is set. Fails with an
// *[store.InvalidError].
func ReadQuota(data []byte) (store.Quota, error) {
	var q store.Quota
	var interval, horizon string
	err := readBound("a quota", data, []boundField{
		{"live", &q.Live, mustBeWhole},
		{"recurring", &q.Recurring, mustBeWhole},
		{"bytes", &q.Bytes, mustBeWhole},
		{"submits", &q.Submits, mustBeWhole},
		{"interval", &interval, `must be a string such as "5m"`},
		{"horizon", &horizon, `must be a string such as "720h"`},
		{"kinds", &q.Kinds, "must be an array of strings"},
		{"depth", &q.Depth, mustBeWhole},
		{"spawned", &q.Spawned, mustBeWhole},
	})
	for _, d := range []struct {
		field, text string
		into        *time.Duration
	}{{"interval", interval, &q.Interval}, {"horizon", horizon, &q.Horizon}} {
		if err == nil && d.text != "" {
			var wrong error
			if *d.into, wrong = schedule.ParseDuration(d.text); wrong != nil || *d.into <= 0 {
				err = check.Invalid(d.field, "must be a duration such as 5m or 30d, not %q", cut(d.text))
			}
		}
	}
	return q, err
}

// Bounds of a quota.
const (
	mostQuota      = 1_000_000_000
	mostQuotaBytes = 1 << 40
	mostQuotaKinds = 100
)

// CheckQuota refuses a quota that makes no sense.
func CheckQuota(q *store.Quota) error {
	for _, n := range []struct {
		field string
		value int64
		most  int64
	}{
		{"live", int64(q.Live), mostQuota},
		{"recurring", int64(q.Recurring), mostQuota},
		{"bytes", q.Bytes, mostQuotaBytes},
		{"submits", int64(q.Submits), mostQuota},
		{"depth", int64(q.Depth), check.MostDepth},
		{"spawned", int64(q.Spawned), check.MostSpawned},
	} {
		if n.value < 0 || n.value > n.most {
			return check.Invalid(n.field, "must be between 1 and %d, or left out for no bound, not %d", n.most, n.value)
		}
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"interval", q.Interval}, {"horizon", q.Horizon}} {
		if d.value < 0 || d.value > check.MaxDelay || d.value%time.Millisecond != 0 {
			return check.Invalid(d.field, "must be whole milliseconds up to %s, or left out for no bound, not %s", moment.ShortDuration(check.MaxDelay), d.value)
		}
	}
	if q.Interval > 0 && q.Horizon > 0 && q.Interval > q.Horizon {
		return check.Invalid("horizon", "must be at least the interval (%s), not %s: no task could recur", q.Interval, q.Horizon)
	}
	return checkKinds(q.Kinds)
}

// checkKinds refuses kinds of a quota, or beginnings of them, that make no sense.
func checkKinds(kinds []string) error {
	if len(kinds) > mostQuotaKinds {
		return check.Invalid("kinds", "must be at most %d, not %d", mostQuotaKinds, len(kinds))
	}
	for i, kind := range kinds {
		field := fmt.Sprintf("kinds[%d]", i)
		begin, open := strings.CutSuffix(kind, "*")
		if open && begin == "" || strings.Contains(begin, "*") {
			return check.Invalid(field, "must be a kind, or the beginning of one and a *, not %q", check.Clip(kind))
		}
		if err := check.ValidKind(field, begin); err != nil {
			return err
		}
	}
	return nil
}
