package main

import (
	"encoding/json"
	"log/slog"
	"os/exec"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// handlerConfig is a handler of the file: its kind, the settings of that kind, and one of log, exec and webhook.
type handlerConfig struct {
	kind     string
	settings core.KindConfig
	log      bool
	exec     []string
	webhook  webhookConfig
}

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
		"secret_env": text(&h.webhook.secretEnv), "insecure": boolean(&h.webhook.insecure),
		"allow_private": boolean(&h.webhook.allowPrivate), "timeout": duration(&h.settings.Timeout),
		"lease": duration(&h.settings.Lease), "max_attempts": integer(&h.settings.MaxAttempts),
		"backoff": duration(&h.settings.Backoff), "max_backoff": duration(&h.settings.MaxBackoff),
		"max_retry_afters": orNever(&h.settings.MaxRetryAfters), "pause_after_failures": orNever(&h.settings.PauseAfter), "grace": duration(&h.settings.Grace),
		"spread": orAtOnce(&h.settings.Spread), "catch_up": integer(&h.settings.CatchUp),
		"disabled": boolean(&h.settings.Disabled), "activity": h.readActivity,
	}); err != nil {
		return err
	}
	if len(types) != 1 {
		return p.fail("must have one of log, exec and webhook, not %d", len(types))
	}
	if h.webhook != (webhookConfig{}) && types[0] != "webhook" {
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
		return p.fail("must have keys: values, such as delay: 30m")
	}
	a := &core.Activity{}
	h.settings.Activity = a
	return p.read(map[string]reader{
		"delay": duration(&a.Delay), "mode": text((*string)(&a.Mode)), "max_wait": duration(&a.MaxWait),
		"min_interval": duration(&a.MinInterval), "max_failures": orNever(&a.MaxFailures), "dimensions": integer(&a.Dimensions),
		"level": integer((*int)(&a.Level)),
	})
}

func (h *handlerConfig) readExec(p place) error {
	if err := texts(&h.exec)(p); err != nil {
		return err
	}
	if len(h.exec) == 0 {
		return p.fail("needs a program")
	}
	if _, err := exec.LookPath(h.exec[0]); err != nil {
		return p.fail("%s: no such program", h.exec[0])
	}
	return nil
}

// trySettings finds out whether the settings make sense, before anything is opened or written.
func (c *config) trySettings() error {
	if _, err := core.New(memstore.New(memstore.Config{}), c.settings(nil, nil)); err != nil {
		return usage("see duly daemon --help", "%s", strings.TrimPrefix(err.Error(), "duly: "))
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
		Concurrency: c.concurrency, MaxCrashes: c.maxCrashes, Default: core.KindConfig{Lease: c.lease}, Kinds: kinds,
		Logger: logger, OnEvent: onEvent,
	}
}

// register makes the handlers of the file those of a scheduler.
func (p *process) register(s *core.Scheduler, c *config, logger *slog.Logger) {
	secrets := c.secretVariables()
	for _, h := range c.handlers {
		switch {
		case h.log:
			core.Handle(s, h.kind, logRun(logger))
		case h.exec != nil:
			e := &execHandler{argv: h.exec, pause: h.settings.Backoff, secrets: secrets, children: p.children}
			core.Handle(s, h.kind, e.run)
		default:
			core.Handle(s, h.kind, newWebhook(h.webhook).run)
		}
	}
}

// secretVariables are the variables of the environment that hold a secret of this process: what opens its store and its API,
// and what its webhooks are signed with.
func (c *config) secretVariables() []string {
	names := []string{redisEnv, tokenEnv, c.tokenVariable(), cronSecretEnv}
	for _, h := range c.handlers {
		if h.webhook.secretEnv != "" {
			names = append(names, h.webhook.secretEnv)
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

// runJSON is a run as programs and webhooks get it.
type runJSON struct {
	ID          string          `json:"id"`
	Agent       string          `json:"agent_id"`
	Kind        string          `json:"kind"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Group       string          `json:"group,omitempty"`
	Level       core.Level      `json:"level"`
	Attempt     int             `json:"attempt"`
	Crashes     int             `json:"crashes"`
	Fence       core.Fence      `json:"fence"`
	Due         string          `json:"due_at"`
	Submitted   string          `json:"submitted_at"`
	TraceID     string          `json:"trace_id,omitempty"`
	Traceparent string          `json:"traceparent,omitempty"`
	SessionID   string          `json:"session_id,omitempty"`
	UserID      string          `json:"user_id,omitempty"`
	MemCubeID   string          `json:"mem_cube_id,omitempty"`
	UserName    string          `json:"user_name,omitempty"`
	Info        json.RawMessage `json:"info,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
}

// instant is a time of the store as texts have it.
func instant(m core.Millis) string { return m.Time().Format("2006-01-02T15:04:05.000Z07:00") }

func encodeRun(t *core.Task[json.RawMessage]) ([]byte, error) {
	return json.Marshal(runJSON{
		ID: t.ID, Agent: t.Agent, Kind: t.Kind, Payload: t.Payload, Group: t.Group, Level: t.Level, Attempt: t.Attempt,
		Crashes: t.Crashes, Fence: t.Fence, Due: instant(t.Due), Submitted: instant(t.Submitted), TraceID: t.TraceID,
		Traceparent: t.Traceparent, SessionID: t.SessionID, UserID: t.UserID, MemCubeID: t.MemCubeID,
		UserName: t.UserName, Info: t.Info, Tags: t.Tags,
	})
}

// Bounds of what is kept of a handler's answer. A text grows by escaping, so less of it is kept than of JSON.
const (
	mostResultJSON = core.DefaultMaxResult
	mostResultText = core.DefaultMaxResult / 8
)

// keepResult keeps what a program or webhook answered as the task's result: as JSON if it is, otherwise as text.
func keepResult(t *core.RunInfo, answer []byte) error {
	answer = []byte(strings.TrimSpace(string(answer)))
	switch {
	case len(answer) == 0:
		return nil
	case len(answer) <= mostResultJSON && json.Valid(answer):
		return t.SetResult(json.RawMessage(answer))
	default:
		return t.SetResult(strings.ToValidUTF8(string(answer[:min(len(answer), mostResultText)]), "\uFFFD"))
	}
}
