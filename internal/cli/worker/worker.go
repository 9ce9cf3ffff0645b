// Package worker pulls runs from a server of duly and makes them in this process. It needs no Redis: all that it knows of a run comes with it.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
)

// Server is what lends runs, keeps them and takes them back.
type Server interface {
	ClaimRuns(ctx context.Context, claim operation.Claim) (operation.Lent, error)
	KeepRuns(ctx context.Context, keep operation.Keep) (operation.Kept, error)
	ReturnRuns(ctx context.Context, ends operation.Return) (operation.Returned, error)
}

// Config says what a worker runs, and how. All but Agents and Once is required.
type Config struct {
	Server      Server
	Handler     func(ctx context.Context, t *core.Task[json.RawMessage]) error // runs tasks of all kinds
	Kinds       []string
	Agents      []string // whose tasks; nil for all that the credential covers
	Concurrency int
	Lease       time.Duration
	Grace       time.Duration // for runs, once the worker is to stop
	Name        string
	Once        bool // claims once, and ends when what it got has ended
	Logger      *slog.Logger
	OnEvent     func(e core.Event) // gets the end of each run, also several at once
}

// How long calls wait and pause.
const (
	waitFor     = 20 * time.Second // for the first run of a claim, at the server
	claimWithin = waitFor + 30*time.Second
	callWithin  = 15 * time.Second
	firstPause  = 100 * time.Millisecond // while the server is away: the next are twice as long each, with a random part
	longest     = 15 * time.Second
	quick       = time.Second      // an empty answer to a claim that comes sooner is that of a server which is about to stop
	lastWithin  = 10 * time.Second // to return what has ended, once no program runs any more
)

// worker is a worker while it works.
type worker struct {
	Config

	stop    func()        // ends claims
	stops   func() bool   // whether it is to stop
	news    chan struct{} // a run has something to store
	changed chan struct{} // a run has ended, or a claim has, or the worker is to stop

	mu    sync.Mutex
	runs  map[*run]bool // until they are returned
	ended []*run        // of them, to be returned
	poll  bool          // a claim waits at the server
	last  bool          // no claim follows
	fatal error
	away  map[string]bool // calls that fail
	until time.Time       // when the worker gives up to return runs, as it is to stop; zero while a program runs
	all   sync.WaitGroup
}

// Run works until ctx is done; then it claims no more, lets runs end within the grace, and gives back what has not. It tries again for ever while the
// server is away, and returns the error of a server that refuses its credential or its claim.
func Run(ctx context.Context, c Config) error {
	// Calls about runs outlive the signal to stop, until all runs are returned.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	w := &worker{Config: c, news: make(chan struct{}, 1), changed: make(chan struct{}, 1), runs: map[*run]bool{}, away: map[string]bool{}}
	claims, stop := context.WithCancel(ctx)
	defer stop()
	w.stop, w.stops = stop, func() bool { return claims.Err() != nil }
	called := context.AfterFunc(ctx, func() {
		signal(w.changed)
		grace := time.AfterFunc(c.Grace, w.endRuns)
		context.AfterFunc(life, func() { grace.Stop() })
	})
	defer called()
	w.all.Go(func() { w.beat(life) })
	w.exchange(life, claims)
	end()
	w.all.Wait()
	return w.fatal
}

// signal leaves a signal, unless one is left already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// exchange returns runs that have ended and claims others, until it is to stop and all have been returned.
func (w *worker) exchange(ctx, claims context.Context) {
	for pause := firstPause; ; {
		ends, free, idle := w.next()
		switch {
		case idle:
			return
		case len(ends) > 0:
			switch err := w.giveBack(ctx, ends, free); {
			case err == nil:
				pause = firstPause
			case w.refused(err) || w.overdue():
				w.giveUp(err)
			case w.stops():
				pause = w.sleep(ctx, min(pause, quick))
			default:
				pause = w.sleep(claims, pause) // the signal to stop ends it
			}
		case free > 0:
			w.all.Go(func() { w.claim(ctx, claims, free) })
		default:
			<-w.changed
		}
	}
}

// next takes what there is to do: ends to be returned, and how many runs to claim. It is idle when nothing is left to do, and nothing may come.
func (w *worker) next() (ends []*run, free int, idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ends, w.ended = batch(w.ended)
	if !w.stops() && !w.poll && !w.last {
		free = min(w.Concurrency-len(w.runs)+len(ends), core.MaxLent)
	}
	if len(ends) == 0 && free > 0 {
		w.poll, w.last = true, w.Once
	}
	return ends, free, len(w.runs) == 0 && free == 0 && !w.poll
}

// overdue reports whether a worker that is to stop has tried for long enough to return runs, once none of its programs runs any more.
func (w *worker) overdue() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stops() || len(w.ended) < len(w.runs) {
		return false
	}
	if w.until.IsZero() {
		w.until = time.Now().Add(lastWithin)
	}
	return time.Now().After(w.until)
}

// giveUp leaves runs that have ended to their leases.
func (w *worker) giveUp(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Logger.Warn("runs that have ended could not be returned: they start again when their leases are over", slog.Int("runs", len(w.ended)), slog.Any("err", err))
	for _, r := range w.ended {
		delete(w.runs, r)
	}
	w.ended = nil
}

// claim waits for runs at the server, and tries again while that is away. What it gets is run by ctx.
func (w *worker) claim(ctx, claims context.Context, most int) {
	defer func() {
		w.mu.Lock()
		w.poll = false
		w.mu.Unlock()
		signal(w.changed)
	}()
	for pause := firstPause; !w.stops(); pause = w.sleep(claims, pause) {
		asked := time.Now()
		call, cancel := context.WithTimeout(claims, claimWithin)
		lent, err := w.Server.ClaimRuns(call, w.claimFor(most, !w.Once))
		cancel()
		switch {
		case err != nil && (w.stops() || w.refused(err)):
			return
		case w.answered("claim", err) != nil:
		case len(lent.Runs) > 0 || w.Once || time.Since(asked) > quick:
			w.begin(ctx, lent.Runs)
			return
		}
	}
}

// claimFor is what the worker asks for.
func (w *worker) claimFor(most int, waits bool) operation.Claim {
	c := operation.Claim{Kinds: w.Kinds, Agents: w.Agents, Most: most, Lease: operation.Duration(w.Lease), Worker: w.Name}
	if waits {
		c.Wait = waitFor.String()
	}
	return c
}

// refused reports whether an error does not pass by itself: the credential, or what it covers, or the claim is not right. Then the worker stops at
// once, as it could not return what its programs do.
func (w *worker) refused(err error) bool {
	e, is := errors.AsType[*remote.Error](err)
	code := core.CodeOf(err)
	if (!is || !e.Credential) && code != core.CodeForbidden && code != core.CodeInvalid {
		return false
	}
	w.mu.Lock()
	w.fatal = err
	w.mu.Unlock()
	w.stop()
	w.endRuns()
	return true
}

// answered logs that the calls of a sort fail, or are answered again: once for each change. It returns the error.
func (w *worker) answered(call string, err error) error {
	w.mu.Lock()
	was := w.away[call]
	w.away[call] = err != nil
	w.mu.Unlock()
	switch {
	case err != nil && !was && !errors.Is(err, context.Canceled): // which is the worker's own end
		w.Logger.Warn("the server does not answer as it should, and is called again until it does", slog.String("call", call), slog.Any("err", err))
	case err == nil && was:
		w.Logger.Info("the server answers again", slog.String("call", call))
	}
	return err
}

// sleep pauses, and returns the next pause.
func (*worker) sleep(ctx context.Context, pause time.Duration) time.Duration {
	t := time.NewTimer(pause/2 + rand.N(pause/2)) //nolint:gosec // jitter, not a secret
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return min(pause*2, longest)
}

// endRuns ends all programs.
func (w *worker) endRuns() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.runs {
		r.cancel(core.ErrStopping)
	}
}
