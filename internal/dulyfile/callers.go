package dulyfile

// Who may call the API of the process, and for what: the tokens and the senders of the file.

import (
	"cmp"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Rights are what a caller may do.
type Rights struct {
	Name   string   // unique in the file
	Scopes []string // of read, trigger, write, work and approve; at least one
	// Agents are whose tasks it is about, and Patterns the beginnings of ids and a star: those of agents and users. Both are nil for all.
	Agents, Patterns []string
	Kinds            []string // that a worker with it may run; nil for all

	at place
}

// Credential is a caller that knows a secret: a token, or the key of its signatures. It is read when the API starts.
type Credential struct {
	Rights

	Envs []string // the variables that contain it; in each several may be separated by commas, so that they can be rotated

	by string // the key that names the variables; env if empty
}

// scopes are what rights may name.
var scopes = []string{"read", "trigger", "write", "work", "approve"}

// Fail is an error about a caller, at its place in the file.
func (r *Rights) Fail(format string, args ...any) error { return r.at.fail(format, args...) }

// Secret is what a variable contains.
type Secret struct{ Env, Value string }

// Secrets are what the variables of a credential contain. The error names the variable, and never what it contains.
func (c *Credential) Secrets() ([]Secret, error) {
	var all []Secret
	for _, env := range c.Envs {
		before := len(all)
		for secret := range strings.SplitSeq(os.Getenv(env), ",") {
			if secret = strings.TrimSpace(secret); secret != "" {
				all = append(all, Secret{env, secret})
			}
		}
		if len(all) == before {
			return nil, c.Fail("the environment variable %s, named by %s, is not set or empty", env, cmp.Or(c.by, "env"))
		}
	}
	return all, nil
}

// readCallers reads the lists of callers and the hooks, whose names differ in all of them together.
func (f *File) readCallers(tokens, senders, inbound place) error {
	names := map[string]bool{}
	for _, list := range []struct {
		at   place
		read func(p place) (Rights, error)
	}{
		{tokens, f.readToken},
		{senders, f.readSender},
	} {
		if list.at.node == nil || list.at.empty() {
			continue
		}
		elements, err := list.at.list()
		if err != nil {
			return err
		}
		for _, e := range elements {
			r, err := list.read(e)
			if err != nil {
				return err
			}
			if names[r.Name] {
				return e.of("name").fail("another caller has the name %q: give each its own", r.Name)
			}
			names[r.Name] = true
		}
	}
	return f.readHooks(inbound, names)
}

// readToken reads a bearer token, and hides its variable from the programs that handlers start.
func (f *File) readToken(p place) (Rights, error) {
	c := Credential{}
	kinds := func(p place) error {
		return each(p, func(_ place, kind string) error {
			c.Kinds = append(c.Kinds, kind)
			return nil
		})
	}
	if err := c.read(p, map[string]reader{"env": variables(&c.Envs), "kinds": kinds}); err != nil {
		return c.Rights, err
	}
	if len(c.Envs) == 0 {
		return c.Rights, p.fail("must name the environment variable that contains the secret, such as env: CI_TOKEN")
	}
	if c.Name == "" {
		c.Name = c.Envs[0]
	}
	f.secrets = append(f.secrets, c.Envs...)
	f.Tokens = append(f.Tokens, c)
	return c.Rights, nil
}

// read reads what all callers have, and what one sort has besides.
func (r *Rights) read(p place, more map[string]reader) error {
	r.at = p
	var names, agents place
	keep := func(into *place) reader { return func(p place) error { *into = p; return nil } }
	maps.Copy(more, map[string]reader{"name": text(&r.Name), "scopes": keep(&names), "agents": keep(&agents)})
	if err := p.read(more); err != nil {
		return err
	}
	if names.node == nil || names.empty() {
		return p.fail("must have scopes: some of %s", strings.Join(scopes, ", "))
	}
	if err := each(names, func(p place, scope string) error {
		if !slices.Contains(scopes, scope) {
			return p.fail("unknown scope %q; expected %s", scope, strings.Join(scopes, ", "))
		}
		r.Scopes = append(r.Scopes, scope)
		return nil
	}); err != nil {
		return err
	}
	if agents.node == nil || agents.empty() {
		return nil
	}
	return r.readAgents(agents)
}

// readAgents reads whose tasks a caller is for. A star alone is everybody, also in calls that are about all agents.
func (r *Rights) readAgents(p place) error {
	all := false
	err := each(p, func(p place, agent string) error {
		switch {
		case agent == "*":
			all = true
		case strings.HasSuffix(agent, "*"):
			r.Patterns = append(r.Patterns, agent)
		default:
			r.Agents = append(r.Agents, agent)
		}
		return checkPattern(p, agent)
	})
	if all {
		r.Agents, r.Patterns = nil, nil
	}
	return err
}

// each reads an array of strings, none of which is empty.
func each(p place, read func(p place, value string) error) error {
	elements, err := p.list()
	if err != nil {
		return err
	}
	if len(elements) == 0 {
		return p.fail("must not be empty")
	}
	for _, e := range elements {
		var value string
		if err := text(&value)(e); err != nil {
			return err
		}
		if value == "" {
			return e.fail("must be a string")
		}
		if err := read(e, value); err != nil {
			return err
		}
	}
	return nil
}

// link reads a URL by which keys can be fetched: others on the way must not be able to exchange them.
func link(into *string) reader {
	return func(p place) error {
		if err := text(into)(p); err != nil || p.empty() {
			return err
		}
		u, err := url.Parse(*into)
		if err != nil || u.Host == "" {
			return p.fail("must be a URL such as https://accounts.example.com")
		}
		here, err := netip.ParseAddr(u.Hostname())
		if u.Scheme != "https" && (u.Scheme != "http" || err != nil || !here.IsLoopback()) {
			return p.fail("must be https, not %s", u.Scheme)
		}
		return nil
	}
}
