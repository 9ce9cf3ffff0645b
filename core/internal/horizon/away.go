package horizon

// A partition that does not answer while others do is away: pulls continue without it, and probe it in the background.

import (
	"context"
	"log/slog"
	"time"
)

// skipAway leaves out the targets that are known to be away, unless all are: then each is asked, as no other work would wait
// for it.
func (o *Outlook) skipAway() {
	if o.of.Absences.Count.Load() == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	here := false
	for _, t := range o.targets {
		t.away = o.of.Absences.Of(t.Partition)
		here = here || t.away == nil
	}
	o.someAway.Store(here)
	for _, t := range o.targets {
		if !here {
			t.away = nil
		}
	}
}

// markAway leaves a target out that did not answer while others did. The mutex of the outlook is held.
func (o *Outlook) markAway(ctx context.Context, t *Target, err error) {
	t.away = err
	o.someAway.Store(true)
	if o.series != nil {
		*t.seen = seen{} // its earlier answer is no reason to wake for it
	}
	if o.of.Absences.Failed(t.Partition, err, o.of.Base.Config.Clock.Now()) {
		o.of.Base.Config.Logger.WarnContext(ctx, "a partition of the store does not answer; the others are served",
			slog.Int("partition", t.Partition), slog.Any("err", err))
	}
}

// markBack notes that a target has answered. The mutex of the outlook is held.
func (o *Outlook) markBack(ctx context.Context, t *Target) {
	t.away = nil
	if o.of.Absences.Back(t.Partition) {
		o.of.Base.Config.Logger.InfoContext(ctx, "a partition of the store answers again", slog.Int("partition", t.Partition))
	}
}

// AllAway leaves targets out that a call has failed for as a whole. It fails if no other target is left: then the store is
// away, not a part of it.
func (o *Outlook) AllAway(ctx context.Context, targets []*Target, err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range targets {
		t.away = err
	}
	for _, t := range o.targets {
		if t.away == nil && !t.asked.IsZero() {
			for _, t := range targets {
				o.markAway(ctx, t, err)
			}
			return nil
		}
	}
	if o.series != nil {
		o.series.forget() // when the store is back, it may be another one
	}
	return err
}

// Prober asks a partition whether it is back.
type Prober interface {
	LookAt(partition int) error
}

// Probe asks the targets that are away whether they are back, each in a goroutine of its own, so that one that hangs delays
// nothing. Those that are back, as this or another pull of the process has found, are looked at next.
func (o *Outlook) Probe(ctx context.Context, by Prober) {
	if !o.someAway.Load() {
		return
	}
	now := o.of.Base.Config.Clock.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	missing := false
	for _, t := range o.targets {
		switch {
		case t.away == nil:
			continue
		case o.of.Absences.Of(t.Partition) == nil:
			t.away, t.asked = nil, time.Time{}
			continue
		case o.of.Absences.TakeProbe(t.Partition, now):
			o.probes.Go(func() { o.probe(ctx, t, by) })
		}
		missing = true
	}
	o.someAway.Store(missing)
}

// probe asks a partition that was away, concurrently with the pull's other work. If it answers, the next round
// claims from it.
func (o *Outlook) probe(ctx context.Context, t *Target, by Prober) {
	err := by.LookAt(t.Partition)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.markAway(ctx, t, err)
		return
	}
	o.markBack(ctx, t)
	t.asked = time.Time{}
	o.recovered.Add(1)
}

// Recovered is how many partitions have come back while the pull ran, once no question to one is under way.
func (o *Outlook) Recovered() int64 {
	o.probes.Wait()
	return o.recovered.Load()
}
