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
	webhook hook
	timeout time.Duration
}

// readGate reads the gate that is asked whether there is work to do.
func (h *Handler) readGate(p place) error {
	var argv, url place
	var types []string
	some := func(name string, into *place) reader {
		return func(p place) error { types, *into = append(types, name), p; return nil }
	}
	g := &gate{}
	h.gate = g
	if err := p.read(g.webhook.readers(map[string]reader{
		"exec": some("exec", &argv), "webhook": some("webhook", &url), "timeout": duration(&g.timeout),
	})); err != nil {
		return err
	}
	if len(types) != 1 {
		return p.fail("must have exactly one of exec and webhook, not %d", len(types))
	}
	at := argv
	if g.posts = types[0] == "webhook"; g.posts {
		at = url
		if err := g.webhook.read(url); err != nil {
			return err
		}
	} else {
		if err := g.webhook.refuse(p); err != nil {
			return err
		}
		if err := texts(&g.exec)(argv); err != nil {
			return err
		}
	}
	_, err := g.ask(nil, nil)
	return at.refused(err, &g.webhook)
}

// ask is the gate as core has it. Its error is a *core.ConfigError.
func (g *gate) ask(children *exec.Children, secrets []string) (func(context.Context, *core.RunInfo) (core.GateAnswer, error), error) {
	if g.posts {
		w, err := webhook.NewGate(webhook.GateConfig{Config: g.webhook.config, Timeout: g.timeout})
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
