package dulyfile

// Hooks: webhooks of services, and the signals and tasks that they make.

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/hooks"
	"github.com/seed-6f6f2c11/duly/core"
)

// Hook is a webhook that the process receives.
type Hook struct {
	credential Credential
	config     hooks.Config // but for its secrets
	submit     Task         // empty if it sends a signal
}

// readHooks reads the key hooks. The kinds of their tasks need handlers, as those of tasks do. names are those of all other callers.
func (f *File) readHooks(p place, names map[string]bool) error {
	if p.node == nil {
		return nil
	}
	entries, err := p.entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if names[hooks.Prefix+e.key] {
			return e.at.fail("another caller has the name %q: give each its own", hooks.Prefix+e.key)
		}
		h := Hook{config: hooks.Config{Name: e.key}}
		h.credential.at, h.credential.by = e.value, "secret_env"
		if err := h.read(e.value); err != nil {
			return err
		}
		if err := h.complete(f, e.value); err != nil {
			return err
		}
		if err := h.config.Check(); err != nil {
			return refusedHook(e, err)
		}
		f.secrets = append(f.secrets, h.credential.Envs...)
		f.Hooks = append(f.Hooks, h)
	}
	return nil
}

// read reads the keys of a hook.
func (h *Hook) read(p place) error {
	var schemes, makes []string
	scheme := func(s hooks.Scheme) reader {
		return func(p place) error {
			schemes, h.config.Scheme = append(schemes, string(s)), s
			return h.readScheme(p)
		}
	}
	if err := p.read(map[string]reader{
		"standard_webhooks": scheme(hooks.StandardWebhooks), "github": scheme(hooks.GitHub), "stripe": scheme(hooks.Stripe), "cloudevents": scheme(hooks.CloudEvents), "hmac": scheme(hooks.HMAC),
		"only": claims(&h.config.Only),
		"agents": func(p place) error {
			return each(p, func(p place, agent string) error {
				h.config.Agents = append(h.config.Agents, agent)
				return checkPattern(p, agent)
			})
		},
		"signal": func(p place) error { makes = append(makes, "signal"); return h.readSignal(p) },
		"submit": func(p place) error { makes = append(makes, "submit"); return h.readSubmit(p) },
	}); err != nil {
		return err
	}
	switch {
	case len(schemes) != 1:
		return p.fail("must have exactly one of standard_webhooks, github, stripe, cloudevents and hmac, not %d", len(schemes))
	case len(h.credential.Envs) == 0:
		return p.of(schemes[0]).fail("must have secret_env, the environment variable that contains the secret, such as secret_env: HOOK_SECRET")
	case len(makes) != 1:
		return p.fail("must have exactly one of signal and submit, not %d", len(makes))
	default:
		return nil
	}
}

// readScheme reads how requests are signed.
func (h *Hook) readScheme(p place) error {
	readers := map[string]reader{"secret_env": variables(&h.credential.Envs)}
	if h.config.Scheme == hooks.HMAC {
		plain := &h.config.Plain
		maps.Copy(readers, map[string]reader{
			"header": text(&plain.Header), "prefix": text(&plain.Prefix), "id": text(&plain.ID),
			"encoding": func(p place) error {
				var encoding string
				err := text(&encoding)(p)
				if plain.Base64 = encoding == "base64"; err == nil && !p.empty() && !plain.Base64 && encoding != "hex" {
					err = p.fail("must be hex or base64, not %q", encoding)
				}
				return err
			},
		})
	}
	return p.read(readers)
}

// readSignal reads the signal that messages send.
func (h *Hook) readSignal(p place) error {
	h.config.Signal = &hooks.Signal{}
	return p.read(map[string]reader{
		"agent": text(&h.config.Signal.Agent), "key": text(&h.config.Signal.Key),
		"payload": func(p place) (err error) {
			if h.config.Signal.Payload, err = taskField("payload", p); err != nil {
				return p.fail("cannot be converted to JSON: %w", err)
			}
			return nil
		},
	})
}

// readSubmit reads the task that messages submit.
func (h *Hook) readSubmit(p place) error {
	h.submit.at = p
	if p.empty() {
		return p.fail("must be an object (key: value)")
	}
	return h.submit.read()
}

// complete fills in the agent of the file, and refuses a task that nothing would run.
func (h *Hook) complete(f *File, p place) error {
	if h.config.Signal != nil {
		if h.config.Signal.Agent == "" {
			h.config.Signal.Agent = f.Defaults.Agent
		}
		return nil
	}
	t := &h.submit.task
	if t.Agent == "" {
		t.Agent = f.Defaults.Agent
	}
	h.config.Task = t
	p = p.of("submit")
	switch {
	case t.Preset == "" && t.Kind == "":
		return p.fail("kind is required, or a preset")
	case t.Preset == "" && !f.Handles(t.Kind):
		return p.of("kind").fail("kind %q has no handler in this file; handlers: %s", t.Kind, f.KindNames())
	default:
		return nil
	}
}

// refusedHook is an error about a hook at the key that is wrong.
func refusedHook(e entry, err error) error {
	wrong, ok := errors.AsType[*core.ConfigError](err)
	if !ok {
		return e.value.fail("%w", err)
	}
	if wrong.Field == "Name" {
		return e.at.fail("%s", wrong.Reason)
	}
	at := e.value
	path := strings.NewReplacer("Plain.ID", "hmac.id", "Task.", "submit.", "Signal.", "signal.", "Agents", "agents", "Only", "only", "Agent", "agent", "Key", "key", "Payload", "payload").Replace(wrong.Field)
	for path != "" {
		key, rest, _ := strings.Cut(path, ".")
		next := at.of(key)
		if next == at {
			return at.fail("%s %s", path, wrong.Reason)
		}
		at, path = next, rest
	}
	return at.fail("%s", wrong.Reason)
}

// tryHooks submits a task such as each hook makes to a store that is thrown away, as the tasks of the file are: an invalid field is found before a
// message comes.
func tryHooks(ctx context.Context, f *File) error {
	for i := range f.Hooks {
		task, submits := f.Hooks[i].config.Example()
		if !submits {
			continue
		}
		trial, err := f.trial()
		if err != nil {
			return err
		}
		t := Task{at: f.Hooks[i].submit.at, task: task}
		if _, err := trial.Submit(ctx, task); err != nil {
			return t.refused(err)
		}
	}
	return nil
}

// OpenHooks makes the hooks of the file, with the secrets of the environment; nil if it has none. seen are the variables of the secrets that other
// callers have: whose a request is would be a guess. The error names a variable that is missing.
func (f *File) OpenHooks(seen map[string]string) (*hooks.Hooks, error) {
	if len(f.Hooks) == 0 {
		return nil, nil //nolint:nilnil // nothing is received
	}
	if seen == nil {
		seen = map[string]string{}
	}
	all := make([]hooks.Config, 0, len(f.Hooks))
	for i := range f.Hooks {
		h := &f.Hooks[i]
		secrets, err := h.credential.Secrets()
		if err != nil {
			return nil, err
		}
		config := h.config
		for _, s := range secrets {
			if other := seen[s.Value]; other != "" {
				return nil, h.credential.Fail("the environment variable %s contains the same secret as %s: give each its own", s.Env, other)
			}
			config.Secrets = []string{s.Value}
			if wrong, bad := errors.AsType[*core.ConfigError](config.Check()); bad {
				return nil, h.credential.Fail("the environment variable %s, named by secret_env, %s", s.Env, wrong.Reason)
			}
			seen[s.Value] = s.Env
		}
		config.Secrets = nil
		for _, s := range secrets {
			config.Secrets = append(config.Secrets, s.Value)
		}
		all = append(all, config)
	}
	return hooks.New(all...)
}
