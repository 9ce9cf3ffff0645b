package dulyfile

// The agents of the file: their profiles, and what tasks and agents have that the file says once for all.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// Defaults are what counts where nothing else is said. Those that are not empty are put over what the file says.
type Defaults struct {
	Zone  string // of cron expressions and quiet hours that name none
	Agent string // of the tasks of the file that name none
}

// over are these defaults, with others for what is empty.
func (d Defaults) over(o Defaults) Defaults {
	return Defaults{Zone: cmp.Or(d.Zone, o.Zone), Agent: cmp.Or(d.Agent, o.Agent)}
}

// Agent is the profile of an agent.
type Agent struct {
	at      place
	profile core.Profile
}

// readAgents reads the profiles. What is in each is tried on a store that is thrown away, so that a mistake has its line.
func (f *File) readAgents(ctx context.Context, p place) error {
	if p.empty() {
		return nil
	}
	elements, err := p.list()
	if err != nil {
		return err
	}
	trial, err := core.New(memstore.New(memstore.Config{}), core.Config{Zone: f.Defaults.Zone})
	if err != nil {
		return err
	}
	lines := map[string]int{}
	for _, e := range elements {
		a := Agent{at: e}
		if err := a.read(); err != nil {
			return err
		}
		if line, twice := lines[a.profile.Agent]; twice {
			return e.fail("is a duplicate entry for agent %q (first on line %d): merge them", a.profile.Agent, line)
		}
		lines[a.profile.Agent] = e.node.Line
		if _, err := trial.SetProfile(ctx, a.profile); err != nil {
			return a.refused(err)
		}
		f.Agents = append(f.Agents, a)
	}
	return nil
}

// read turns the YAML of a profile into the JSON that is sent elsewhere, and reads that.
func (a *Agent) read() error {
	entries, err := a.at.entries()
	if err != nil {
		return err
	}
	fields := map[string]json.RawMessage{}
	for _, e := range entries {
		name := e.key
		switch name {
		case "agent":
			name = "agent_id"
		case "agent_id", "revision", "quota_used":
			return e.at.fail("unknown key; expected one of agent, budgets, labels, limits, quiet, quota, tenant, urgent, zone")
		}
		if fields[name], err = profileField(name, e.value); err != nil {
			return err
		}
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return a.at.fail("cannot be converted to JSON: %w", err)
	}
	if err := a.profile.Read(data); err != nil {
		return a.refused(err)
	}
	if a.profile.Agent == "" {
		return a.at.fail("agent is required")
	}
	a.profile.Revision = 0 // a file declares: it replaces any revision
	return nil
}

// profileField is the JSON of one field. The agent and the zone are taken literally: an agent may be called 007.
func profileField(name string, p place) ([]byte, error) {
	var v any
	if name == "agent_id" || name == "zone" {
		var given string
		if err := text(&given)(p); err != nil {
			return nil, err
		}
		v = given
	} else if err := p.value().Decode(&v); err != nil {
		return nil, p.fail("cannot be converted to JSON: %w", err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, p.fail("cannot be converted to JSON: %w", err)
	}
	return data, nil
}

// refused puts the place of a field in front of what is wrong with it. Elements of lists are named by their number, from 0.
func (a *Agent) refused(err error) error {
	inv, ok := errors.AsType[*core.InvalidError](err)
	if !ok {
		return a.at.fail("%w", err)
	}
	field := inv.Field
	if field == "agent_id" {
		field = "agent"
	}
	if at := a.at.of(field); at != a.at {
		return at.fail("%s", inv.Reason)
	}
	if at := a.at.of("quota"); at != a.at && strings.HasPrefix(field, "quota.") {
		return at.fail("%s %s", field, inv.Reason)
	}
	for _, list := range []string{"quiet", "limits", "budgets"} {
		if at := a.at.of(list); at != a.at && strings.HasPrefix(field, list+"[") {
			return at.fail("%s %s", field, inv.Reason)
		}
	}
	return a.at.fail("%s %s", field, inv.Reason)
}

// applyAgents sets the profiles of the file. Those that are so already stay unchanged.
func (f *File) applyAgents(ctx context.Context, s *core.Scheduler) error {
	for i := range f.Agents {
		if _, err := s.SetProfile(ctx, f.Agents[i].profile); err != nil {
			return fmt.Errorf("set the profile of agent %q: %w", f.Agents[i].profile.Agent, err)
		}
	}
	return nil
}
