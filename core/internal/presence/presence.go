// Package presence is what a process reports about itself in the store, for callers and operators to see: what it runs, whether its slots are all in use, and which
// kinds it leaves for lack of time.
package presence

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Presence is what this process reports about itself, and when it did so last. Its exported fields are set before it is used.
type Presence struct {
	Base    *base.Base
	Slots   *slots.Slots
	Running func() []model.RunningTask // the oldest runs under way

	others atomic.Int64 // processes that had reports when this one last did

	mu    sync.Mutex
	since time.Time // the first report
	said  time.Time
	full  bool      // it reported that all its slots were in use
	turn  time.Time // when that report last changed
	left  map[string]model.LeftKind
}

// Self is the current report about this process.
func (r *Presence) Self() model.Process {
	st := r.Slots.Stats()
	p := model.Process{
		Name: r.Base.Config.Name, Kinds: r.Base.Handled(), Slots: st.Total, InUse: st.InUse, Urgent: st.Urgent, Usual: st.Usual,
		Abandoned: st.Abandoned, Running: r.Running(), At: r.Base.StoreNow().Time(),
	}
	for kind, k := range st.Kinds {
		if k.InUse >= k.Total {
			p.Full = append(p.Full, kind)
		}
	}
	slices.Sort(p.Full)
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.left, func(_ string, l model.LeftKind) bool { return p.At.Sub(l.At) > base.LeftTold })
	p.Left = maps.Clone(r.left)
	return p
}

// Announce stores what this process runs, unless it has just done so, for some time. That its slots are all in use, or no longer, it stores at once: it
// explains to callers why a task waits. It does nothing without Config.Presence.
func (r *Presence) Announce(ctx context.Context, every, keep time.Duration) {
	c := &r.Base.Config
	if c.Presence == nil {
		return
	}
	now, full := c.Clock.Now(), r.Slots.Full()
	r.mu.Lock()
	turns := full != r.full && now.Sub(r.turn) >= base.AnnounceEvery
	early := !turns && !r.said.IsZero() && now.Sub(r.said) < every
	if !early {
		r.said = now
	}
	if r.since.IsZero() {
		r.since = now
	}
	// guard: newcomer
	known := now.Sub(r.since) >= base.LiveEvery // to the others, which have reported since
	if turns {
		r.full, r.turn = full, now
	}
	r.mu.Unlock()
	if early {
		return
	}
	info, err := json.Marshal(r.Self())
	var others int
	if err == nil {
		others, err = c.Presence.Announce(ctx, r.Base.Tag, info, keep)
	}
	if err == nil && known {
		r.others.Store(int64(others))
	}
	if err != nil {
		c.Logger.DebugContext(ctx, "cannot announce this process in the store", slog.Any("err", err))
	}
}

// Others is how many other processes were known when this one last reported: 0 until they know of it, too, or they would leave nothing to it while it
// leaves all to them.
func (r *Presence) Others() int { return int(r.others.Load()) }

// Retire takes back what this process has announced. It does nothing where nothing was announced.
func (r *Presence) Retire(ctx context.Context) {
	r.mu.Lock()
	said := !r.said.IsZero()
	r.since, r.said, r.full = time.Time{}, time.Time{}, false
	r.others.Store(0)
	r.mu.Unlock()
	c := &r.Base.Config
	if c.Presence == nil || !said {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, base.LongestLook)
	defer cancel()
	if _, err := c.Presence.Announce(ctx, r.Base.Tag, []byte("{}"), 0); err != nil {
		c.Logger.DebugContext(ctx, "cannot take back in the store what this process said", slog.Any("err", err))
	}
}

// Leave notes which of the kinds that have a handler a pull has left for lack of time: left says so of one. The next announcement has them.
func (r *Presence) Leave(left func(kind string) (model.LeftKind, bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == nil {
		r.left = map[string]model.LeftKind{}
	}
	for _, kind := range r.Base.Handled() {
		if l, is := left(kind); is {
			r.left[kind] = l
		}
	}
}
