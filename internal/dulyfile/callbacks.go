package dulyfile

// Callbacks: which URLs may receive how tasks ended.

import (
	"errors"
	"maps"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// Callbacks are the settings of callbacks. Without them in the file a task with a callback is refused.
type Callbacks struct {
	settings core.KindConfig
	config   webhook.CallbacksConfig
	deliver  *webhook.Callbacks
}

// readTold reads the receivers of callbacks and of approval requests.
func (f *File) readTold(callbacks, approvals place) error {
	if err := f.readCallbacks(callbacks); err != nil {
		return err
	}
	return f.readApprovals(approvals)
}

// readCallbacks reads the key callbacks.
func (f *File) readCallbacks(p place) error {
	if p.node == nil || p.empty() {
		return nil
	}
	var c Callbacks
	var env, events string
	config := webhook.CallbacksConfig{}
	if err := p.read(map[string]reader{
		"allow": texts(&config.Allow), "secret_env": text(&env), "allow_private": boolean(&config.AllowPrivate), "cloudevents": text(&events),
		"timeout": duration(&c.settings.Timeout), "max_attempts": integer(&c.settings.MaxAttempts),
		"backoff": duration(&c.settings.Backoff), "max_backoff": duration(&c.settings.MaxBackoff), "slots": integer(&c.settings.Slots),
	}); err != nil {
		return err
	}
	if len(config.Allow) == 0 {
		return p.fail("must have allow, the beginnings of the URLs that may be called, such as [https://hooks.example.com/]")
	}
	if env == "" {
		return p.fail("must have secret_env, the environment variable that contains the secret by which receivers know who calls")
	}
	if events != "" && events != "binary" && events != "structured" {
		return p.of("cloudevents").fail("must be binary or structured, not %q", events)
	}
	config.Structured = events == "structured"
	secret, err := f.secretOf(p.of("secret_env"), env)
	if err != nil {
		return err
	}
	config.Secret = secret
	c.config = config
	if c.deliver, err = webhook.NewCallbacks(config); err != nil {
		return p.refusedCallback(err)
	}
	f.Callbacks = &c
	return check(p, model.KindCallback, core.Config{Default: core.KindConfig{Lease: f.Lease}, Kinds: map[string]core.KindConfig{model.KindCallback: c.settings}})
}

// refusedCallback is an error about callbacks at the key that is wrong.
func (p place) refusedCallback(err error) error {
	if wrong, ok := errors.AsType[*core.ConfigError](err); ok && strings.HasPrefix(wrong.Field, "Allow") {
		return p.of("allow").fail("%q %s", wrong.Value, wrong.Reason)
	}
	return p.of("secret_env").refused(err, &hook{secret: p.of("secret_env")})
}

// into adds the settings of deliveries to those of kinds, and returns what delivers; nil without callbacks.
func (c *Callbacks) into(kinds map[string]core.KindConfig) core.Callbacks {
	if c == nil {
		return nil
	}
	kinds[model.KindCallback] = c.settings
	return c.deliver
}

// Write lets the callbacks of a file be written in another form, for URLs that ask for it by name, if the file has callbacks.
func Write(f *File, name string, form webhook.CallbackForm) error {
	if f.Callbacks == nil {
		return nil
	}
	config := f.Callbacks.config
	config.Forms = maps.Clone(config.Forms)
	if config.Forms == nil {
		config.Forms = map[string]webhook.CallbackForm{}
	}
	config.Forms[name] = form
	deliver, err := webhook.NewCallbacks(config)
	if err == nil {
		f.Callbacks.config, f.Callbacks.deliver = config, deliver
	}
	return err
}
