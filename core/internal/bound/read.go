package bound

// Limits and budgets as JSON: the one strict reader for HTTP, profiles and the command line.

import (
	"encoding/json"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// ReadLimit reads a limit from JSON, in the form that the file has. A burst of zero is none, and one that is left out the default of
// [core.Scheduler.SetLimits]. Whether it makes sense is checked when it is set. Fails with an *[store.InvalidError].
func ReadLimit(data []byte) (store.Limit, error) {
	var l store.Limit
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
func ReadBudget(data []byte) (store.Budget, error) {
	var b store.Budget
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
		case value == "0" && name != "burst":
			return check.Invalid(name, "must not be 0: leave it out for the default")
		case json.Unmarshal(values[name], fields[at].into) != nil:
			return &store.InvalidError{Field: name, Reason: fields[at].must}
		}
	}
	return nil
}
