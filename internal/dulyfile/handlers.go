package dulyfile

// The handlers of the file: their keys, and how they are registered.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// Handler is a handler of the file: its kind, the settings of that kind, and one of log, exec, webhook, worker and the targets at vendors.
type Handler struct {
	Kind     string
	Settings core.KindConfig
	Log      bool // it writes one line for each run
	Worker   bool // workers outside pull its runs: this process only knows the settings

	exec    []string
	output  string // "none" if what a program prints is not kept
	body    string // of a webhook: "payload" if it posts nothing else
	webhook hook
	target  contract.Runner // nil if it is none at a vendor
	gate    *gate           // nil if the kind has none
	door    bool            // it is that of a door, which needs a dialect
}

// webhookTimeout is how long a webhook may take if the file does not say.
// It is shorter than core's, as a server that is silent for so long has most likely lost the request.
const webhookTimeout = 30 * time.Second

// readHandlers reads the handlers, and checks each with the settings that it has.
func (f *File) readHandlers(ctx context.Context, p place, vendors targets) error {
	entries, err := p.entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		h := Handler{Kind: e.key}
		if err := h.read(ctx, e.value, vendors); err != nil {
			return err
		}
		kinds := map[string]core.KindConfig{h.Kind: h.Settings}
		if err := check(e.value, h.Kind, core.Config{Default: core.KindConfig{Lease: f.Lease}, Kinds: kinds}); err != nil {
			return err
		}
		f.Handlers = append(f.Handlers, h)
	}
	return nil
}

// read reads one handler. The keys of its type are checked after all have been
// read, so that their order does not matter.
func (h *Handler) read(ctx context.Context, p place, vendors targets) error {
	var at place
	var types []string
	as := func(name string) reader {
		return func(p place) error { types, at = append(types, name), p; return nil }
	}
	if err := p.read(h.webhook.readers(map[string]reader{
		"log": as("log"), "exec": as("exec"), "webhook": as("webhook"), "worker": as("worker"),
		"lambda": as("lambda"), "sqs": as("sqs"), "pubsub": as("pubsub"), "cloud_run": as("cloud_run"),
		"timeout": durationOrNone(&h.Settings.Timeout),
		"level":   integer((*int)(&h.Settings.Level)), "slots": integer(&h.Settings.Slots), "lease": duration(&h.Settings.Lease), "max_attempts": integer(&h.Settings.MaxAttempts),
		"backoff": durationOrNone(&h.Settings.Backoff), "max_backoff": duration(&h.Settings.MaxBackoff),
		"max_retry_afters": orNever(&h.Settings.MaxRetryAfters), "pause_after_failures": orNever(&h.Settings.PauseAfter),
		"grace": durationOrNone(&h.Settings.Grace), "spread": durationOrNone(&h.Settings.Spread), "catch_up": orNone(&h.Settings.CatchUp),
		"disabled": boolean(&h.Settings.Disabled), "activity": h.readActivity, "gate": h.readGate,
		"batch": integer(&h.Settings.Batch), "batch_wait": duration(&h.Settings.BatchWait), "batch_by": h.readBatchBy,
		"expect": h.readExpect, "tool": h.readTool, "expect_success": duration(&h.Settings.ExpectSuccess), "on_late": text(&h.Settings.OnLate),
		"output": text(&h.output), "body": text(&h.body), "once": boolean(&h.webhook.config.Once),
		"idle_factor": number(&h.Settings.IdleBackoff.Factor), "idle_max": duration(&h.Settings.IdleBackoff.Max),
	})); err != nil {
		return err
	}
	if len(types) != 1 {
		return p.fail("must have exactly one of log, exec, webhook, worker, lambda, sqs, pubsub and cloud_run, not %d", len(types))
	}
	if err := h.refuse(p, types[0]); err != nil {
		return err
	}
	switch types[0] {
	case "log":
		h.Log = true
		return at.read(nil)
	case "worker":
		h.Worker = true
		return at.read(nil)
	case "exec":
		return h.readExec(at)
	case "webhook":
		return h.readWebhook(at)
	default:
		return h.readTarget(ctx, types[0], at, vendors)
	}
}

// refuse is an error for keys that only another type of handler has.
func (h *Handler) refuse(p place, is string) error {
	posts := is == "webhook" || is == "cloud_run"
	if !posts {
		if err := h.webhook.refuse(p); err != nil {
			return err
		}
	}
	switch {
	case is == "webhook":
	case h.body != "":
		return p.fail("has body, which is for webhooks only")
	case h.webhook.config.Once:
		return p.fail("has once, which is for webhooks only")
	}
	if h.Settings.Batch != 0 && !posts && is != "exec" {
		return p.fail("has batch, which is for exec and webhook only")
	}
	if h.output != "" && (is != "exec" || h.output != "none") {
		return p.fail("has output, which is for exec only, and can be none: leave it out to keep what the program prints")
	}
	return nil
}

// readBatchBy reads what the tasks of a batch share. An empty array would be batches of several agents, which core refuses too.
func (h *Handler) readBatchBy(p place) error {
	if p.empty() {
		return nil
	}
	h.Settings.BatchBy = []string{}
	return texts(&h.Settings.BatchBy)(p)
}

// readExpect reads what a run is expected to use, by units.
func (h *Handler) readExpect(p place) error {
	if p.empty() {
		return nil
	}
	entries, err := p.entries()
	if err != nil {
		return err
	}
	h.Settings.Expect = core.Usage{}
	for _, e := range entries {
		var amount float64
		if err := number(&amount)(e.value); err != nil {
			return err
		}
		h.Settings.Expect[e.key] = amount
	}
	return nil
}

// readActivity reads when tasks of the kind are due after some activity.
func (h *Handler) readActivity(p place) error {
	if p.empty() {
		return p.fail("must be an object, such as { quiet: 30m }")
	}
	a := &core.Activity{}
	h.Settings.Activity = a
	return p.read(map[string]reader{
		"quiet": span(&a.Quiet), "delay": span(&a.Delay), "mode": text((*string)(&a.Mode)), "max_wait": duration(&a.MaxWait),
		"min_interval": span(&a.MinInterval), "max_failures": orNever(&a.MaxFailures), "dimensions": integer(&a.Dimensions),
		"level": integer((*int)(&a.Level)),
	})
}

// readExec reads the program and its arguments, and looks whether it exists.
func (h *Handler) readExec(p place) error {
	if err := texts(&h.exec)(p); err != nil {
		return err
	}
	_, err := exec.New(exec.Config{Argv: h.exec})
	return p.refused(err, nil)
}

// readWebhook reads the URL, and checks it with the settings that it has.
func (h *Handler) readWebhook(p place) error {
	if err := h.webhook.read(p); err != nil {
		return err
	}
	switch {
	case h.body == "payload" && h.Settings.Batch != 0:
		return p.fail("has batch and body: payload, of which it can have one: a batch is posted as duly's own array")
	case h.body == "payload":
		h.webhook.config.Dialect = webhook.Payload{}
	case h.body != "" && h.body != "run":
		return p.fail("has body: %s, which must be run, for the run as duly describes it, or payload, for the payload alone", h.body)
	}
	h.Settings.Timeout = cmp.Or(h.Settings.Timeout, webhookTimeout)
	return h.webhook.try(p)
}

// Settings are what a scheduler has to know of the file. It logs nothing.
// The caller that makes the scheduler adds the logger and events.
func (f *File) Settings() core.Config {
	kinds := map[string]core.KindConfig{}
	for _, h := range f.Handlers {
		kinds[h.Kind] = h.Settings
	}
	callbacks := f.Callbacks.into(kinds)
	return core.Config{
		Callbacks: callbacks,
		Name:      f.Name, Concurrency: f.Concurrency, Urgent: f.Urgent, Ahead: f.Ahead, Serial: f.Serial, MaxAbandoned: f.MaxAbandoned, MaxCrashes: f.MaxCrashes,
		MaxDepth: f.MaxDepth, MaxSpawned: f.MaxSpawned,
		Default: core.KindConfig{Lease: f.Lease}, Kinds: kinds, Limits: f.Limits, Budgets: f.Budgets, Zone: f.Defaults.Zone, Bindings: f.bind(), Policy: f.policy(),
	}
}

// Register makes the handlers of the file, and their gates, those of a scheduler. The programs that they start are among the
// children, and get neither the variables that the file names as secrets nor those that the caller does.
// Secrets are gathered first, so that no program gets the secret of another.
func (f *File) Register(s *core.Scheduler, logger *slog.Logger, children *exec.Children, secrets ...string) error {
	secrets = append(secrets, f.secrets...)
	for _, h := range f.Handlers {
		secrets = append(secrets, h.webhook.env...)
		if h.gate != nil {
			secrets = append(secrets, h.gate.webhook.env...)
		}
	}
	for _, h := range f.Handlers {
		if err := h.register(s, logger, children, secrets); err != nil {
			return err
		}
		if h.gate == nil {
			continue
		}
		ask, err := h.gate.ask(children, secrets)
		if err != nil {
			return err
		}
		core.Gate(s, h.Kind, ask)
	}
	return nil
}

// register registers one handler for its kind.
func (h *Handler) register(s *core.Scheduler, logger *slog.Logger, children *exec.Children, secrets []string) error {
	switch {
	case h.Worker:
	case h.target != nil:
		core.Handle(s, h.Kind, h.target.Run)
	case h.Log:
		core.Handle(s, h.Kind, logRun(logger))
	case h.exec != nil:
		// A handler without pauses between its attempts is still put off when it asks for that.
		e, err := exec.New(exec.Config{Argv: h.exec, SnoozeFor: max(h.Settings.Backoff, 0), WithoutEnv: secrets, Children: children, NoOutput: h.output == "none"})
		if err != nil {
			return err
		}
		h.handle(s, e)
	case h.door && h.webhook.config.Dialect == nil:
		return fmt.Errorf("%s: this program cannot post its runs", h.Kind)
	default:
		w, err := webhook.New(h.webhook.config)
		if err != nil {
			return err
		}
		h.handle(s, w)
	}
	return nil
}

// runner runs tasks one by one or in batches: a program or a webhook.
type runner interface {
	Run(ctx context.Context, t *core.Task[json.RawMessage]) error
	RunBatch(ctx context.Context, ts []*core.Task[json.RawMessage]) []error
}

// handle makes what runs tasks the handler of its kind, of single tasks or of batches.
func (h *Handler) handle(s *core.Scheduler, by runner) {
	if h.Settings.Batch == 0 {
		core.Handle(s, h.Kind, by.Run)
		return
	}
	core.HandleBatch(s, h.Kind, by.RunBatch)
}

// KindNames are the kinds that have a handler in the file, for people.
func (f *File) KindNames() string {
	if len(f.Handlers) == 0 {
		return "none"
	}
	var names []string
	for _, h := range f.Handlers {
		names = append(names, h.Kind)
	}
	return strings.Join(names, ", ")
}

// Handles reports whether the file has a handler for a kind.
func (f *File) Handles(kind string) bool {
	return slices.ContainsFunc(f.Handlers, func(h Handler) bool { return h.Kind == kind })
}
