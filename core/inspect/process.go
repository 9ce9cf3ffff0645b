package inspect

// The processes of a store.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Processes are the processes that have reported within the last minute what they run, and this one if it handles anything, by name. A process
// reports while its handlers run, and a host that calls Announce while it lives. Without Config.Presence only this process
// is known.
func (s *View) Processes(ctx context.Context) ([]model.Process, error) {
	var said map[string][]byte
	if s.base.Config.Presence != nil {
		var err error
		if said, err = s.base.Config.Presence.Processes(ctx); err != nil {
			return nil, err
		}
	}
	all := slices.Collect(maps.Values(s.base.Decoded(said)))
	store.Sort(all, func(a, b *model.Process) int { return cmp.Or(cmp.Compare(a.Name, b.Name), a.At.Compare(b.At)) })
	return all, nil
}

// handling names processes that run a kind, workers outside among them; empty if none is known.
func (e *Explanation) handling(kind string) string {
	var names []string
	for _, p := range e.processes {
		if p.Handles(kind) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	more := ""
	if n := len(names) - mostNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names[:min(len(names), mostNamed)], ", ") + more
}

// parked says why a task waits that the processes which met it have no handler for.
func (e *Explanation) parked(t *store.Stored) {
	if there := e.handling(t.Kind); there != "" {
		e.Because(model.BecauseBusy, 0, "it has been due since %s, and waits until a process that runs its kind has room: %s", ClockTime(t.Due.Time()), there)
		return
	}
	e.Because(model.BecauseNoHandler, 0, "no process that claims tasks has a handler for the kind %q, and no worker has asked for it lately%s: start one that has, or delete the task",
		t.Kind, e.lastWorker(t.Kind))
	e.about("kind " + t.Kind)
}

// runBy says who runs a kind, as far as is known.
func (e *Explanation) runBy(kind string) string {
	if there := e.handling(kind); there != "" {
		if e.uncalled != "" && e.alone(kind) {
			there += ", " + e.uncalled
		}
		return "Its kind is run by " + there
	}
	return fmt.Sprintf("Is a process running that has a handler for the kind %q? One that waits to be called, as duly serve and functions do, runs it only then%s", kind, inBrackets(strings.TrimPrefix(e.lastWorker(kind), "; ")))
}

// alone reports whether no other process than this one is known to run a kind.
func (e *Explanation) alone(kind string) bool {
	for tag, p := range e.processes {
		if tag != e.self && p.Handles(kind) {
			return false
		}
	}
	return true
}

// uncalled says that this process runs tasks once it is called, and was not within the time for which a process is known to live; empty if it was. Another
// one of its kind, such as the function that a schedule calls, may be.
func uncalled(s *base.Base) string {
	const call = "once it is called (RunDue, POST /v1/run-due or GET /v1/cron), which it was "
	ago := s.Config.Clock.Now().Sub(time.UnixMilli(s.Asked.Load()))
	switch {
	case s.Asked.Load() == 0:
		return call + "not yet"
	case ago > base.AnnounceFor:
		return call + "last " + moment.ShortDuration(ago.Round(time.Second)) + " ago"
	default:
		return ""
	}
}

// lastWorker says which worker outside has asked for a kind last.
func (e *Explanation) lastWorker(kind string) string {
	p, found := base.LastWorker(e.said, kind)
	if !found {
		return ""
	}
	return fmt.Sprintf("; the last one, %s, was seen %s ago, at %s", p.Name, moment.ShortDuration(e.Now.Sub(p.At).Round(time.Second)), ClockTime(p.At))
}

// inUse says how many slots of a busy process are in use, and why a task of a kind may not have the others.
func inUse(p *model.Process, kind string) string {
	text := fmt.Sprintf("%s had %d of %d in use at %s", p.Name, p.InUse, p.Slots, ClockTime(p.At))
	switch {
	case p.InUse >= p.Slots:
		return text
	case slices.Contains(p.Full, kind):
		return text + fmt.Sprintf(" and runs no more of the kind %q at once", kind)
	default:
		return text + " and keeps the rest for tasks of level 1"
	}
}
