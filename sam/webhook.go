package main

import (
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
	urls, err := readWebhooks(get("DULY_WEBHOOKS"))
	if err != nil {
		return err
	}
	private, err := flag(get, "DULY_WEBHOOKS_ALLOW_PRIVATE")
	if err != nil {
		return err
	}
	for kind, url := range urls {
		h, err := webhook.New(webhook.Config{
			URL: url, Secret: get("DULY_WEBHOOK_SECRET"), AllowPrivate: private, Insecure: private,
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

// callbacks are those of DULY_CALLBACKS: the beginnings of URLs that may be told how tasks have ended, separated by commas; nil if there are
// none. Messages are signed as those of webhooks are, and have to be.
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

// readWebhooks reads the URLs. JSON would let the last of two for one kind win, without a word.
func readWebhooks(text string) (map[string]string, error) {
	urls := map[string]string{}
	if text == "" {
		return urls, nil
	}
	wrong := errors.New(`DULY_WEBHOOKS must be JSON such as {"digest": "https://agents.example/digest"}`)
	var all map[string]string
	if json.Unmarshal([]byte(text), &all) != nil {
		return nil, wrong
	}
	d := json.NewDecoder(strings.NewReader(text))
	_, _ = d.Token() // the brace: the whole has been read above
	for d.More() {
		kind, err := d.Token()
		url, err2 := d.Token()
		name, isText := kind.(string)
		if err != nil || err2 != nil || !isText {
			return nil, wrong
		}
		if _, twice := urls[name]; twice {
			return nil, fmt.Errorf("DULY_WEBHOOKS: the kind %q exists twice", name)
		}
		urls[name], _ = url.(string)
	}
	return urls, nil
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
	case wrong.Field == "Insecure":
		return fmt.Errorf("DULY_WEBHOOKS: the URL of %q must begin with https://; DULY_WEBHOOKS_ALLOW_PRIVATE=true allows http", kind)
	default:
		return fmt.Errorf("DULY_WEBHOOKS: the URL of %q %s", kind, wrong.Reason)
	}
}
