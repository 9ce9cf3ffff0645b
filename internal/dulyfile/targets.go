package dulyfile

// Targets at vendors: a function, a queue, a topic, a private service. Their libraries are linked by the programs that give them.

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// lambdaTimeout is how long a function may take if the file does not say: as long as Lambda lets any.
const lambdaTimeout = 15 * time.Minute

// targets are those that the program is built with.
type targets []contract.Target

// readTarget reads a target, and makes it without calling it.
func (h *Handler) readTarget(ctx context.Context, name string, p place, linked targets) error {
	var c contract.TargetConfig
	var to place
	keep := func(into *place) reader { return func(p place) error { *into = p; return nil } }
	first, keys := "url", map[string]reader{"url": keep(&to), "audience": text(&c.To)} // of cloud_run
	switch name {
	case "lambda":
		first, keys = "function", map[string]reader{
			"function": keep(&to), "async": boolean(&c.Async), "answer_within": duration(&c.AnswerWithin), "region": text(&c.Region), "endpoint": text(&c.Endpoint),
		}
	case "sqs":
		first, keys = "queue_url", map[string]reader{"queue_url": keep(&to), "region": text(&c.Region), "endpoint": text(&c.Endpoint)}
	case "pubsub":
		first, keys = "topic", map[string]reader{"topic": keep(&to), "endpoint": text(&c.Endpoint)}
	}
	if err := p.read(keys); err != nil {
		return err
	}
	if to.empty() {
		return p.fail("%s is required", first)
	}
	i := slices.IndexFunc(linked, func(t contract.Target) bool { return t.Name == name })
	if i < 0 {
		return p.fail("this program is built without %s: use a released duly or one of make build, or give host.ReadFile its Target", name)
	}
	if name == "cloud_run" {
		return h.readCloudRun(to, c, linked[i])
	}
	if err := text(&c.To)(to); err != nil {
		return err
	}
	within := webhookTimeout
	if name == "lambda" && !c.Async {
		within = lambdaTimeout
	}
	h.Settings.Timeout = cmp.Or(h.Settings.Timeout, within)
	var err error
	h.target, err = linked[i].Open(ctx, c)
	return p.refusedIdentity(err, map[string]string{"To": first, "Region": "region", "AnswerWithin": "answer_within"})
}

// readCloudRun reads a webhook whose caller proves itself to a service, by default for the service's own URL.
func (h *Handler) readCloudRun(to place, c contract.TargetConfig, by contract.Target) error {
	if err := h.webhook.read(to); err != nil {
		return err
	}
	if err := h.webhook.try(to); err != nil { // before the identity, which is for a URL that makes sense
		return err
	}
	if h.webhook.config.Identity != nil {
		return h.webhook.identity.fail("cloud_run has an identity of its own: leave this out")
	}
	c.To = cmp.Or(c.To, hostOf(h.webhook.config.URL))
	id, err := by.Prove(c)
	if err != nil {
		return to.refusedIdentity(err, map[string]string{"To": "audience"})
	}
	h.webhook.config.Identity = id
	h.Settings.Timeout = cmp.Or(h.Settings.Timeout, webhookTimeout)
	return h.webhook.try(to)
}
