package base

// Processes, as they have said of themselves.

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// A process says what it runs while handlers of it run, with its heartbeats but not more often than announceEvery, and
// when it has left tasks for lack of time. A host that lives on says so by Announce, also while it is idle.
const (
	AnnounceEvery = 5 * time.Second
	LiveEvery     = 20 * time.Second // three of these within what is kept: one may be lost
	AnnounceFor   = time.Minute
	LeftTold      = 10 * time.Minute // for so long it is known that a pull left tasks
)

// Processes are the processes that have said something of themselves lately, by tag; this one is among them.
func (s *Base) Processes(ctx context.Context) map[string]model.Process {
	var said map[string][]byte
	if s.Config.Presence != nil {
		var err error
		if said, err = s.Config.Presence.Processes(ctx); err != nil {
			s.Config.Logger.DebugContext(ctx, "cannot read the processes from the store", slog.Any("err", err))
		}
	}
	return s.Decoded(said)
}

// Decoded is what processes have said; this one knows best about itself.
func (s *Base) Decoded(said map[string][]byte) map[string]model.Process {
	all := make(map[string]model.Process, len(said)+1)
	for tag, info := range said {
		var p model.Process
		if json.Unmarshal(info, &p) == nil { // else another version says it in another way
			all[tag] = p
		}
	}
	if len(s.Handled()) > 0 {
		all[s.Tag] = s.Self()
	}
	return all
}
