package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// Webhooks: kinds that are run by an HTTP call, so that a deployment needs no Go.

// webhooks registers a webhook for each kind of DULY_WEBHOOKS, as in {"digest": "https://agents.example/digest"}. This
// machine is no exception to what is not public: Lambda itself listens there.
func webhooks(s *core.Scheduler, get func(string) string) error {
	all, err := readWebhooks(get("DULY_WEBHOOKS"))
	if err != nil {
		return err
	}
	private, err := flag(get, "DULY_WEBHOOKS_ALLOW_PRIVATE")
	if err != nil {
		return err
	}
	for kind, to := range all {
		proof, err := to.proof(get)
		if err != nil {
			return named(kind, err)
		}
		h, err := webhook.New(webhook.Config{
			URL: to.URL, Secret: get("DULY_WEBHOOK_SECRET"), Identity: proof, AllowPrivate: private, Insecure: private,
		})
		if err != nil {
			return named(kind, err)
		}
		if err := register(s, kind, h); err != nil {
			return err
		}
	}
	return nil
}

// callbacks are from DULY_CALLBACKS: the prefixes of URLs that may receive callbacks about ended tasks, separated by commas; nil if there are
// none. Messages must be signed, as webhooks are.
func callbacks(get func(string) string) (core.Callbacks, error) {
	text := get("DULY_CALLBACKS")
	if text == "" {
		return nil, nil //nolint:nilnil // no task has a callback
	}
	private, err := flag(get, "DULY_WEBHOOKS_ALLOW_PRIVATE")
	if err != nil {
		return nil, err
	}
	c := webhook.CallbacksConfig{Secret: get("DULY_WEBHOOK_SECRET"), AllowPrivate: private}
	if c.Secret == "" {
		return nil, errors.New("DULY_CALLBACKS needs DULY_WEBHOOK_SECRET, by which receivers know who calls")
	}
	for url := range strings.SplitSeq(text, ",") {
		c.Allow = append(c.Allow, strings.TrimSpace(url))
	}
	b, err := webhook.NewCallbacks(c)
	if wrong, ok := errors.AsType[*core.ConfigError](err); ok {
		if wrong.Field == "Secret" {
			return nil, named("", err)
		}
		return nil, fmt.Errorf("DULY_CALLBACKS: %q %s", wrong.Value, wrong.Reason)
	}
	return b, err
}

// target is where tasks of a kind are posted: a URL, or an object of a URL and what proves the function to the server.
type target struct {
	URL      string `json:"url"`
	Identity string `json:"identity"` // aws: the role signs
}

// UnmarshalJSON reads either form.
func (t *target) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &t.URL)
	}
	type plain target // without this method
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(t))
}

// proof is what proves the function to the server; nil for nothing.
func (t *target) proof(get func(string) string) (webhook.Identity, error) {
	switch t.Identity {
	case "":
		return nil, nil //nolint:nilnil // the server lets everybody in, or checks the signature of the message
	case "aws":
		return webhook.NewAWSIdentity(webhook.AWSConfig{Region: webhook.RegionOf(t.URL)}.With(get))
	default:
		return nil, &core.ConfigError{Field: "identity", Value: t.Identity, Reason: fmt.Sprintf("must be aws, not %q", t.Identity)}
	}
}

// readWebhooks reads the URLs. JSON would let the last of two for one kind win, without a word.
func readWebhooks(text string) (map[string]target, error) {
	all := map[string]target{}
	if text == "" {
		return all, nil
	}
	wrong := errors.New(`DULY_WEBHOOKS must be JSON such as {"digest": "https://agents.example/digest"}; in place of a URL there may be {"url": "https://...", "identity": "aws"}`)
	d := json.NewDecoder(strings.NewReader(text))
	if brace, err := d.Token(); err != nil || brace != json.Delim('{') || !json.Valid([]byte(text)) {
		return nil, wrong
	}
	for d.More() {
		kind, err := d.Token()
		var to target
		name, isText := kind.(string)
		if err != nil || !isText || d.Decode(&to) != nil {
			return nil, wrong
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("DULY_WEBHOOKS: the kind %q exists twice", name)
		}
		all[name] = to
	}
	return all, nil
}

// register makes a kind that core.Handle refuses, which is a mistake in a program, one in the settings.
func register(s *core.Scheduler, kind string, h *webhook.Handler) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("DULY_WEBHOOKS: %v", v)
		}
	}()
	core.Handle(s, kind, h.Run)
	return nil
}

// named names the variable in place of the field. Neither shows what it holds.
func named(kind string, err error) error {
	wrong, ok := errors.AsType[*core.ConfigError](err)
	switch {
	case !ok:
		return err
	case wrong.Field == "Secret":
		return errors.New("DULY_WEBHOOK_SECRET " + wrong.Reason)
	case wrong.Field == "Headers" || wrong.Field == "AccessKey" || wrong.Field == "Region" || wrong.Field == "identity":
		return fmt.Errorf("DULY_WEBHOOKS: the identity of %q: %w", kind, err)
	case wrong.Field == "Insecure":
		return fmt.Errorf("DULY_WEBHOOKS: the URL of %q must begin with https://; DULY_WEBHOOKS_ALLOW_PRIVATE=true allows http", kind)
	default:
		return fmt.Errorf("DULY_WEBHOOKS: the URL of %q %s", kind, wrong.Reason)
	}
}
