package cli

// Limits and budgets of one agent, as flags of duly agent set, and as lines of duly agent show.

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// bounded gives a profile the limits and budgets of its flags.
func bounded(p *core.Profile, limits, budgets []string) error {
	for _, text := range limits {
		l, err := boundOf(text, "--limit", core.ReadLimit)
		if err != nil {
			return err
		}
		p.Limits = append(p.Limits, l)
	}
	for _, text := range budgets {
		b, err := boundOf(text, "--budget", core.ReadBudget)
		if err != nil {
			return err
		}
		p.Budgets = append(p.Budgets, b)
	}
	return nil
}

// boundOf reads a flag such as "kind=digest,concurrency=2", whose names are the fields of the API.
func boundOf[V any](text, flag string, read func([]byte) (V, error)) (V, error) {
	fields := map[string]any{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if _, twice := fields[name]; twice {
			var none V
			return none, usage("give it once", "%s %q has %s twice", flag, text, name)
		}
		fields[name] = value
		if name == "concurrency" || name == "burst" || name == "amount" {
			fields[name] = json.RawMessage(value)
		}
		if name == "adaptive" {
			fields[name] = value == "" || value == "true"
		}
	}
	data, err := json.Marshal(fields)
	if err != nil { // a number that is none
		var none V
		return none, usage("concurrency, burst and amount are numbers", "%s %q cannot be read", flag, text)
	}
	v, err := read(data)
	if err != nil {
		err = usage(`use one such as --limit "kind=digest,concurrency=2", --limit rate=60/1m or --budget "unit=tokens,amount=100000,per=day"`, "%s %q: %v", flag, text, err)
	}
	return v, err
}

// boundLines are the limits and budgets of a profile, for people.
func boundLines(p *core.Profile) (lines [][2]string) {
	for i := range p.Limits {
		l := store.LimitUse{Limit: p.Limits[i]}
		l.About.Agent = p.Agent
		lines = append(lines, [2]string{"limit", fmt.Sprintf("%s: %s", l.About, allows(&l))})
	}
	for i := range p.Budgets {
		b := p.Budgets[i]
		b.About.Agent = p.Agent
		lines = append(lines, [2]string{"budget", fmt.Sprintf("%s %s, then %s (%s)", b.Amount, b.About, b.Then, b.Zone)})
	}
	return lines
}
