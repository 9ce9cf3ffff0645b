package dulyfile

// The APIs of other runtimes that duly answers: where the runs of their tasks are posted.

import (
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// How often a run is posted that has not arrived, and in which pauses, if the file does not say: a runtime may be restarting.
const (
	attemptsOfDoors = 5
	backoffOfDoors  = 5 * time.Second
)

// readDoor reads the key of a runtime, which is the kind of its tasks, too. The section is that of a webhook whose URL is named upstream.
func readDoor(f *File, kind string, p place) error {
	if p.node == nil || p.empty() {
		return nil
	}
	if f.Handles(kind) {
		return p.fail("needs the kind %s for itself: give the handler of that name another one", kind)
	}
	// A schedule goes on after an outage of its runtime: the clients know of no pause that they have not asked for.
	h := Handler{Kind: kind, Settings: core.KindConfig{Timeout: webhookTimeout, MaxAttempts: attemptsOfDoors, Backoff: backoffOfDoors, PauseAfter: never}, door: true}
	var upstream place
	if err := p.read(h.webhook.readers(map[string]reader{
		"upstream": func(p place) error { upstream = p; return nil }, "timeout": duration(&h.Settings.Timeout), "max_attempts": integer(&h.Settings.MaxAttempts),
		"backoff": durationOrNone(&h.Settings.Backoff), "slots": integer(&h.Settings.Slots),
	})); err != nil {
		return err
	}
	if upstream.node == nil || upstream.empty() {
		return p.fail("must have upstream, the address that runs are posted to, such as http://127.0.0.1:2024")
	}
	if err := h.webhook.read(upstream); err != nil {
		return err
	}
	h.webhook.config.Once = true
	f.Handlers = append(f.Handlers, h)
	if err := h.webhook.try(upstream); err != nil {
		return err
	}
	return check(p, kind, core.Config{Default: core.KindConfig{Lease: f.Lease}, Kinds: map[string]core.KindConfig{kind: h.Settings}})
}

// HasDoor reports whether the file has the door with a kind.
func HasDoor(f *File, kind string) bool {
	return slices.ContainsFunc(f.Handlers, func(h Handler) bool { return h.door && h.Kind == kind })
}

// Speak gives the door with a kind its dialect, if the file has that door.
func Speak(f *File, kind string, d webhook.Dialect) {
	for i := range f.Handlers {
		if f.Handlers[i].door && f.Handlers[i].Kind == kind {
			f.Handlers[i].webhook.config.Dialect = d
		}
	}
}
