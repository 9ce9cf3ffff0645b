package core

import (
	"context"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// A task whose run lost its process is a suspect: it may have ended the process, or have been beside the one that did. It runs
// alone from then on, with nothing else in its process, until a run of it ends. Only what happens to it then counts: a poisonous
// task takes nobody with it, and its neighbours are cleared by their next run.

// soloist is a run that waits until it is the only one in the process.
type soloist struct {
	claimed *Claimed
	turn    chan struct{} // closed when it may start
}

// solo is who runs alone in the process, and who waits for that.
type solo struct {
	now     *Claimed
	begun   time.Time // when their turn began; zero while it is not theirs
	waiting []*soloist
	others  time.Time // until then it is the others' turn: for as long as theirs took
	planned bool      // somebody looks again when that is over
}

// stand puts a run among those that wait to be alone: behind those that have lost as many processes as it, or fewer. So the
// innocent are cleared first, and one that was alone when its process was killed by somebody is not the next to be so.
func (s *slots) stand(c *Claimed) *soloist {
	w := &soloist{claimed: c, turn: make(chan struct{})}
	s.mu.Lock()
	o := &s.solo
	o.waiting = append(o.waiting, w)
	for i := len(o.waiting) - 1; i > 0 && o.waiting[i-1].claimed.Crashes > c.Crashes; i-- {
		o.waiting[i], o.waiting[i-1] = o.waiting[i-1], w
	}
	s.serve()
	s.mu.Unlock()
	return w
}

// alone waits until nothing else runs in the process, and has taken a slot then beside which no other is granted. It is false if
// ctx is done before.
func (s *slots) alone(ctx context.Context, w *soloist) bool {
	c := w.claimed
	select {
	case <-w.turn:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.solo.waiting, w); i >= 0 {
		s.solo.waiting = slices.Delete(s.solo.waiting, i, i+1)
	} else { // its turn came as ctx was done
		s.count(c.Kind, c.Level, -1)
		s.left(c)
	}
	s.freed()
	return false
}

// shut reports whether nothing may be granted, as a run is alone or is about to be, and lets the next one start once nothing
// else runs. The mutex is held.
func (s *slots) shut() bool {
	now := s.clock.Now()
	switch {
	case s.solo.now != nil:
		return true
	case len(s.solo.waiting) == 0:
		return false
	case now.Before(s.solo.others):
		if !s.solo.planned {
			s.solo.planned = true
			s.clock.AfterFunc(s.solo.others.Sub(now), func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.solo.planned = false
				s.serve()
			})
		}
		return false
	case s.used > 0:
		return true
	}
	w := s.solo.waiting[0]
	s.solo.waiting = s.solo.waiting[1:]
	s.solo.now = w.claimed
	if s.solo.begun.IsZero() {
		s.solo.begun = now
	}
	s.count(w.claimed.Kind, w.claimed.Level, 1)
	close(w.turn)
	return true
}

// soloTurn is how long suspects run one after the other, while there are any, before it is the turn of the others, who have as
// long: so that not each of them waits until nothing else runs.
const soloTurn = 250 * time.Millisecond

// left notes that a run has ended, which may have been alone. The mutex is held.
func (s *slots) left(c *Claimed) {
	if s.solo.now != c {
		return
	}
	s.solo.now = nil
	now := s.clock.Now()
	if took := now.Sub(s.solo.begun); took >= soloTurn || len(s.solo.waiting) == 0 {
		s.solo.begun, s.solo.others = time.Time{}, now.Add(took)
	}
}

// aside runs a suspect when nothing else runs in the process. It holds no slot until then; its lease is kept.
func (p *pull) aside(h *handler, r *run) {
	p.s.slots.give(r.claimed)
	w := p.s.slots.stand(r.claimed) // here, so that they have their turns in the order in which they were claimed
	p.calls.Go(func() {
		if !p.s.slots.alone(p.claiming, w) {
			p.release(r)
			return
		}
		held, err := p.suspect(r)
		switch {
		case err != nil:
			p.s.slots.give(r.claimed)
			p.release(r)
		case !held:
			p.s.slots.give(r.claimed)
			r.conclude(ErrLeaseLost, 0, false)
		default:
			r.alone = true
			p.start(h, []*run{r})
		}
	})
}

// suspect counts a crash of a run before it starts: if its process dies, nobody is left to do so. It reports whether the lease is
// held still.
func (p *pull) suspect(r *run) (bool, error) {
	c := r.claimed
	ctx, cancel := p.call(longestCall)
	defer cancel()
	extended, err := p.s.store.Extend(ctx, []store.Extension{{
		Partition: c.Partition, Fence: c.Fence, Lease: p.lease(r),
		Progress: []store.Progress{{Run: c.Run, State: r.state.Encode(), Crashes: c.Crashes + 1}},
	}})
	if err != nil {
		return false, err
	}
	return extended[0].Held, extended[0].Err
}
