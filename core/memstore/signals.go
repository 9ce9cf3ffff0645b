package memstore

// Signals: messages to tasks that wait for them.

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// mostTold is how many tasks one signal resumes.
const mostTold = 100

// signals are the tasks of a partition that wait, and the signals that came too early: by agent and key.
type signals struct {
	waiting map[[2]string]map[string]*task // by agent and key, and id
	early   map[[2]string]early
	sent    map[[2]string]moment.Millis // agent and message, until when it is remembered that its signal was sent
	sweepAt int                         // so many of them are cleaned up
}

// early is a signal that no task has waited for yet.
type early struct {
	told     *store.Told
	approval bool
	until    moment.Millis
}

// waiting is which wait of its task it is, and whether it wants an approval.
type waiting struct {
	fence    store.Fence
	approval bool
}

// Signal resumes the waiting tasks; see [store.Signals].
func (s *Store) Signal(ctx context.Context, all []store.Signal) ([]store.Signalled, error) {
	return operate(ctx, s, all, func(n *store.Signal, now moment.Millis) store.Signalled { return s.partitionOf(n.Agent).signal(n, now) })
}

func (p *partition) signal(n *store.Signal, now moment.Millis) store.Signalled {
	// guard: signal-once-in-memory
	if n.Message != "" && !n.Rest && p.signals.sent[[2]string{n.Agent, n.Message}] > now {
		return store.Signalled{Code: store.SignalResumed}
	}
	out := tell(p, n, now)
	// guard: signal-was-sent
	if n.Message != "" && !out.More && (out.Code == store.SignalResumed || out.Code == store.SignalKept) {
		p.signals.remember(n, now)
	}
	return out
}

// remember notes that a message has sent its signal, and forgets those that are over once there are twice as many as before.
func (s *signals) remember(n *store.Signal, now moment.Millis) {
	if len(s.sent) >= s.sweepAt {
		maps.DeleteFunc(s.sent, func(_ [2]string, until moment.Millis) bool { return until <= now })
		s.sweepAt = max(leastReceipts, 2*len(s.sent))
	}
	if s.sent == nil {
		s.sent = map[[2]string]moment.Millis{}
	}
	s.sent[[2]string{n.Agent, n.Message}] = now.Add(n.Remember)
}

// tell resumes the tasks that wait, or keeps the signal.
func tell(p *partition, n *store.Signal, now moment.Millis) store.Signalled {
	name, out := [2]string{n.Agent, n.Key}, store.Signalled{Code: store.SignalResumed}
	unapproved := false
	// In the order of their ids: of more tasks than one signal resumes, the same ones are first each time.
	for _, t := range slices.SortedFunc(maps.Values(p.signals.waiting[name]), func(a, b *task) int { return strings.Compare(a.ID, b.ID) }) {
		// guard: signal-twice
		if t.told != nil || t.claim != nil || n.ID != "" && (t.ID != n.ID || t.wait.fence != n.Wait) {
			continue
		}
		// guard: approval-in-memory
		if t.wait.approval && !n.Approval {
			unapproved = true
			continue
		}
		if out.Resumed == mostTold {
			// guard: signal-page
			out.More = true
			break
		}
		t.told, t.changed = toldOf(n), now
		if t.due > now { // a task that waits for something else as well keeps its place there
			p.lift(t)
			p.place(t, now)
		}
		out.Resumed++
	}
	switch {
	case out.Resumed > 0:
		p.store.announce(p, now)
		return out
	case n.Rest:
		return out
	case unapproved:
		return store.Signalled{Code: store.SignalUnapproved}
	case n.ID != "":
		return store.Signalled{Code: store.SignalClosed}
	// guard: signal-kept
	case p.signals.early[name].until > now:
		return store.Signalled{Code: store.SignalTaken}
	}
	p.signals.early[name] = early{told: toldOf(n), approval: n.Approval, until: now.Add(n.Keep)}
	return store.Signalled{Code: store.SignalKept}
}

// toldOf is a signal in the form that a task receives.
func toldOf(n *store.Signal) *store.Told {
	return &store.Told{Payload: slices.Clone(n.Payload), Note: slices.Clone(n.Note)}
}

// Heard returns what tasks have received; see [store.Signals].
func (s *Store) Heard(ctx context.Context, waits []store.Wait) ([]*store.Told, error) {
	return operate(ctx, s, waits, func(w *store.Wait, _ moment.Millis) *store.Told {
		t := s.partitionOf(w.Agent).task(w.Agent, w.ID)
		if t == nil || t.awaits != w.Key || t.told == nil {
			return nil
		}
		return &store.Told{Payload: slices.Clone(t.told.Payload), Note: slices.Clone(t.told.Note)}
	})
}

// awaits has a task wait as its settlement asks, but for one that has been replaced. It reports whether the signal had come already.
func (p *partition) awaits(t *task, a *store.Await, now moment.Millis) bool {
	if t.order != nil && t.order.op == orderReplace {
		p.unwait(t)
		return false
	}
	if a != nil && a.Heard {
		p.unwait(t)
	}
	return a != nil && a.Key != "" && p.await(t, a, now)
}

// await notes that a task waits for a key. It reports whether the signal had come already.
func (p *partition) await(t *task, a *store.Await, now moment.Millis) bool {
	p.unwait(t)
	t.awaits, t.wait = a.Key, waiting{a.Wait, a.Approval}
	name := [2]string{t.Agent, a.Key}
	if p.signals.waiting[name] == nil {
		p.signals.waiting[name] = map[string]*task{}
	}
	p.signals.waiting[name][t.ID] = t
	if e := p.signals.early[name]; e.until > now && (e.approval || !a.Approval) {
		t.told = e.told
		delete(p.signals.early, name)
	}
	return t.told != nil
}

// unwait takes a task out of those that wait for a key.
func (p *partition) unwait(t *task) {
	if t.awaits == "" {
		return
	}
	name := [2]string{t.Agent, t.awaits}
	delete(p.signals.waiting[name], t.ID)
	if len(p.signals.waiting[name]) == 0 {
		delete(p.signals.waiting, name)
	}
	t.awaits, t.told = "", nil
}

// awaiting are the tasks of a partition that wait for a signal which has not come.
func (s *signals) awaiting(partition int) []finding {
	var all []finding
	for _, tasks := range s.waiting {
		for _, t := range tasks {
			if t.told == nil && t.claim == nil {
				all = append(all, finding{partition: partition, member: t.Agent + ":" + t.ID, agent: t.Agent, id: t.ID})
			}
		}
	}
	return all
}
