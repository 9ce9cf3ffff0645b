package dulyfile

// Webhooks of the file: of a handler, and of a gate.

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// hook is a webhook with the variables that its secrets are from.
type hook struct {
	config webhook.Config
	env    []string // variables that contain secrets, which no program gets
	first  string   // the first key that only webhooks have, but for those of booleans

	secret, headers, secrets, bearer, identity place
}

// readers adds the keys of a webhook, beside its URL, to those of a handler or a gate.
func (h *hook) readers(others map[string]reader) map[string]reader {
	only := func(key string, into *place) reader {
		return func(p place) error {
			if h.first == "" && !p.empty() {
				h.first = key
			}
			*into = p
			return nil
		}
	}
	maps.Copy(others, map[string]reader{
		"secret_env": only("secret_env", &h.secret), "headers": only("headers", &h.headers), "headers_env": only("headers_env", &h.secrets),
		"bearer_env": only("bearer_env", &h.bearer), "identity": only("identity", &h.identity),
		"insecure": boolean(&h.config.Insecure), "allow_private": boolean(&h.config.AllowPrivate),
	})
	return others
}

// refuse is an error if something else has keys of a webhook.
func (h *hook) refuse(p place) error {
	switch {
	case h.first == "" && h.config.Insecure:
		h.first = "insecure"
	case h.first == "" && h.config.AllowPrivate:
		h.first = "allow_private"
	case h.first == "":
		return nil
	}
	return p.fail("has %s, which is for webhooks only", h.first)
}

// read reads the URL, and all that a server knows by who calls. Errors name variables, and never show what they contain.
func (h *hook) read(p place) error {
	if err := text(&h.config.URL)(p); err != nil {
		return err
	}
	// The author of the file is also the user of the machine, and may name localhost.
	h.config.AllowLoopback = true
	h.config.Headers = map[string]string{}
	for _, read := range []func() error{
		func() (err error) { h.config.Secret, err = h.variable(h.secret, "secret_env"); return err },
		func() error { return h.readHeaders(h.headers, h.literal) },
		func() error { return h.readHeaders(h.secrets, h.fromHeaderEnv) },
		func() (err error) { h.config.Bearer, err = h.variable(h.bearer, "bearer_env"); return err },
		h.readIdentity,
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// variable is what the variable contains that a key names; nothing if the key is missing.
func (h *hook) variable(p place, key string) (string, error) {
	if p.node == nil || p.empty() {
		return "", nil
	}
	var name string
	if err := text(&name)(p); err != nil {
		return "", err
	}
	value := strings.TrimSpace(os.Getenv(name))
	if value == "" {
		return "", p.fail("the environment variable %s, named by %s, is not set", name, key)
	}
	h.env = append(h.env, name)
	return value, nil
}

// literal is the value of a header that the file contains.
func (*hook) literal(p place) (value string, err error) {
	if p.empty() {
		return "", p.fail("must be a string; headers_env takes values from the environment")
	}
	return value, text(&value)(p)
}

// fromHeaderEnv is the value of a header that a variable contains.
func (h *hook) fromHeaderEnv(p place) (string, error) {
	if p.empty() {
		return "", p.fail("must name an environment variable")
	}
	return h.variable(p, "headers_env")
}

// readHeaders reads names of headers, each with its value as value says.
func (h *hook) readHeaders(p place, value func(p place) (string, error)) error {
	if p.node == nil || p.empty() {
		return nil
	}
	entries, err := p.entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		is, err := value(e.value)
		if err == nil {
			err = e.at.wrap(webhook.CheckHeader(e.key, is))
		}
		if err != nil {
			return err
		}
		for name := range h.config.Headers {
			if strings.EqualFold(name, e.key) {
				return e.at.fail("is given twice: case does not matter in names of headers")
			}
		}
		h.config.Headers[e.key] = is
	}
	return nil
}

// wrap is an error at its place; nil for none.
func (p place) wrap(err error) error {
	if err == nil {
		return nil
	}
	return p.fail("%w", err)
}

// readIdentity reads what proves the host. Who knows neither the audience nor the region takes it from the URL.
func (h *hook) readIdentity() error {
	p := h.identity
	if p.node == nil || p.empty() {
		return nil
	}
	if p.value().Kind != yaml.MappingNode {
		return p.fail("must be an object, such as { google: {} } or { aws: {} }")
	}
	var of webhook.Identity
	found := 0
	one := func(read func(p place) (webhook.Identity, error)) reader {
		return func(p place) (err error) { found++; of, err = read(p); return err }
	}
	if err := p.read(map[string]reader{"google": one(h.readGoogle), "aws": one(h.readAWS)}); err != nil {
		return err
	}
	if found != 1 {
		return p.fail("must have exactly one of aws and google, not %d", found)
	}
	h.config.Identity = of
	return nil
}

// readGoogle reads for whom tokens of the account are made.
func (h *hook) readGoogle(p place) (webhook.Identity, error) {
	var c webhook.GoogleConfig
	if err := p.read(map[string]reader{"audience": text(&c.Audience)}); err != nil {
		return nil, err
	}
	c.Audience = cmp.Or(c.Audience, hostOf(h.config.URL))
	c.MetadataHost = os.Getenv("GCE_METADATA_HOST")
	id, err := webhook.NewGoogleIdentity(c)
	return id, p.refusedIdentity(err, map[string]string{"Audience": "audience", "MetadataHost": "GCE_METADATA_HOST in the environment"})
}

// hostOf is a URL without its path; empty for what is none.
func hostOf(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return ""
}

// readAWS reads where requests are signed for.
func (h *hook) readAWS(p place) (webhook.Identity, error) {
	var c webhook.AWSConfig
	if err := p.read(map[string]reader{"region": text(&c.Region), "service": text(&c.Service)}); err != nil {
		return nil, err
	}
	c.Region = cmp.Or(c.Region, webhook.RegionOf(h.config.URL))
	id, err := webhook.NewAWSIdentity(c.With(os.Getenv))
	return id, p.refusedIdentity(err, map[string]string{"Region": "region", "AccessKey": "AWS_ACCESS_KEY_ID in the environment"})
}

// refusedIdentity is what an identity says about its settings, in the words of the file; nil if it takes them.
func (p place) refusedIdentity(err error, names map[string]string) error {
	if wrong, ok := errors.AsType[*core.ConfigError](err); ok {
		return p.fail("%s %s", cmp.Or(names[wrong.Field], wrong.Field), wrong.Reason)
	}
	return err
}

// try makes the webhook without calling it, so that its mistakes are reported as the file's.
func (h *hook) try(p place) error {
	_, err := webhook.New(h.config)
	return p.refused(err, h)
}

// refused is what a handler or a gate says about its settings, in the words of the file; nil if it takes them.
func (p place) refused(err error, h *hook) error {
	wrong, ok := errors.AsType[*core.ConfigError](err)
	if !ok {
		return err
	}
	switch wrong.Field {
	case "Secret":
		return h.secret.fail("the environment variable %s, named by secret_env, %s", h.secret.value().Value, wrong.Reason)
	case "Bearer":
		return h.bearer.fail("the environment variable %s, named by bearer_env, %s", h.bearer.value().Value, wrong.Reason)
	case "Headers":
		return p.fail("headers, headers_env, bearer_env and identity %s", wrong.Reason)
	case "Insecure":
		return p.fail("must be https, as others can read requests sent over http; insecure: true allows http")
	default:
		return p.fail("%s", wrong.Reason)
	}
}
