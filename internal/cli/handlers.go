package cli

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// handlerConfig is a handler of the file: its kind, the settings of that kind, and one of log, exec and webhook.
type handlerConfig struct {
	kind     string
	settings core.KindConfig
	log      bool
	exec     []string
	webhook  webhook.Config
	secret   string // the variable that webhook.Secret is from
}

// webhookTimeout is how long a webhook may take if the file does not say.
const webhookTimeout = 30 * time.Second

func (c *config) readHandlers(p place) error {
	entries, err := p.entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		h := handlerConfig{kind: e.key}
		if err := h.read(e.value); err != nil {
			return err
		}
		kinds := map[string]core.KindConfig{h.kind: h.settings}
		if err := check(e.value, core.Config{Default: core.KindConfig{Lease: c.lease}, Kinds: kinds}); err != nil {
			return err
		}
		c.handlers = append(c.handlers, h)
	}
	return nil
}

func (h *handlerConfig) read(p place) error {
	var argv, hook place
	var types []string
	some := func(name string, into *place) reader {
		return func(p place) error { types, *into = append(types, name), p; return nil }
	}
	var logged place
	if err := p.read(map[string]reader{
		"log": some("log", &logged), "exec": some("exec", &argv), "webhook": some("webhook", &hook),
		"secret_env": text(&h.secret), "insecure": boolean(&h.webhook.Insecure),
		"allow_private": boolean(&h.webhook.AllowPrivate), "timeout": durationOrNone(&h.settings.Timeout),
		"slots": integer(&h.settings.Slots), "lease": duration(&h.settings.Lease), "max_attempts": integer(&h.settings.MaxAttempts),
		"backoff": durationOrNone(&h.settings.Backoff), "max_backoff": duration(&h.settings.MaxBackoff),
		"max_retry_afters": orNever(&h.settings.MaxRetryAfters), "pause_after_failures": orNever(&h.settings.PauseAfter),
		"grace": durationOrNone(&h.settings.Grace), "spread": durationOrNone(&h.settings.Spread), "catch_up": orNone(&h.settings.CatchUp),
		"disabled": boolean(&h.settings.Disabled), "activity": h.readActivity,
	}); err != nil {
		return err
	}
	if len(types) != 1 {
		return p.fail("must have one of log, exec and webhook, not %d", len(types))
	}
	if (h.webhook != webhook.Config{} || h.secret != "") && types[0] != "webhook" {
		return p.fail("has secret_env, insecure or allow_private, which only a webhook has")
	}
	switch types[0] {
	case "log":
		h.log = true
		return logged.read(nil)
	case "exec":
		return h.readExec(argv)
	default:
		return h.readWebhook(hook)
	}
}

// readActivity reads when tasks of the kind are due after some activity.
func (h *handlerConfig) readActivity(p place) error {
	if p.empty() {
		return p.fail("must have keys: values, such as quiet: 30m")
	}
	a := &core.Activity{}
	h.settings.Activity = a
	return p.read(map[string]reader{
		"quiet": span(&a.Quiet), "delay": span(&a.Delay), "mode": text((*string)(&a.Mode)), "max_wait": duration(&a.MaxWait),
		"min_interval": span(&a.MinInterval), "max_failures": orNever(&a.MaxFailures), "dimensions": integer(&a.Dimensions),
		"level": integer((*int)(&a.Level)),
	})
}

func (h *handlerConfig) readExec(p place) error {
	if err := texts(&h.exec)(p); err != nil {
		return err
	}
	if _, err := exec.New(exec.Config{Argv: h.exec}); err != nil {
		return p.fail("%s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "Argv"), ": "))
	}
	return nil
}

func (h *handlerConfig) readWebhook(p place) error {
	w := &h.webhook
	if err := text(&w.URL)(p); err != nil {
		return err
	}
	if h.secret != "" {
		if w.Secret = os.Getenv(h.secret); w.Secret == "" {
			return p.fail("the environment variable %s, named by secret_env, is not set", h.secret)
		}
	}
	w.AllowLoopback = true
	h.settings.Timeout = cmp.Or(h.settings.Timeout, webhookTimeout)
	_, err := webhook.New(*w)
	wrong, ok := errors.AsType[*webhook.ConfigError](err)
	switch {
	case !ok:
		return err
	case wrong.Field == "Secret":
		return p.fail("the environment variable %s, named by secret_env, %s", h.secret, wrong.Reason)
	case wrong.Field == "Insecure":
		return p.fail("must be https, as what is sent over http can be read on the way; insecure: true allows http")
	default:
		return p.fail("%s", wrong.Reason)
	}
}

// trySettings finds out whether the settings make sense, before anything is opened or written.
func (c *config) trySettings() error {
	if _, err := core.New(memstore.New(memstore.Config{}), c.settings(nil, nil)); err != nil {
		why := strings.Replace(strings.TrimPrefix(err.Error(), "duly: "), "Urgent must be less than Concurrency", "urgent_slots must be less than concurrency", 1)
		return usage("see duly daemon --help", "%s", why)
	}
	return nil
}

// settings are what the scheduler has to know of the handlers.
func (c *config) settings(logger *slog.Logger, onEvent func(core.Event)) core.Config {
	kinds := map[string]core.KindConfig{}
	for _, h := range c.handlers {
		kinds[h.kind] = h.settings
	}
	return core.Config{
		Name: c.name, Concurrency: c.concurrency, Urgent: c.urgent, Serial: c.serial, MaxAbandoned: c.maxAbandoned, MaxCrashes: c.maxCrashes,
		Default: core.KindConfig{Lease: c.lease}, Kinds: kinds,
		Logger: logger, OnEvent: onEvent,
	}
}

// register makes the handlers of the file those of a scheduler.
func (p *process) register(s *core.Scheduler, c *config, logger *slog.Logger) error {
	secrets := c.secretVariables()
	for _, h := range c.handlers {
		switch {
		case h.log:
			core.Handle(s, h.kind, logRun(logger))
		case h.exec != nil:
			e, err := exec.New(exec.Config{Argv: h.exec, SnoozeFor: h.settings.Backoff, WithoutEnv: secrets, Children: &p.children})
			if err != nil {
				return err
			}
			core.Handle(s, h.kind, e.Run)
		default:
			w, err := webhook.New(h.webhook)
			if err != nil {
				return err
			}
			core.Handle(s, h.kind, w.Run)
		}
	}
	return nil
}

// secretVariables are the variables of the environment that hold a secret of this process: what opens its store and its API,
// and what its webhooks are signed with.
func (c *config) secretVariables() []string {
	names := []string{redisstore.EnvURL, tokenEnv, c.tokenVariable(), cronSecretEnv}
	for _, h := range c.handlers {
		if h.secret != "" {
			names = append(names, h.secret)
		}
	}
	return names
}

// kinds are the kinds that have a handler in the file, for people.
func (c *config) kinds() string {
	if len(c.handlers) == 0 {
		return "none"
	}
	var names []string
	for _, h := range c.handlers {
		names = append(names, h.kind)
	}
	return strings.Join(names, ", ")
}

func (c *config) handles(kind string) bool {
	return slices.ContainsFunc(c.handlers, func(h handlerConfig) bool { return h.kind == kind })
}
