package base

// Processes, as they report about themselves.

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// A process reports what it runs while its handlers run, with its heartbeats but not more often than AnnounceEvery, and
// when it has left tasks for lack of time. A long-running host reports by Announce, also while it is idle.
const (
	AnnounceEvery = 5 * time.Second
	LiveEvery     = 20 * time.Second // three of these within AnnounceFor: one may be lost
	AnnounceFor   = time.Minute
	LeftTold      = 10 * time.Minute // how long it is remembered that a pull left tasks
)

// LastTag begins the tag of the worker that has asked for some kinds last, which is remembered for [LastFor].
const (
	LastTag = "-last:"
	LastFor = 24 * time.Hour
)

// Processes are the processes that have reported lately, by tag; this one is among them.
func (s *Base) Processes(ctx context.Context) map[string]model.Process {
	return s.Decoded(Reports(ctx, s))
}

// Reports are what processes have reported, by tag, as the store has it.
func Reports(ctx context.Context, s *Base) map[string][]byte {
	var said map[string][]byte
	if s.Config.Presence != nil {
		var err error
		if said, err = s.Config.Presence.Processes(ctx); err != nil {
			s.Config.Logger.DebugContext(ctx, "cannot read the processes from the store", slog.Any("err", err))
		}
	}
	return said
}

// LastWorker is the worker outside that has asked for a kind last; false if none has within a day.
func LastWorker(said map[string][]byte, kind string) (last model.Process, found bool) {
	for tag, info := range said {
		var p model.Process
		if strings.HasPrefix(tag, LastTag) && json.Unmarshal(info, &p) == nil && p.Handles(kind) && p.At.After(last.At) {
			last, found = p, true
		}
	}
	return last, found
}

// Decoded is what processes have reported; for this one its own state counts.
func (s *Base) Decoded(said map[string][]byte) map[string]model.Process {
	all := make(map[string]model.Process, len(said)+1)
	for tag, info := range said {
		var p model.Process
		if !strings.HasPrefix(tag, LastTag) && json.Unmarshal(info, &p) == nil { // else another version reports in another form
			all[tag] = p
		}
	}
	if len(s.Handled()) > 0 {
		all[s.Tag] = s.Self()
	}
	return all
}
