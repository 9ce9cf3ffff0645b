package dulyfile

// The bindings of the file: values that runs get by their kind and agent.

import (
	"context"
	"maps"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-6f6f2c11/duly/core"
)

// binding gives runs of a kind, an agent, both or all the same values.
type binding struct {
	kind   string
	agents string // an id, or a pattern; empty for all
	values core.Values
}

// readBindings reads the bindings. Later ones win over earlier ones, so that exceptions follow the rule.
func (f *File) readBindings(p place) error {
	if p.empty() {
		return nil
	}
	elements, err := p.list()
	if err != nil {
		return err
	}
	for _, e := range elements {
		b := binding{}
		var values place
		if err := e.read(map[string]reader{
			"kind": text(&b.kind), "agent": pattern(&b.agents), "values": func(p place) error { values = p; return nil },
		}); err != nil {
			return err
		}
		if values.node == nil || values.empty() {
			return e.fail("must have values, such as values: { TENANT: acme }")
		}
		if b.kind != "" && !f.Handles(b.kind) {
			return e.of("kind").fail("kind %q has no handler in this file; handlers: %s", b.kind, f.KindNames())
		}
		if b.values, err = f.readValues(values); err != nil {
			return err
		}
		f.bindings = append(f.bindings, b)
	}
	return nil
}

// readValues reads values by name. Those that are secret name the variable that contains them.
func (f *File) readValues(p place) (core.Values, error) {
	entries, err := p.entries()
	if err != nil {
		return nil, err
	}
	values := core.Values{}
	for _, e := range entries {
		if err := core.CheckValueName(e.key); err != nil {
			return nil, e.at.fail("%w", err)
		}
		value, err := f.readValue(e.value)
		if err != nil {
			return nil, err
		}
		if err := (core.Values{e.key: value}).Check(); err != nil {
			return nil, e.at.fail("%w", err)
		}
		values[e.key] = value
	}
	if err := values.Check(); err != nil { // all of them together
		return nil, p.fail("%w", err)
	}
	return values, nil
}

// readValue reads one value: a string, or the variable that contains it.
func (f *File) readValue(p place) (string, error) {
	switch p.value().Kind {
	case yaml.ScalarNode:
		if p.empty() {
			return "", p.fail("must be a string, or an object such as { env: NAME }")
		}
		return p.value().Value, nil
	case yaml.MappingNode:
		var name string
		if err := p.read(map[string]reader{"env": text(&name)}); err != nil {
			return "", err
		}
		return f.secretOf(p, name)
	default:
		return "", p.fail("must be a string, or an object such as { env: NAME }")
	}
}

// secretOf is what a variable contains that the file names as secret: no program that a handler starts gets it by that name. The
// error names the variable, and never what it contains.
func (f *File) secretOf(p place, name string) (string, error) {
	if name == "" {
		return "", p.fail("must name an environment variable, such as env: NAME")
	}
	value := strings.TrimSpace(os.Getenv(name))
	if value == "" {
		return "", p.fail("the environment variable %s, named by env, is not set", name)
	}
	f.secrets = append(f.secrets, name)
	return value, nil
}

// bind is what a scheduler asks for the values of a run; nil if the file has none.
func (f *File) bind() []core.Binding {
	if len(f.bindings) == 0 {
		return nil
	}
	return []core.Binding{func(_ context.Context, t *core.RunInfo) (core.Values, error) {
		values := core.Values{}
		for _, b := range f.bindings {
			if (b.kind == "" || b.kind == t.Kind) && (b.agents == "" || covers(b.agents, t.Agent)) {
				maps.Copy(values, b.values)
			}
		}
		return values, nil
	}}
}
