package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// The daemon: its settings, its start and its end.

// Defaults of Config.
// Tick bounds how late the work of a dead process is found while others work. Safety bounds
// what a lost wake-up costs an idle daemon.
const (
	DefaultTick   = time.Second
	DefaultSafety = 5 * time.Second
	DefaultGrace  = 30 * time.Second
	DefaultPatrol = 5 * time.Second
)

// Config says how a [Daemon] works. Every zero is a good default.
type Config struct {
	// Tick is how long the daemon sleeps at most while there is work, so that the tasks of a process that died are found
	// soon, and when it has no Waker: DefaultTick if zero.
	Tick time.Duration
	// Safety is how long it sleeps at most when nothing is going on, in case a wake-up is lost: DefaultSafety if zero.
	Safety time.Duration
	// Grace is how long handlers may continue after Stop was called. Then their contexts are cancelled and
	// their tasks released, uncharged: DefaultGrace if zero.
	Grace time.Duration
	// Patrol is how often the daemon audits a page of the store, and repairs tasks that would have stopped silently: DefaultPatrol
	// if zero; never if negative. While it runs nothing it does so twelve times less often.
	Patrol time.Duration
	// Waker announces when work falls due earlier than expected: the scheduler's store if nil, where it can. Without one the daemon looks every Tick.
	Waker store.Waker
	// Partitions are the partitions to run tasks of; nil for all.
	Partitions []int
	// Agents, if not nil, makes the daemon run these agents only, and those that are registered later; it excludes
	// Partitions. With one agent nothing else is needed to run an agent of one's own.
	Agents []string
	// OnError is called with the error of each pull that had one: a *core.RunsError if handlers failed. It must not block, and
	// is never called twice at a time.
	OnError func(error)
	// Logger gets a line when the store is away and one when it is back. Nothing is logged if nil.
	Logger *slog.Logger
	// Clock is core.SystemClock if nil.
	Clock core.Clock
}

// A negative Patrol stays negative: that is how it is turned off.
func (c Config) withDefaults() Config {
	c.Tick = cmp.Or(c.Tick, DefaultTick)
	c.Safety = cmp.Or(c.Safety, DefaultSafety)
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.Patrol = cmp.Or(c.Patrol, DefaultPatrol)
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = core.SystemClock{}
	}
	return c
}

// Zeros have become defaults by then, so a Safety below Tick was chosen.
func (c Config) validate() error {
	switch {
	case c.Tick < 0:
		return fmt.Errorf("daemon: Tick must not be negative, got %s", c.Tick)
	case c.Safety < c.Tick:
		return fmt.Errorf("daemon: Safety must be at least Tick (%s), got %s", c.Tick, c.Safety)
	case c.Grace < 0:
		return fmt.Errorf("daemon: Grace must not be negative, got %s", c.Grace)
	case c.Agents != nil && c.Partitions != nil:
		return errors.New("daemon: set Agents or Partitions, not both")
	}
	return nil
}

// Daemon runs the due tasks of all agents of a store. It is safe for concurrent use.
// Run or Start begins it, and it can be started again after it has ended.
type Daemon struct {
	scheduler *core.Scheduler
	config    Config
	registry  *registry     // nil for all agents
	pokes     chan struct{} // the registry has changed

	// mu guards the fields below; the loop has its own state, which only its goroutine touches.
	mu    sync.Mutex
	stop  context.CancelFunc // ends the run; nil unless running
	ended chan struct{}      // closed when the run has ended; nil unless running or stopping
	away  error              // why the store could not be used lately
}

// New makes a daemon for a scheduler. It fails if a field of config makes no sense, naming it.
func New(s *core.Scheduler, config Config) (*Daemon, error) {
	if s == nil {
		return nil, errors.New("daemon: a scheduler is required")
	}
	config = config.withDefaults()
	if config.Waker == nil {
		config.Waker = s.Waker()
	}
	if err := config.validate(); err != nil {
		return nil, err
	}
	d := &Daemon{scheduler: s, config: config, pokes: make(chan struct{}, 1)}
	if config.Agents != nil {
		// Ids are checked here, as a pull would otherwise fail for all agents because of one.
		if err := checkAgents(config.Agents); err != nil {
			return nil, err
		}
		d.registry = &registry{changed: d.poke, members: map[string]*member{}}
		d.registry.add(config.Agents)
	}
	return d, nil
}

// RegisterAgent adds agents to those that the daemon runs, at once if it is running. It fails with [ErrAllAgents] unless
// Config.Agents is set, and with a *[core.InvalidError], adding none, if one is no agent's id. Agents that are registered
// already stay unchanged.
func (d *Daemon) RegisterAgent(agents ...string) error {
	if err := checkAgents(agents); err != nil {
		return err
	}
	return d.registered((*registry).add, agents)
}

// checkAgents names the first invalid id.
func checkAgents(agents []string) error {
	for _, a := range agents {
		if err := core.CheckAgent(a); err != nil {
			return fmt.Errorf("daemon: register %q: %w", a, err)
		}
	}
	return nil
}

// UnregisterAgent takes agents out of those that the daemon runs. A tick that is under way continues to its end.
func (d *Daemon) UnregisterAgent(agents ...string) error {
	return d.registered((*registry).remove, agents)
}

// MarkDirty notes that something may be due for these agents now. It is for hosts whose store has no wake-ups, or that know
// sooner; a daemon finds due work without it.
func (d *Daemon) MarkDirty(agents ...string) error { return d.registered((*registry).mark, agents) }

// registered changes the registry, if there is one. The change wakes the loop by itself.
func (d *Daemon) registered(change func(*registry, []string), agents []string) error {
	if d.registry == nil {
		return ErrAllAgents
	}
	change(d.registry, agents)
	return nil
}

// poke wakes the loop, if one runs; a full channel means that a wake-up is already pending.
func (d *Daemon) poke() {
	select {
	case d.pokes <- struct{}{}:
	default:
	}
}

// The errors of a call at the wrong time, or to a daemon of another kind.
// They are compared with errors.Is.
var (
	ErrAllAgents  = errors.New("daemon: this daemon runs all agents; set Config.Agents to register single ones")
	ErrRunning    = errors.New("daemon: already running")
	ErrNotRunning = errors.New("daemon: not running")
)

// Run runs due tasks until ctx is done or Stop is called. Then it claims nothing more, gives running handlers their
// grace, and returns nil once all have ended and their outcomes are stored. Any other error is one that no repetition
// can mend, such as a partition that does not exist. It fails with [ErrRunning] when the daemon runs already.
// One daemon can run once at a time; several of them may share a store, in one process or in many.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, err := d.begin(ctx)
	if err != nil {
		return err
	}
	return d.serve(ctx)
}

// Start is Run in the background, ended by Stop, or by an error that is passed to Config.OnError.
func (d *Daemon) Start() error {
	ctx, err := d.begin(context.Background()) //nolint:forbidigo // it outlives whoever starts it: Stop ends it
	if err != nil {
		return err
	}
	go func() { _ = d.serve(ctx) }() // OnError has the error
	return nil
}

// Stop ends the daemon as the end of Run's context does, and waits for it. If ctx is done first it returns its error,
// while the daemon still stops. It fails with [ErrNotRunning] when the daemon does not run or was stopped before.
// A second Stop finds no stop function, and fails at once instead of waiting again.
func (d *Daemon) Stop(ctx context.Context) error {
	d.mu.Lock()
	// Readiness ends here, before the handlers have ended, so that a load balancer sends nothing more.
	stop, ended := d.stop, d.ended
	d.stop = nil
	d.mu.Unlock()
	if stop == nil {
		return ErrNotRunning
	}
	stop()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ready is nil while the daemon runs and claims tasks, as far as its last pull knows: it calls no store itself. It is not while
// the store is away, or while too many handlers ignore their cancelled contexts: then it is a *[model.AbandonedError], and only
// a restart helps. Partitions that are away while others answer leave it ready, as no other process could serve them either:
// the scheduler's Ready names them.
// A load balancer may ask every second, from many places.
func (d *Daemon) Ready() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop == nil {
		return ErrNotRunning
	}
	if stuck, ok := errors.AsType[*model.AbandonedError](d.scheduler.Ready()); ok {
		return stuck
	}
	return d.away
}

// begin marks the daemon as running; the context it returns is done when the daemon has to end.
func (d *Daemon) begin(ctx context.Context) (context.Context, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// ended is set until the last handler has returned, so a daemon that still stops cannot be started.
	if d.ended != nil {
		return nil, ErrRunning
	}
	ctx, d.stop = context.WithCancel(ctx)
	d.ended, d.away = make(chan struct{}), nil
	return ctx, nil
}

// serve runs the loop, and lets Stop return when it has ended.
func (d *Daemon) serve(ctx context.Context) error {
	err := newLoop(d).run(ctx)
	d.scheduler.Retire(context.WithoutCancel(ctx)) // that has ended by now
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.ended)
	d.stop, d.ended = nil, nil
	return err
}

// setAway remembers why the store cannot be used, for Ready; nil when it can.
func (d *Daemon) setAway(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = err
}
