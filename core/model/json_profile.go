package model

// Profiles as JSON: the one strict reader for HTTP, files and the command line.

import (
	"encoding/json"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/internal/bounding"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// profileJSON is a profile with the fields that it has.
type profileJSON struct {
	Agent    string            `json:"agent_id,omitempty"`
	Zone     string            `json:"zone,omitempty"`
	Quiet    []QuietHours      `json:"quiet,omitempty"`
	Urgent   bool              `json:"urgent,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Limits   []bound.Limit     `json:"limits,omitempty"`
	Budgets  []bound.Budget    `json:"budgets,omitempty"`
	Quota    store.Quota       `json:"quota,omitzero"`
	Tenant   string            `json:"tenant,omitempty"`
	Used     *store.QuotaUse   `json:"quota_used,omitempty"`
	Revision int64             `json:"revision,omitempty"`
}

// MarshalJSON writes a profile.
func (p Profile) MarshalJSON() ([]byte, error) { return json.Marshal(profileJSON(p)) }

// UnmarshalJSON reads what MarshalJSON writes, in this version or another: it ignores unknown fields.
func (p *Profile) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, (*profileJSON)(p)) }

// Read reads a profile from input strictly, as that of a task does; a member that is null counts as left out. Values are checked when it is set.
func (p *Profile) Read(data []byte) error {
	names, values, err := check.JSONObject("profile", data)
	if err != nil {
		return err
	}
	read := Profile{}
	fields := read.fields()
	for _, name := range names {
		field, known := fields[name]
		if !known {
			return check.Invalid(check.Clip(name), "is not a field of a profile: expected agent_id, zone, quiet, urgent, labels, limits, budgets, quota, tenant or revision")
		}
		if string(values[name]) == "null" {
			continue
		}
		err := field(values[name])
		if wrong, ok := err.(*store.InvalidError); ok { //nolint:errorlint // it is returned unwrapped
			return wrong
		}
		if err != nil {
			return &store.InvalidError{Field: name, Reason: err.Error()}
		}
	}
	*p = read
	return nil
}

// fields read the fields of a profile, by name.
func (p *Profile) fields() map[string]func(value []byte) error {
	return map[string]func(value []byte) error{
		"agent_id": func(value []byte) error { return check.MustBe(value, &p.Agent, "a string") },
		"zone":     func(value []byte) error { return check.MustBe(value, &p.Zone, "a string") },
		"urgent":   func(value []byte) error { return check.MustBe(value, &p.Urgent, "true or false") },
		"labels":   func(value []byte) error { return check.MustBe(value, &p.Labels, "an object of strings") },
		"tenant":   func(value []byte) error { return check.MustBe(value, &p.Tenant, "a string") },
		"revision": func(value []byte) error { return check.MustBe(value, &p.Revision, "a whole number") },
		"limits": func(value []byte) error {
			return eachOf("limits", value, func(one []byte) error {
				l, err := bounding.ReadLimit(one)
				p.Limits = append(p.Limits, l)
				return err
			})
		},
		"budgets": func(value []byte) error {
			return eachOf("budgets", value, func(one []byte) error {
				b, err := bounding.ReadBudget(one)
				p.Budgets = append(p.Budgets, b)
				return err
			})
		},
		"quota_used": func([]byte) error { return nil }, // so that a profile can be sent as it was read
		"quota": func(value []byte) (err error) {
			if p.Quota, err = bounding.ReadQuota(value); err != nil {
				return check.Within("quota", err)
			}
			return nil
		},
		"quiet": func(value []byte) (err error) {
			p.Quiet, err = readQuiet(value)
			return err
		},
	}
}

// eachOf reads the elements of an array.
func eachOf(field string, data []byte, read func([]byte) error) error {
	var all []json.RawMessage
	if err := check.MustBe(data, &all, "an array of objects"); err != nil {
		return err
	}
	for i := range all {
		if err := read(all[i]); err != nil {
			return check.Within(fmt.Sprintf("%s[%d]", field, i), err)
		}
	}
	return nil
}

// readQuiet reads the quiet hours of a profile.
func readQuiet(data []byte) ([]QuietHours, error) {
	var all []json.RawMessage
	if err := check.MustBe(data, &all, `an array of objects such as {"from": "22:00", "to": "07:00"}`); err != nil {
		return nil, err
	}
	out := make([]QuietHours, len(all))
	for i := range all {
		field := fmt.Sprintf("quiet[%d]", i)
		names, values, err := check.JSONObject(field, all[i])
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			var err error
			switch name {
			case "from":
				err = check.MustBe(values[name], &out[i].From, "a string")
			case "to":
				err = check.MustBe(values[name], &out[i].To, "a string")
			case "days":
				err = check.MustBe(values[name], &out[i].Days, "an array of strings")
			default:
				return nil, check.Invalid(field+"."+check.Clip(name), "is not a field of quiet hours: expected from, to or days")
			}
			if err != nil {
				return nil, &store.InvalidError{Field: field + "." + name, Reason: err.Error()}
			}
		}
	}
	return out, nil
}
