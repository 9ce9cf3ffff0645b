package core

// What this process runs, and reports about itself.

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// presence is what this process reports about itself, and when it did so last.
type presence struct {
	mu   sync.Mutex
	said time.Time
	full bool      // it reported that all its slots were in use
	turn time.Time // when that report last changed
	left map[string]model.LeftKind
}

// self is the current report about this process.
func (s *Scheduler) self() model.Process {
	st := s.slots.Stats()
	p := model.Process{
		Name: s.config.Name, Kinds: s.handled(), Slots: st.Total, InUse: st.InUse, Urgent: st.Urgent, Usual: st.Usual,
		Abandoned: st.Abandoned, Running: s.pulls.running(), At: s.base.StoreNow().Time(),
	}
	for kind, k := range st.Kinds {
		if k.InUse >= k.Total {
			p.Full = append(p.Full, kind)
		}
	}
	slices.Sort(p.Full)
	s.presence.mu.Lock()
	defer s.presence.mu.Unlock()
	maps.DeleteFunc(s.presence.left, func(_ string, l model.LeftKind) bool { return p.At.Sub(l.At) > base.LeftTold })
	p.Left = maps.Clone(s.presence.left)
	return p
}

// announce stores what this process runs, unless it has just done so. That its slots are all in use, or no longer, it stores at once: it
// explains to callers why a task waits.
func (s *Scheduler) announce(ctx context.Context, every, keep time.Duration) {
	if s.config.Presence == nil {
		return
	}
	now, full := s.config.Clock.Now(), s.slots.Full()
	s.presence.mu.Lock()
	turns := full != s.presence.full && now.Sub(s.presence.turn) >= base.AnnounceEvery
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

// Announce stores what this process runs, unless it has done so within the last 20 seconds: a host that lives on, such as a daemon, calls it
// after each pull, so that it is among [Scheduler.Processes] while it is idle too. It costs one command, and does nothing without Config.Presence.
// The runs counted since the last time are added to what Config.Recent keeps, every five seconds; what waits, and what of budgets is used, is
// measured every five minutes by one of all processes.
func (s *Scheduler) Announce(ctx context.Context) {
	s.runCounters.Measure(ctx)
	s.runCounters.Flush(ctx, inspect.TallyEvery)
	if s.config.Presence == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, base.LongestLook)
	defer cancel()
	s.announce(ctx, base.LiveEvery, base.AnnounceFor)
}

// Retire takes back what this process has announced: a host that has called Announce calls it when it ends, so that the process is not
// taken for an idle one that leaves work undone. It costs one command, and does nothing where nothing was announced.
func (s *Scheduler) Retire(ctx context.Context) {
	s.runCounters.Flush(ctx, 0)
	s.presence.mu.Lock()
	said := !s.presence.said.IsZero()
	s.presence.said, s.presence.full = time.Time{}, false
	s.presence.mu.Unlock()
	if s.config.Presence == nil || !said {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, base.LongestLook)
	defer cancel()
	if err := s.config.Presence.Announce(ctx, s.nonce, []byte("{}"), 0); err != nil {
		s.config.Logger.DebugContext(ctx, "cannot take back in the store what this process said", slog.Any("err", err))
	}
}

// tellLeft announces which kinds a pull has left for lack of time.
func (p *pull) tellLeft() {
	now := p.s.config.Clock.Now()
	p.s.presence.mu.Lock()
	if p.s.presence.left == nil {
		p.s.presence.left = map[string]model.LeftKind{}
	}
	for _, kind := range p.s.handled() {
		if !p.fits(kind, now) {
			p.s.presence.left[kind] = model.LeftKind{Usual: p.s.runTimes.Percentile90(kind), Had: p.end.Sub(p.begun), At: p.s.base.StoreNow().Time()}
		}
	}
	p.s.presence.mu.Unlock()
	p.announce(0, base.LeftTold)
}

// announce stores what the process runs, within the pull.
func (p *pull) announce(every, keep time.Duration) {
	if p.s.config.Presence == nil {
		return
	}
	ctx, cancel := p.call(base.LongestLook)
	defer cancel()
	p.s.announce(ctx, every, keep)
}

// mostRunning is how many of its runs a process announces: the oldest, as operators look for those.
const mostRunning = 10

// openPulls are the pulls under way. They cost a pull two steps, and a task nothing.
type openPulls struct {
	mu  sync.Mutex
	all map[*pull]struct{}
}

func (o *openPulls) add(p *pull) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[*pull]struct{}{}
	}
	o.all[p] = struct{}{}
}

func (o *openPulls) remove(p *pull) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, p)
}

// each calls f for each run under way.
func (o *openPulls) each(f func(r *run, begun time.Time)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p := range o.all {
		p.openCalls.mu.Lock()
		for _, c := range p.openCalls.all {
			for _, r := range c.runs {
				f(r, c.begun)
			}
		}
		p.openCalls.mu.Unlock()
	}
}

// ofOneAgent is how many runs the agent has that has the most.
func (o *openPulls) ofOneAgent() (most int) {
	of := map[string]int{}
	o.each(func(r *run, _ time.Time) {
		of[r.claimed.Agent]++
		most = max(most, of[r.claimed.Agent])
	})
	return most
}

// running are the oldest runs under way.
func (o *openPulls) running() []model.RunningTask {
	var all []model.RunningTask
	o.each(func(r *run, begun time.Time) {
		all = append(all, model.RunningTask{Agent: r.claimed.Agent, ID: r.claimed.ID, Kind: r.claimed.Kind, Since: begun})
	})
	store.Sort(all, func(a, b *model.RunningTask) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.ID, b.ID))
	})
	return slices.Clip(all[:min(len(all), mostRunning)])
}
