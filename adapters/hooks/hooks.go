// Package hooks turns the webhooks of services into signals and tasks, without code: it finds out who has sent a request by its signature, and
// makes what a configuration says of its headers and the JSON of its body. It decides nothing about tasks, and serves no path: package adapters/http
// does.
package hooks

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/inbound"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
)

// Remembered is how long a message counts once: senders deliver again for up to three days.
const Remembered = 4 * 24 * time.Hour

// Prefix begins the name of a hook as a caller, in heard.by, in events and in the history of tasks: "hook:" and its name.
const Prefix = "hook:"

// Config is a hook: who signs its requests, and what they make. Its texts may be templates, in which {/data/id} is what a JSON pointer finds in the
// body, {/} the whole body, {header:Name} a header, and {{ a brace.
type Config struct {
	Name    string // the last segment of its path: letters, digits, - and _
	Scheme  Scheme
	Plain   Plain    // of the scheme HMAC
	Secrets []string // as the sender shows them; several, so that they can be rotated
	// Only are the messages that count, by what the values of pointers (/type) and headers (header:X-GitHub-Event) may be; nil for all. Any other is
	// answered with 204 and ignored.
	Only map[string][]string
	// Agents are those for which the hook may act: ids, beginnings of ids and a *, or * for all. The agent of the signal or task alone if nil, which
	// must be the same for all messages then.
	Agents []string

	// Exactly one of these is what a message makes.
	Signal *Signal
	Task   *core.NewTask
}

// Signal is the signal that a hook sends. It never counts as an approval.
type Signal struct {
	Agent, Key string // templates
	Payload    []byte // JSON whose strings are templates; the whole body if nil
}

// Hooks are the hooks of a program: Config.Hooks of adapters/http serves them. They are safe for concurrent use.
type Hooks struct{ all map[string]*hook }

var _ inbound.Hooks = (*Hooks)(nil)

// hook is one of them, ready to use.
type hook struct {
	name   string
	scheme Scheme
	plain  Plain
	keys   [][]byte
	named  template // what names a message; nil for the digest of its body
	only   []filter
	rights inbound.Rights
	signal *signal
	task   *task
}

// filter is what a value of a message may be.
type filter struct {
	from source
	may  []string
}

// New makes hooks. The error is a *[core.ConfigError], whose field is one of Config, and which contains no secret.
func New(configs ...Config) (*Hooks, error) {
	hooks := &Hooks{all: map[string]*hook{}}
	for i := range configs {
		h, err := newHook(&configs[i])
		if err == nil && len(h.keys) == 0 {
			err = &core.ConfigError{Field: "Secrets", Reason: "must have a secret at least: anyone could send messages without one"}
		}
		if err != nil {
			return nil, err
		}
		if hooks.all[h.name] != nil {
			return nil, &core.ConfigError{Field: "Name", Value: h.name, Reason: "is that of another hook"}
		}
		hooks.all[h.name] = h
	}
	return hooks, nil
}

// Check refuses a hook that makes no sense, and secrets that can be guessed; it may have none yet. The error is a *[core.ConfigError].
func (c *Config) Check() error {
	_, err := newHook(c)
	return err
}

// newHook reads a configuration.
func newHook(c *Config) (*hook, error) {
	h := &hook{name: c.Name, scheme: c.Scheme, plain: c.Plain}
	if len(c.Name) == 0 || len(c.Name) > 64 || strings.Trim(c.Name, tokenBytes) != "" {
		return nil, &core.ConfigError{Field: "Name", Value: c.Name, Reason: "must be 1 to 64 letters, digits, - and _, as it is part of a path"}
	}
	if h.plain.Header == "" {
		h.plain.Header = "X-Signature"
	}
	if err := h.nameBy(); err != nil {
		return nil, err
	}
	for _, text := range sorted(c.Only) {
		from, err := parseSource(text)
		if err != nil || len(c.Only[text]) == 0 {
			return nil, &core.ConfigError{Field: "Only", Value: text, Reason: "must have pointers or headers, such as /type or header:X-GitHub-Event, and what each may be"}
		}
		h.only = append(h.only, filter{from, c.Only[text]})
	}
	var err error
	if h.keys, err = h.scheme.keys(c.Secrets); err != nil {
		return nil, &core.ConfigError{Field: "Secrets", Reason: err.Error()}
	}
	agent, err := h.make(c)
	if err != nil {
		return nil, err
	}
	return h, h.bound(c.Agents, agent)
}

// make reads what messages make, and returns whose it is.
func (h *hook) make(c *Config) (agent template, err error) {
	switch {
	case (c.Signal == nil) == (c.Task == nil):
		return nil, &core.ConfigError{Field: "Signal", Reason: "or Task must be set, and not both"}
	case c.Signal != nil:
		if h.signal, err = newSignal(c.Signal); err != nil {
			return nil, err
		}
		return h.signal.agent, nil
	default:
		if h.task, err = newTask(c.Task); err != nil {
			return nil, err
		}
		return h.task.agent, nil
	}
}

// bound sets what the hook may do: send signals and submit tasks, for its agents. It may not approve.
func (h *hook) bound(agents []string, agent template) error {
	h.rights = inbound.Rights{Name: Prefix + h.name}
	switch {
	case len(agents) == 0 && agent.fixed():
		h.rights.Agents = []string{agent.example()}
	// guard: hook-agents
	case len(agents) == 0:
		return &core.ConfigError{Field: "Agents", Reason: "must be set, as the agent comes from the message: ids, beginnings of ids and a * such as team-*, or * for all"}
	}
	for _, a := range agents {
		switch i := strings.IndexByte(a, '*'); {
		case a == "*": // nil is for all
			h.rights.Agents, h.rights.Patterns = nil, nil
			return nil
		case i >= 0 && i < len(a)-1:
			return &core.ConfigError{Field: "Agents", Value: a, Reason: "must have ids, or beginnings of ids and a *, such as team-*"}
		case i >= 0:
			h.rights.Patterns = append(h.rights.Patterns, a)
		default:
			h.rights.Agents = append(h.rights.Agents, a)
		}
	}
	if id := agent.example(); len(agents) > 0 && agent.fixed() && !covers(agents, id) {
		return &core.ConfigError{Field: "Agents", Reason: fmt.Sprintf("must cover the agent %q", id)}
	}
	return nil
}

// covers reports whether an agent is one of those of a hook.
func covers(agents []string, id string) bool {
	return slices.ContainsFunc(agents, func(a string) bool {
		beginning, open := strings.CutSuffix(a, "*")
		return a == id || open && strings.HasPrefix(id, beginning)
	})
}

// Shared and never changed.
var (
	errNoHook   = problem.New(problem.CodeNoRoute, "no hook has this name")
	errUnsigned = &problem.Error{
		Type: "about:blank", Title: http.StatusText(http.StatusUnauthorized), Status: http.StatusUnauthorized,
		Detail: "the signature is missing or not valid", Code: problem.CodeUnauthorized, Header: http.Header{"Www-Authenticate": {"Signature"}},
	}
)

// Verify finds out by its signature whether a request to a hook, whose name is the path value "name", was sent by its service. The headers come
// first, as they cost nothing, and nothing of the body is looked at before it is verified. The reason is in the error, and not in its answer.
func (h *Hooks) Verify(r *http.Request, now time.Time, most int64) (*inbound.Rights, error) {
	to := h.all[r.PathValue("name")]
	if to == nil {
		return nil, errNoHook
	}
	claim, err := to.claim(r.Header)
	if err == nil {
		err = claim.CheckAge(now)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsigned, err)
	}
	body, err := bodyOf(r, most)
	if err != nil {
		return nil, err
	}
	// guard: hook-verified
	if err := claim.Check(to.keys, body); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsigned, err)
	}
	return &to.rights, nil
}

// bodyOf reads a body of at most so many bytes, and puts it back.
func bodyOf(r *http.Request, most int64) ([]byte, error) {
	body, err := requestbody.All(http.MaxBytesReader(nil, r.Body, most))
	if err == nil {
		r.Body = requestbody.Again(body)
	}
	return body, err
}

// Read says what a request asks for that Verify has accepted. It calls no store. The error names the field of the configuration, and what it does
// not find in the message.
func (h *Hooks) Read(r *http.Request, now time.Time) (inbound.Delivery, error) {
	to := h.all[r.PathValue("name")]
	body, err := requestbody.All(r.Body)
	if err != nil {
		return inbound.Delivery{}, err
	}
	m := &message{header: r.Header, body: body}
	if to.scheme == CloudEvents {
		if err := asEvent(m); err != nil {
			return inbound.Delivery{}, err
		}
	}
	if !to.wants(m) {
		return inbound.Delivery{}, nil
	}
	id, err := to.id(m)
	if err != nil {
		return inbound.Delivery{}, err
	}
	d := inbound.Delivery{ID: id, Until: now.Add(Remembered)}
	if to.signal != nil {
		err = to.signal.deliver(m, &d)
	} else {
		err = to.task.deliver(m, to.name, &d)
	}
	return d, err
}

// wants reports whether a message is one of those that count.
func (h *hook) wants(m *message) bool {
	for i := range h.only {
		// What has no such value is not one of them: a sender has messages of many forms.
		if text, err := h.only[i].from.string(m); err != nil || !slices.Contains(h.only[i].may, text) {
			return false
		}
	}
	return true
}
