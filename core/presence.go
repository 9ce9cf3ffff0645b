package core

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// A process says what it runs while handlers of it run, with its heartbeats but not more often than announceEvery, and
// when it has left tasks for lack of time. A host that lives on says so by Announce, also while it is idle.
const (
	announceEvery = 5 * time.Second
	liveEvery     = 20 * time.Second // three of these within what is kept: one may be lost
	announceFor   = time.Minute
	leftTold      = 10 * time.Minute // for so long it is known that a pull left tasks
)

// Process is what a process has said of itself.
type Process struct {
	Name  string   `json:"name"`  // Config.Name
	Kinds []string `json:"kinds"` // that it handles
	// Slots are its slots, and how many of them were in use.
	Slots int `json:"slots"`
	InUse int `json:"in_use"`
	// Urgent are the slots of these that are kept for tasks of level 1; Usual the runs of other levels.
	Urgent    int                 `json:"urgent"`
	Usual     int                 `json:"usual"`
	Abandoned int                 `json:"abandoned"` // handlers that ignore their cancelled context
	Full      []string            `json:"full"`      // kinds whose own slots were all in use
	Left      map[string]LeftKind `json:"left"`      // kinds that its last pulls had no time for
	Running   []RunningTask       `json:"running"`   // the oldest ten of its runs
	At        time.Time           `json:"-"`         // when it said so
}

// LeftKind is a kind that a pull left, as its runs usually take longer than there was time for.
type LeftKind struct {
	Usual time.Duration `json:"usual"` // what nine in ten of its last runs did not exceed
	Had   time.Duration `json:"had"`   // all the time that the pull had
	At    time.Time     `json:"-"`
}

// The times of these are milliseconds in JSON, as processes of earlier versions write and read them.

type (
	plainProcess  Process
	plainLeftKind LeftKind

	processJSON struct {
		*plainProcess

		At store.Millis `json:"at"`
	}
	leftKindJSON struct {
		*plainLeftKind

		At store.Millis `json:"at"`
	}
)

// MarshalJSON writes what a process says of itself.
func (p Process) MarshalJSON() ([]byte, error) {
	return json.Marshal(processJSON{(*plainProcess)(&p), store.MillisOf(p.At)})
}

// UnmarshalJSON reads it.
func (p *Process) UnmarshalJSON(data []byte) error {
	in := processJSON{plainProcess: (*plainProcess)(p)}
	err := json.Unmarshal(data, &in)
	p.At = in.At.Time()
	return err
}

// MarshalJSON writes a kind that was left.
func (l LeftKind) MarshalJSON() ([]byte, error) {
	return json.Marshal(leftKindJSON{(*plainLeftKind)(&l), store.MillisOf(l.At)})
}

// UnmarshalJSON reads it.
func (l *LeftKind) UnmarshalJSON(data []byte) error {
	in := leftKindJSON{plainLeftKind: (*plainLeftKind)(l)}
	err := json.Unmarshal(data, &in)
	l.At = in.At.Time()
	return err
}

// handles reports whether the process runs tasks of a kind.
func (p *Process) handles(kind string) bool { return slices.Contains(p.Kinds, kind) }

// busy reports whether the process has no slot for a task of a kind and level.
func (p *Process) busy(kind string, level Level) bool {
	return slices.Contains(p.Full, kind) || p.InUse >= p.Slots || level != LevelHigh && p.Usual >= p.Slots-p.Urgent
}

// presence is what this process says of itself, and when it did so last.
type presence struct {
	mu   sync.Mutex
	said time.Time
	full bool      // it said that all its slots were in use
	turn time.Time // when it last said something else about that than before
	left map[string]LeftKind
}

// self is what there is to say of this process.
func (s *Scheduler) self() Process {
	st := s.slots.stats()
	p := Process{
		Name: s.config.Name, Kinds: s.handled(), Slots: st.Total, InUse: st.InUse, Urgent: st.Urgent, Usual: st.Usual,
		Abandoned: st.Abandoned, Running: s.pulls.running(), At: s.storeNow().Time(),
	}
	for kind, k := range st.Kinds {
		if k.InUse >= k.Total {
			p.Full = append(p.Full, kind)
		}
	}
	slices.Sort(p.Full)
	s.presence.mu.Lock()
	defer s.presence.mu.Unlock()
	maps.DeleteFunc(s.presence.left, func(_ string, l LeftKind) bool { return p.At.Sub(l.At) > leftTold })
	p.Left = maps.Clone(s.presence.left)
	return p
}

// announce says what this process runs, unless it has just done so. That its slots are all in use, or no more, it says at once: who asks
// why a task waits is told so.
func (s *Scheduler) announce(ctx context.Context, every, keep time.Duration) {
	if s.config.Presence == nil {
		return
	}
	now, full := s.config.Clock.Now(), s.slots.full()
	s.presence.mu.Lock()
	turns := full != s.presence.full && now.Sub(s.presence.turn) >= announceEvery
	early := !turns && !s.presence.said.IsZero() && now.Sub(s.presence.said) < every
	if !early {
		s.presence.said = now
	}
	if turns {
		s.presence.full, s.presence.turn = full, now
	}
	s.presence.mu.Unlock()
	if early {
		return
	}
	info, err := json.Marshal(s.self())
	if err == nil {
		err = s.config.Presence.Announce(ctx, s.nonce, info, keep)
	}
	if err != nil {
		s.config.Logger.DebugContext(ctx, "cannot announce this process in the store", slog.Any("err", err))
	}
}

// Announce says what this process runs, unless it has done so within the last 20 seconds: a host that lives on, such as a daemon, calls it
// after each pull, so that it is among [Scheduler.Processes] while it is idle too. It costs one command, and does nothing without Config.Presence.
// What it has counted since it did so last it adds to what Config.Recent keeps, every five seconds.
func (s *Scheduler) Announce(ctx context.Context) {
	s.addTallies(ctx, tallyEvery)
	if s.config.Presence == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	s.announce(ctx, liveEvery, announceFor)
}

// Retire takes back what this process has said of itself: a host that has called Announce calls it when it ends, so that nobody takes the
// process for an idle one that leaves work undone. It costs one command, and does nothing where nothing was said.
func (s *Scheduler) Retire(ctx context.Context) {
	s.addTallies(ctx, 0)
	s.presence.mu.Lock()
	said := !s.presence.said.IsZero()
	s.presence.said, s.presence.full = time.Time{}, false
	s.presence.mu.Unlock()
	if s.config.Presence == nil || !said {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	if err := s.config.Presence.Announce(ctx, s.nonce, []byte("{}"), 0); err != nil {
		s.config.Logger.DebugContext(ctx, "cannot take back in the store what this process said", slog.Any("err", err))
	}
}

// tellLeft says which kinds a pull has left for lack of time.
func (p *pull) tellLeft() {
	now := p.s.config.Clock.Now()
	p.s.presence.mu.Lock()
	if p.s.presence.left == nil {
		p.s.presence.left = map[string]LeftKind{}
	}
	for _, kind := range p.s.handled() {
		if !p.fits(kind, now) {
			p.s.presence.left[kind] = LeftKind{Usual: p.s.usually(kind), Had: p.end.Sub(p.begun), At: p.s.storeNow().Time()}
		}
	}
	p.s.presence.mu.Unlock()
	p.announce(0, leftTold)
}

// announce says what the process runs, within the pull.
func (p *pull) announce(every, keep time.Duration) {
	if p.s.config.Presence == nil {
		return
	}
	ctx, cancel := p.call(longestLook)
	defer cancel()
	p.s.announce(ctx, every, keep)
}

// Processes are the processes that have said within the last minute what they run, and this one if it handles anything, by name. A process
// says so while handlers of it run, and a host that calls Announce while it lives. Without Config.Presence this process is the only one that
// is known.
func (s *Scheduler) Processes(ctx context.Context) ([]Process, error) {
	var said map[string][]byte
	if s.config.Presence != nil {
		var err error
		if said, err = s.config.Presence.Processes(ctx); err != nil {
			return nil, err
		}
	}
	all := slices.Collect(maps.Values(s.decoded(said)))
	store.Sort(all, func(a, b *Process) int { return cmp.Or(cmp.Compare(a.Name, b.Name), a.At.Compare(b.At)) })
	return all, nil
}

// processes are the processes that have said something of themselves lately, by tag; this one is among them.
func (s *Scheduler) processes(ctx context.Context) map[string]Process {
	var said map[string][]byte
	if s.config.Presence != nil {
		var err error
		if said, err = s.config.Presence.Processes(ctx); err != nil {
			s.config.Logger.DebugContext(ctx, "cannot read the processes from the store", slog.Any("err", err))
		}
	}
	return s.decoded(said)
}

// decoded is what processes have said; this one knows best about itself.
func (s *Scheduler) decoded(said map[string][]byte) map[string]Process {
	all := make(map[string]Process, len(said)+1)
	for tag, info := range said {
		var p Process
		if json.Unmarshal(info, &p) == nil { // else another version says it in another way
			all[tag] = p
		}
	}
	if len(s.handled()) > 0 {
		all[s.nonce] = s.self()
	}
	return all
}
