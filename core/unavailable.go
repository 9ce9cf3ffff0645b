package core

// A partition that does not answer while others do is away: pulls continue without it, and probe it in the background.

import (
	"context"
	"log/slog"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// skipUnavailable leaves out the targets that are known to be away, unless all are: then each is asked, as no other work would wait
// for it.
func (p *pull) skipUnavailable() {
	if p.s.absences.Count.Load() == 0 {
		return
	}
	p.outlook.mu.Lock()
	defer p.outlook.mu.Unlock()
	here := false
	for _, t := range p.outlook.targets {
		t.away = p.s.absences.Of(t.partition)
		here = here || t.away == nil
	}
	p.someUnavailable.Store(here)
	for _, t := range p.outlook.targets {
		if !here {
			t.away = nil
		}
	}
}

// markUnavailable leaves a target out that did not answer while others did. The mutex of the outlook is held.
func (p *pull) markUnavailable(t *target, err error) {
	t.away = err
	p.someUnavailable.Store(true)
	if p.outlook.series != nil {
		*t.seen = seen{} // its earlier answer is no reason to wake for it
	}
	if p.s.absences.Failed(t.partition, err, p.s.config.Clock.Now()) {
		p.s.config.Logger.WarnContext(p.ctx, "a partition of the store does not answer; the others are served",
			slog.Int("partition", t.partition), slog.Any("err", err))
	}
}

// markAvailable notes that a target has answered. The mutex of the outlook is held.
func (p *pull) markAvailable(t *target) {
	t.away = nil
	if p.s.absences.Back(t.partition) {
		p.s.config.Logger.InfoContext(p.ctx, "a partition of the store answers again", slog.Int("partition", t.partition))
	}
}

// markAllUnavailable leaves targets out that a call has failed for as a whole. It fails if no other target is left: then the store is
// away, not a part of it.
func (p *pull) markAllUnavailable(targets []*target, err error) error {
	p.outlook.mu.Lock()
	defer p.outlook.mu.Unlock()
	for _, t := range targets {
		t.away = err
	}
	for _, t := range p.outlook.targets {
		if t.away == nil && !t.asked.IsZero() {
			for _, t := range targets {
				p.markUnavailable(t, err)
			}
			return nil
		}
	}
	if p.outlook.series != nil {
		p.outlook.series.forget() // when the store is back, it may be another one
	}
	return err
}

// probeUnavailable asks the targets that are away whether they are back, each in a goroutine of its own, so that one that hangs delays
// nothing. Those that are back, as this or another pull of the process has found, are looked at next.
func (p *pull) probeUnavailable() {
	if !p.someUnavailable.Load() {
		return
	}
	now := p.s.config.Clock.Now()
	p.outlook.mu.Lock()
	defer p.outlook.mu.Unlock()
	missing := false
	for _, t := range p.outlook.targets {
		switch {
		case t.away == nil:
			continue
		case p.s.absences.Of(t.partition) == nil:
			t.away, t.asked = nil, time.Time{}
			continue
		case p.s.absences.TakeProbe(t.partition, now):
			p.probes.Go(func() { p.probe(t) })
		}
		missing = true
	}
	p.someUnavailable.Store(missing)
}

// probe asks a partition that was away, concurrently with the pull's other work. If it answers, the next round
// claims from it.
func (p *pull) probe(t *target) {
	ctx, cancel := p.call(base.LongestLook / 2)
	defer cancel()
	err := p.s.lookAt(ctx, t.partition)
	p.outlook.mu.Lock()
	defer p.outlook.mu.Unlock()
	if err != nil {
		p.markUnavailable(t, err)
		return
	}
	p.markAvailable(t)
	t.asked = time.Time{}
	p.recovered.Add(1)
}

// claimRecovered claims from partitions that have come back since the last rounds, until no question to one is under way.
func (p *pull) claimRecovered() error {
	for served := int64(0); ; {
		p.probes.Wait()
		back := p.recovered.Load()
		if back == served {
			return nil
		}
		served = back
		if err := p.rounds(); err != nil {
			return err
		}
	}
}

// lookAt looks at one partition.
func (s *Scheduler) lookAt(ctx context.Context, partition int) error {
	looks, err := s.store.Look(ctx, []store.LookRequest{{Partition: partition, Kinds: claimed(s)}})
	if err == nil {
		err = looks[0].Err
	}
	return err
}
