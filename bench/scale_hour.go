package main

// The hours of a fleet: at rest, and minutes in which as much is due as in such a minute of a day.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
)

// window is a stretch of real time in which a daemon runs what is due.
type window struct {
	name   string
	night  bool
	factor int // how many times as much is due as the fleet has
	start  time.Time
	length time.Duration
}

// until is how long it is from now to a part of a stretch after the start, not below zero: serveWindow fails if the start has passed.
func (w *window) until(part float64, stretch time.Duration) time.Duration {
	return max(time.Until(w.start.Add(time.Duration(part*float64(stretch)))), 0)
}

// winFound is what was found in a window.
type winFound struct {
	Name     string  `json:"name"`
	Night    bool    `json:"night"`
	Factor   int     `json:"factor"`
	Seconds  float64 `json:"seconds"`
	Runs     float64 `json:"runs_a_second"`
	Commands float64 `json:"commands_a_run"`
	Sent     float64 `json:"sent_a_run"` // calls of clients, without the commands inside scripts
	Bytes    float64 `json:"bytes_a_run"`
	RedisUS  float64 `json:"redis_us_a_run"`
	ClientUS float64 `json:"client_us_a_run"`
	LateP50  float64 `json:"late_p50_ms"`
	LateP99  float64 `json:"late_p99_ms"`
	PingP50  float64 `json:"ping_p50_ms"`
	PingP99  float64 `json:"ping_p99_ms"`
	Longest  float64 `json:"longest_script_ms"`
}

func (b *bench) windows() []*window {
	return []*window{
		{name: "by day", factor: 1, length: b.scaleWindow},
		{name: "at night", night: true, factor: 1, length: b.scaleWindow},
		{name: "at night, ten times as many due", night: true, factor: 10, length: b.scaleWindow},
	}
}

// serveFleet measures the fleet at rest, alone and with a daemon, and then in each window.
func (b *bench) serveFleet(ctx context.Context, d *duly, f *fleet) (err error) {
	alone, err := b.rest(ctx)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	host, err := daemon.New(d.Scheduler, daemon.Config{Waker: d.store, OnError: func(err error) {
		select {
		case failed <- err:
		default:
		}
	}})
	if err != nil {
		return fmt.Errorf("new daemon: %w", err)
	}
	if err := host.Start(); err != nil { //nolint:contextcheck // it runs until it is stopped
		return fmt.Errorf("start daemon: %w", err)
	}
	err = b.serveRest(ctx, alone)
	for _, w := range b.windows() {
		if err == nil {
			err = b.serveWindow(ctx, d, f, w)
		}
	}
	err = errors.Join(err, host.Stop(context.WithoutCancel(ctx)))
	select {
	case e := <-failed:
		return errors.Join(err, e)
	default:
		return err
	}
}

// rest is what the server does while nothing is due.
func (b *bench) rest(ctx context.Context) (spent, error) {
	return b.redis.metered(ctx, func() error {
		pause(ctx, b.scaleRest)
		return ctx.Err()
	})
}

// serveRest measures it with a daemon: first what it costs, then what is sent, as the watching of that costs more.
func (b *bench) serveRest(ctx context.Context, alone spent) error {
	if !pause(ctx, b.idleSettle) {
		return ctx.Err()
	}
	served, err := b.rest(ctx)
	if err != nil {
		return err
	}
	stop, err := b.redis.countSent(ctx)
	if err != nil {
		return err
	}
	pause(ctx, b.scaleRest)
	sent, err := stop()
	seconds := b.scaleRest.Seconds()
	b.scale.Rest = restFound{served.commands / seconds, float64(sent) / seconds, served.redis / seconds, alone.redis / seconds}
	return errors.Join(err, ctx.Err())
}

// storeRate is how many tasks a second can surely be stored before a window, on a machine that is busy with other things too.
const storeRate = 1000

// serveWindow makes tasks due in a window, and measures the daemon in it: in its first half what it costs, then what another
// client sees, then what is sent, as each disturbs the one before.
func (b *bench) serveWindow(ctx context.Context, d *duly, f *fleet, w *window) error {
	moved := 0
	for _, s := range f.sorts {
		if s.rhythm == polls {
			moved += s.agents
		}
		moved += int(s.perSecond(w.night) * w.length.Seconds() * float64(w.factor))
	}
	w.start = time.Now().UTC().Add(2*time.Second + time.Duration(moved)*time.Second/storeRate).Truncate(time.Second)
	_, _ = fmt.Fprintf(b.progress, "  %s of it, %s: %s to be due\n", w.length, w.name, digits(moved))
	for _, s := range f.sorts {
		if s.perSecond(w.night) > 0 {
			if err := s.move(ctx, d, w); err != nil {
				return err
			}
		}
	}
	left := time.Until(w.start)
	_, _ = fmt.Fprintf(b.progress, "    stored %s before\n", left.Round(time.Millisecond))
	if left <= 0 {
		return fmt.Errorf("the tasks of a window were stored %s too late", -left)
	}
	if !pause(ctx, left) {
		return ctx.Err()
	}
	if err := b.redis.watchSlow(ctx); err != nil {
		return err
	}
	begun := f.runs.Load()
	found, err := b.meterWindow(ctx, f, w)
	if err != nil {
		return err
	}
	if found.Longest, err = b.redis.longestSlow(ctx); err != nil {
		return err
	}
	pause(ctx, time.Until(w.start.Add(w.length)))
	b.scale.Windows = append(b.scale.Windows, found)
	want := f.perSecond(w.night) * w.length.Seconds() * float64(w.factor)
	if runs := float64(f.runs.Load() - begun); !near(runs, want) {
		return errors.Join(ctx.Err(), fmt.Errorf("%s: %.0f runs where there should be about %.0f", w.name, runs, want))
	}
	return ctx.Err()
}

// near reports whether there were about as many runs as there should be: a window cuts off runs at both of its ends, which weighs
// more where there are few.
func near(runs, want float64) bool { return math.Abs(runs-want) <= 0.15*want+5*math.Sqrt(want) }

// meterWindow measures the three parts of a window.
func (b *bench) meterWindow(ctx context.Context, f *fleet, w *window) (winFound, error) {
	found := winFound{Name: w.name, Night: w.night, Factor: w.factor, Seconds: w.length.Seconds()}
	sleep := func(part time.Duration) error {
		pause(ctx, part)
		return ctx.Err()
	}
	begun := f.runs.Load()
	bytes, err := b.redis.number(ctx, "stats", "total_net_input_bytes", "total_net_output_bytes")
	if err != nil {
		return found, err
	}
	f.watch(true)
	s, err := b.redis.metered(ctx, func() error { return sleep(w.length / 2) })
	late, n := f.watch(false), math.Max(float64(f.runs.Load()-begun), 1)
	if err != nil {
		return found, err
	}
	after, err := b.redis.number(ctx, "stats", "total_net_input_bytes", "total_net_output_bytes")
	if err != nil {
		return found, err
	}
	found.Runs, found.Commands, found.Bytes = n/s.wall.Seconds(), s.commands/n, (after-bytes)/n
	found.RedisUS, found.ClientUS = s.redis/n, s.client/n
	found.LateP50, found.LateP99 = quantile(late, 0.5), quantile(late, 0.99)
	pings, err := b.redis.pinged(ctx, func() error { return sleep(w.length / 4) })
	if err != nil {
		return found, err
	}
	found.PingP50, found.PingP99 = quantile(pings, 0.5), quantile(pings, 0.99)
	begun = f.runs.Load()
	stop, err := b.redis.countSent(ctx)
	if err != nil {
		return found, err
	}
	err = sleep(w.length / 5) // the rest is for what the measuring itself takes
	sent, stopErr := stop()
	found.Sent = float64(sent) / math.Max(float64(f.runs.Load()-begun), 1)
	return found, errors.Join(err, stopErr)
}
