package dulyfile

// The gates of the file: their keys, and what they ask.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// gate is the gate of a handler's kind: one of exec and webhook.
type gate struct {
	posts   bool // it is a webhook
	exec    []string
	webhook webhook.Config
	secret  string // the variable that webhook.Secret is from
	timeout time.Duration
}

// readGate reads what is asked whether there is anything to do.
func (h *Handler) readGate(p place) error {
	var argv, url place
	var types []string
	some := func(name string, into *place) reader {
		return func(p place) error { types, *into = append(types, name), p; return nil }
	}
	g := &gate{}
	h.gate = g
	if err := p.read(map[string]reader{
		"exec": some("exec", &argv), "webhook": some("webhook", &url), "timeout": duration(&g.timeout),
		"secret_env": text(&g.secret), "insecure": boolean(&g.webhook.Insecure), "allow_private": boolean(&g.webhook.AllowPrivate),
	}); err != nil {
		return err
	}
	if len(types) != 1 {
		return p.fail("must have exactly one of exec and webhook, not %d", len(types))
	}
	at := argv
	g.posts = types[0] == "webhook"
	switch {
	case g.posts:
		at = url
		if err := url.readURL(&g.webhook, g.secret); err != nil {
			return err
		}
	case g.webhook != webhook.Config{} || g.secret != "":
		return p.fail("has secret_env, insecure or allow_private, which are for webhooks only")
	default:
		if err := texts(&g.exec)(argv); err != nil {
			return err
		}
	}
	_, err := g.ask(nil, nil)
	return at.refused(err, g.secret)
}

// ask is the gate as core has it. Its error is a *core.ConfigError.
func (g *gate) ask(children *exec.Children, secrets []string) (func(context.Context, *core.RunInfo) (core.GateAnswer, error), error) {
	if g.posts {
		w, err := webhook.NewGate(webhook.GateConfig{Config: g.webhook, Timeout: g.timeout})
		if err != nil {
			return nil, err
		}
		return w.Ask, nil
	}
	e, err := exec.NewGate(exec.GateConfig{Argv: g.exec, WithoutEnv: secrets, Children: children, Timeout: g.timeout})
	if err != nil {
		return nil, err
	}
	return e.Ask, nil
}
