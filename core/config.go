package core

// The settings of a scheduler and of a kind: defaults, bounds, how a kind inherits, and what a process declares in the store.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/bounding"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/server"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// urgentShare is the share of the slots that is kept for urgent tasks: one in so many.
const urgentShare = 5

// DefaultAhead is how long before their time tasks may be claimed: see [Config].
const DefaultAhead = 150 * time.Millisecond

// Config says how a [Scheduler] works. Every zero is a good default.
type Config struct {
	// Name names this process in the history of the tasks that it runs: the host's name and the process id if empty. At most
	// 64 bytes are kept.
	Name string
	// Concurrency is the most runs in flight in this process, over all kinds and pulls: DefaultConcurrency if zero.
	Concurrency int
	// Urgent is how many of Concurrency are kept for tasks of level 1, so that slow work does not keep urgent work waiting:
	// one in five if zero, none if negative.
	Urgent int
	// MaxAbandoned is how many handlers may ignore their cancelled context before the process claims nothing more, as each
	// of them still uses memory and more: as many as Concurrency if zero, any number if negative.
	MaxAbandoned int
	// Margin is how long before its context's deadline a pull has to have ended: DefaultMargin if zero. A kind is left when
	// less time than its runs usually take remains, unless nearly all of the pull's time does.
	Margin time.Duration
	// Kinds are settings by the name of a kind. A kind that is not named has the ones of Default.
	Kinds map[string]KindConfig
	// Default are the settings of kinds that are not in Kinds, and of fields that they leave zero.
	Default KindConfig
	// Limits bound how many tasks run at once and start within a time over all processes of the store: see [Limit]. A process sets them
	// when it first pulls; a limit that was set by hand for the same tasks counts until then. If the store loses them they are set again before anything
	// starts: see [Scheduler.Define].
	Limits []Limit
	// Budgets bound what runs use within an hour, a day or a month over all processes of the store: see [Budget]. They are set as Limits are.
	Budgets []Budget
	// MaxCrashes is how many runs of a task in a row may die with their process before the next such death ends the task:
	// DefaultMaxCrashes if zero. After the first a process runs at most half as many such tasks at once as it has slots, after the second
	// two, and after the third one, until a run of the task ends. A process that was only away, or that was asked to end, has not died.
	MaxCrashes int
	// MaxDepth and MaxSpawned are the breaker for tasks whose runs submit tasks, which submit tasks: how deep they may be below the task
	// that no run has submitted, their root, and how many may be submitted below one root within any hour, in each partition of the store.
	// They are DefaultMaxDepth and DefaultMaxSpawned if zero; negative for no bound. See [Origin].
	MaxDepth, MaxSpawned int
	// MaxPayload and MaxResult bound payloads and results, in bytes: DefaultMaxPayload and DefaultMaxResult if zero.
	MaxPayload, MaxResult int
	// OnEvent is called for every task event, concurrently, once what it reports is stored. It must not block.
	OnEvent func(Event)
	// Allow, if set, is called before anything is written for a submit, an activity or an operator's command: an error refuses it,
	// as a *[VetoError]. The task is as it was just read, and may change before the command is carried out. Allow is not called for what
	// duly does by itself. Submits and pauses read the tasks that they are about for it.
	Allow func(ctx context.Context, t Transition) error
	// OnTick, if set, is called when a pull begins the tick of an agent, and again when it has ended: all of its runs have,
	// and are stored. It must return at once.
	OnTick func(Tick)
	// Policy, if set, decides by figures how soon tasks run: see [Policy]. The figures of the store are read once a second at most.
	Policy Policy
	// Bindings give each run values for its handler, in order: see [Binding].
	Bindings []Binding
	// Authorizer, if set, is called before each submit, each run and each call that an adapter translates, in addition to the rights of the
	// caller: see [Access]. A run that is refused fails, and is retried; an error such as Snooze means the same as that of a handler.
	Authorizer Authorizer
	// Logger gets errors that are returned to no caller. Nothing is logged if nil.
	Logger *slog.Logger
	// Ahead is how long before its time a task may be claimed by a host that pulls again and again, such as a daemon, so that one claim serves
	// all that falls due within that: DefaultAhead if zero, never if negative. It starts at its time all the same.
	Ahead time.Duration
	// Serial says which runs of one agent may run at the same time: SerialTask if empty. Every process that runs tasks of a
	// store has to have the same.
	Serial Serial
	// Zone is the IANA zone of cron expressions, and of the quiet hours of agents, that name none: UTC if empty. A task keeps the one
	// that it was submitted with.
	Zone string
	// Presence, if set, stores periodically what this process runs, so that others can explain why a task has not run: usually
	// the store. Of several daemons that have it one claims what falls due, the one with least to do, once they have known each other for
	// twenty seconds; without it all of them ask.
	Presence store.Presence
	// Feed keeps the events of this process for those who listen to all of the store: the store if nil, if it is one.
	Feed feed.Feed
	// Alarm, if set, is booked for what falls due next: by each pull when it ends, and by each call that makes something due earlier. It is for hosts
	// that live only while they are called: see [Alarm]. Every process of a store has to have it that submits or changes tasks, with the
	// same host to be called. A daemon needs none.
	Alarm Alarm
	// Recent, if set, keeps what ran in the last days, for Window and Trend: usually the store. A process adds what it has counted every five
	// seconds while it works, and when a pull ends. Of the hosts that call Announce one measures every five minutes what waits and what is used.
	Recent window.Recent
	// Servers, if set, says how the servers of the store are set up, for Diagnose: usually the store.
	Servers server.Reporter
	// Callbacks, if set, delivers the callbacks of tasks, and decides which are allowed: see [NewTask].Callback. A process without it refuses
	// tasks with one, and leaves deliveries to others; it still submits deliveries for the ends of such tasks.
	Callbacks Callbacks
	// Clock is SystemClock if nil.
	Clock Clock
	// Random, if set, draws the pauses between attempts, each of at most the given time: for tests that want the same ones
	// again. Random times if nil.
	Random func(most time.Duration) time.Duration
}

// Serial says which runs of one agent may run at the same time, over all processes.
type Serial string

// The settings.
const (
	SerialTask  Serial = "task"  // one run of each task: a task that falls due starts although another of its agent runs
	SerialAgent Serial = "agent" // one run of each agent: its tasks run one after the other
)

// Definitions are what a host declares in the store in addition to Config.Limits and Config.Budgets.
type Definitions struct {
	// Version distinguishes these from others: processes with the same one, the same limits and the same budgets rely on one another to have
	// stored them. A digest of them is a good one.
	Version string
	// Apply stores them. It is called again, by one goroutine at a time, whenever the store has lost them, and must leave alone what is already
	// right. It may submit tasks, and fail with CodeStoreFull once everything but tasks is stored: the rest is tried again later.
	Apply func(ctx context.Context) error
}

// Define stores the limits and budgets of the configuration and the definitions that the host adds, and makes sure that they are stored again if the
// store loses them: before anything else starts in this process. Call it once, before the first pull. Without it the limits and budgets of the
// configuration are stored by the first pull, and kept in the same way.
func (s *Scheduler) Define(ctx context.Context, d Definitions) error {
	return s.declared.Define(ctx, d.Version, d.Apply)
}

// withDefaults fills in zero fields. It comes before the check, so that a bound is compared with the value that
// will really be used.
func (c Config) withDefaults() Config {
	c.Name = processName(c.Name)
	c.Concurrency = cmp.Or(c.Concurrency, model.DefaultConcurrency)
	c.Urgent = max(cmp.Or(c.Urgent, c.Concurrency/urgentShare), 0)
	if c.MaxAbandoned = cmp.Or(c.MaxAbandoned, c.Concurrency); c.MaxAbandoned < 0 {
		c.MaxAbandoned = math.MaxInt
	}
	c.Serial = cmp.Or(c.Serial, SerialTask)
	c.Margin = cmp.Or(c.Margin, model.DefaultMargin)
	c.Ahead = max(cmp.Or(c.Ahead, DefaultAhead), 0)
	c.MaxCrashes = cmp.Or(c.MaxCrashes, model.DefaultMaxCrashes)
	c.MaxDepth = cmp.Or(c.MaxDepth, model.DefaultMaxDepth)
	c.MaxSpawned = cmp.Or(c.MaxSpawned, model.DefaultMaxSpawned)
	c.MaxPayload = cmp.Or(c.MaxPayload, model.DefaultMaxPayload)
	c.MaxResult = cmp.Or(c.MaxResult, model.DefaultMaxResult)
	c.Default = c.Default.Or(KindConfig{
		Level: LevelLow, Lease: model.DefaultLease, MaxAttempts: model.DefaultMaxAttempts, Backoff: model.DefaultBackoff, MaxBackoff: model.DefaultMaxBackoff,
		MaxRetryAfters: model.DefaultMaxRetryAfters, PauseAfter: model.DefaultPauseAfter, Grace: model.DefaultGrace, Spread: model.DefaultSpread, CatchUp: model.DefaultCatchUp,
	})
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = SystemClock{}
	}
	if c.Random == nil {
		c.Random = randomPause
	}
	return c
}

// mostName bounds the name of a process, which is kept with each task that it runs.
const mostName = 64

// processName is the name of this process: the given one, or one that distinguishes it from others.
func processName(given string) string {
	if given == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		given = host + ":" + strconv.Itoa(os.Getpid())
	}
	return strings.ToValidUTF8(given[:min(len(given), mostName)], "")
}

// mostBytes is the most that MaxPayload and MaxResult may be.
const mostBytes = 16 << 20

// mostAhead is the most that Ahead may be: what was claimed starts before its short lease is over.
const mostAhead = 250 * time.Millisecond

// validate refuses settings that make no sense, with a *[ConfigError].
func (c Config) validate() error {
	switch {
	case c.Concurrency < 1 || c.Concurrency > 100_000:
		return check.Misconfigured("Concurrency", c.Concurrency, "must be between 1 and 100000, not %d", c.Concurrency)
	case c.Serial != SerialTask && c.Serial != SerialAgent:
		return check.Misconfigured("Serial", c.Serial, "must be %s or %s, not %q", SerialTask, SerialAgent, c.Serial)
	case c.Urgent >= c.Concurrency:
		return check.Misconfigured("Urgent", c.Urgent, "must be less than the concurrency (%d), not %d", c.Concurrency, c.Urgent)
	case c.Margin < 0:
		return check.Misconfigured("Margin", c.Margin, "must not be negative, not %s", c.Margin)
	case c.Ahead > mostAhead:
		return check.Misconfigured("Ahead", c.Ahead, "must be at most %s, not %s", mostAhead, c.Ahead)
	case c.MaxCrashes < 1:
		return check.Misconfigured("MaxCrashes", c.MaxCrashes, "must be at least 1, not %d", c.MaxCrashes)
	case c.MaxDepth > check.MostDepth:
		return check.Misconfigured("MaxDepth", c.MaxDepth, "must be at most %d, or negative for no bound, not %d", check.MostDepth, c.MaxDepth)
	case c.MaxSpawned > check.MostSpawned:
		return check.Misconfigured("MaxSpawned", c.MaxSpawned, "must be at most %d, or negative for no bound, not %d", check.MostSpawned, c.MaxSpawned)
	case c.MaxPayload < 1 || c.MaxPayload > mostBytes:
		return check.Misconfigured("MaxPayload", c.MaxPayload, "must be between 1 and %d bytes, not %d", mostBytes, c.MaxPayload)
	case c.MaxResult < 1 || c.MaxResult > mostBytes:
		return check.Misconfigured("MaxResult", c.MaxResult, "must be between 1 and %d bytes, not %d", mostBytes, c.MaxResult)
	}
	if err := c.Default.Validate(); err != nil {
		return check.OfPart("Default", err)
	}
	if _, err := schedule.ParseQuiet(nil, c.Zone); err != nil {
		wrong, _ := errors.AsType[*schedule.ParseError](err)
		return &ConfigError{Field: "Zone", Value: c.Zone, Reason: wrong.Reason}
	}
	if err := bounding.ValidLimits(c.Limits); err != nil {
		return err
	}
	if err := bounding.ValidBudgets(c.Budgets, len(c.Limits), c.Zone); err != nil {
		return err
	}
	for i, binding := range c.Bindings {
		if binding == nil {
			return check.Misconfigured(fmt.Sprintf("Bindings[%d]", i), nil, "must not be nil")
		}
	}
	return c.validateKinds()
}

// validateKinds is validate for the settings of kinds.
func (c Config) validateKinds() error {
	for kind, k := range c.Kinds {
		if invalid, ok := errors.AsType[*InvalidError](check.ValidKind("Kinds", kind)); ok {
			return &ConfigError{Field: invalid.Field, Value: kind, Reason: invalid.Reason}
		}
		if err := k.Or(c.Default).Validate(); err != nil {
			return check.OfPart(fmt.Sprintf("Kinds[%q]", kind), err)
		}
		if err := k.Tool.Check(kind); err != nil {
			return check.OfPart(fmt.Sprintf("Kinds[%q]", kind), err)
		}
	}
	return nil
}

// expected is what runs of all kinds are expected to use.
func (c Config) expected() (all []bound.Expected) {
	for _, kind := range slices.Sorted(maps.Keys(c.Kinds)) {
		own := c.Kinds[kind].Or(c.Default)
		for _, unit := range slices.Sorted(maps.Keys(own.Expect)) {
			all = append(all, bound.Expected{Kind: kind, Used: bound.Used{Unit: unit, Amount: bound.AmountOf(own.Expect[unit])}})
		}
	}
	return all
}

// randomPause is a pause of at most so long: full jitter, so that tasks that failed together do not come back together.
func randomPause(most time.Duration) time.Duration {
	if most < time.Millisecond {
		return most
	}
	return rand.N(most) + time.Millisecond //nolint:gosec // jitter, not a secret
}
