package core

// The settings of a scheduler and of a kind: defaults, bounds, and how a kind inherits.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Defaults of Config and KindConfig.
const (
	DefaultConcurrency = 5
	DefaultMargin      = 500 * time.Millisecond
	DefaultLease       = 30 * time.Second
	DefaultMaxAttempts = 5
	DefaultMaxCrashes  = 3
	DefaultBackoff     = time.Second
	DefaultMaxBackoff  = 5 * time.Minute
	DefaultPauseAfter  = 5
	DefaultGrace       = time.Minute
	DefaultSpread      = time.Minute
	DefaultCatchUp     = 100
)

// urgentShare is the share of the slots that is kept for urgent tasks: one in so many.
const urgentShare = 5

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
	// Default are the settings of kinds that are not in Kinds, and of what their settings leave zero.
	Default KindConfig
	// Limits bound how many tasks run at once and start within a time over all processes of the store: see [Limit]. A process sets them
	// when it first pulls; what was set by hand about the same tasks counts until then. If the store loses them they are set again before anything
	// starts: see [Scheduler.Define].
	Limits []Limit
	// Budgets bound what runs use within an hour, a day or a month over all processes of the store: see [Budget]. They are set as Limits are.
	Budgets []Budget
	// MaxCrashes is how many runs of a task in a row may die with their process before the next such death ends the task:
	// DefaultMaxCrashes if zero. After the first a process runs at most half as many such tasks at once as it has slots, after the second
	// two, and after the third one, until a run of the task ends. A process that was only away, or that was told to end, has not died.
	MaxCrashes int
	// MaxDepth and MaxSpawned are the breaker for tasks whose runs submit tasks, which submit tasks: how deep they may be below the task
	// that no run has submitted, their root, and how many may be submitted below one root within any hour, in each partition of the store.
	// They are DefaultMaxDepth and DefaultMaxSpawned if zero; negative for no bound. See [Origin].
	MaxDepth, MaxSpawned int
	// MaxPayload and MaxResult bound payloads and results, in bytes: DefaultMaxPayload and DefaultMaxResult if zero.
	MaxPayload, MaxResult int
	// OnEvent is called for every task event, concurrently, once what it reports is stored. It must not block.
	OnEvent func(Event)
	// Allow, if set, is asked before anything is written for a submit, an activity or an operator's command: an error refuses it,
	// as a *[VetoError]. The task is as it was just read, and may change before the command is carried out. What duly does by itself
	// is not asked about. Submits and pauses read the tasks that they are about for it.
	Allow func(ctx context.Context, t Transition) error
	// OnTick, if set, is called when a pull begins the tick of an agent, and again when it has ended: all of its runs have,
	// and are stored. It must return at once.
	OnTick func(Tick)
	// Policy, if set, decides by figures how soon tasks run: see [Policy]. The figures of the store are read once a second at most.
	Policy Policy
	// Bindings give each run values for its handler, in order: see [Binding].
	Bindings []Binding
	// Authorizer, if set, is asked before each submit, each run and each call that an adapter translates, in addition to the rights of the
	// caller: see [Access]. A run that is refused fails, and is retried; an error such as Snooze means the same as that of a handler.
	Authorizer Authorizer
	// Logger gets what nobody is returned an error for. Nothing is logged if nil.
	Logger *slog.Logger
	// Serial says what runs of one agent may run at the same time: SerialTask if empty. Every process that runs tasks of a
	// store has to have the same.
	Serial Serial
	// Zone is the IANA zone of cron expressions, and of the quiet hours of agents, that name none: UTC if empty. A task keeps the one
	// that it was submitted with.
	Zone string
	// Presence, if set, stores now and then what this process runs, so that others can say why a task has not run: usually
	// the store.
	Presence store.Presence
	// Feed keeps the events of this process for those who listen to all of the store: the store if nil, if it is one.
	Feed store.Feed
	// Alarm, if set, is booked for what falls due next: by each pull when it ends, and by each call that makes something due earlier. It is for hosts
	// that live only while they are called: see [Alarm]. Every process of a store has to have it that submits or changes tasks, with the
	// same host to be called. A daemon needs none.
	Alarm Alarm
	// Recent, if set, keeps what ran in the last day, for Window: usually the store. A process adds what it has counted every five seconds
	// while it works, and when a pull ends.
	Recent store.Recent
	// Servers, if set, says how the servers of the store are set up, for Diagnose: usually the store.
	Servers store.Servers
	// Callbacks, if set, delivers the callbacks of tasks, and decides which are allowed: see [NewTask].Callback. A process without it refuses
	// tasks with one, and leaves deliveries to others; the ends of such tasks it tells all the same.
	Callbacks Callbacks
	// Clock is SystemClock if nil.
	Clock Clock
	// Random, if set, draws the pauses between attempts, each of at most the given time: for tests that want the same ones
	// again. Random times if nil.
	Random func(most time.Duration) time.Duration
}

// Serial says what runs of one agent may run at the same time, over all processes.
type Serial string

// The settings.
const (
	SerialTask  Serial = "task"  // one run of each task: a task that falls due starts although another of its agent runs
	SerialAgent Serial = "agent" // one run of each agent: its tasks run one after the other
)

// KindConfig are the settings of one kind of task. What is zero is taken from Config.Default, then from the defaults; what
// can be none at all is negative then: a timeout, pauses between attempts, the grace, catching up, pausing.
type KindConfig struct {
	Level       Level         // of tasks that name none; LevelLow if zero
	Slots       int           // most runs at once in this process, so that a slow kind leaves room for others; zero for no bound
	Timeout     time.Duration // of one run; none if negative, and by default
	Lease       time.Duration // how long a run may go without a sign of life before others take its task over
	MaxAttempts int           // at one occurrence of a task that does not recur
	Backoff     time.Duration // base of the pauses between attempts: a random time up to Backoff * 2^(attempt-1); none if negative
	MaxBackoff  time.Duration // longest pause
	// MaxRetryAfters is how often in a row RetryAfter is not charged; from then on it is a failed attempt:
	// DefaultMaxRetryAfters if zero, negative to charge each.
	MaxRetryAfters int
	// PauseAfter is how many occurrences of a recurring task fail in a row until it is paused; negative for never.
	PauseAfter int
	// Grace is how late an occurrence may be; later than that it was missed, and the task's Misfire applies: negative for
	// not late at all. What was missed is caught up within Spread, each task at a stable time of its own; negative for at
	// once. CatchUp bounds how many missed occurrences MisfireAll runs; negative for none.
	Grace, Spread time.Duration
	CatchUp       int
	// Activity makes tasks of this kind activity tasks: they are made by Scheduler.Activity.
	Activity *Activity
	// IdleBackoff is how much less often the gate of the kind is asked while it says that there is nothing to do.
	IdleBackoff IdleBackoff
	// Batch is the most tasks that one call of a handler that was registered with [HandleBatch] gets, up to MaxBatch. Such a call has one
	// slot, whatever the size of its batch. If zero, it gets what a claim brings, and each task has a slot.
	Batch int
	// BatchWait is how long a batch that is not full waits for more tasks in a process that pulls again and again: none if zero, up to MaxBatchWait. It does not wait
	// for tasks that cannot come, as no slot is free to claim them or the pull ends, nor with a task of level 1.
	BatchWait time.Duration
	// BatchBy is what the tasks of a batch share: BatchByAgent, which each has to, and names of labels. BatchByAgent alone if nil.
	BatchBy []string
	// Expect is what a run of this kind is expected to use, by units: budgets keep that much for each run until the store knows what the last ones have used.
	// Without it the first run starts beside no other of which nothing is known.
	Expect Usage
	// Disabled refuses new tasks of this kind. Existing ones still run.
	Disabled bool
}

// withDefaults fills in what is zero. It comes before the check, so that a bound is compared with what
// will really be used.
func (c Config) withDefaults() Config {
	c.Name = processName(c.Name)
	c.Concurrency = cmp.Or(c.Concurrency, DefaultConcurrency)
	c.Urgent = max(cmp.Or(c.Urgent, c.Concurrency/urgentShare), 0)
	if c.MaxAbandoned = cmp.Or(c.MaxAbandoned, c.Concurrency); c.MaxAbandoned < 0 {
		c.MaxAbandoned = math.MaxInt
	}
	c.Serial = cmp.Or(c.Serial, SerialTask)
	c.Margin = cmp.Or(c.Margin, DefaultMargin)
	c.MaxCrashes = cmp.Or(c.MaxCrashes, DefaultMaxCrashes)
	c.MaxDepth = cmp.Or(c.MaxDepth, DefaultMaxDepth)
	c.MaxSpawned = cmp.Or(c.MaxSpawned, DefaultMaxSpawned)
	c.MaxPayload = cmp.Or(c.MaxPayload, DefaultMaxPayload)
	c.MaxResult = cmp.Or(c.MaxResult, DefaultMaxResult)
	c.Default = c.Default.or(KindConfig{
		Level: LevelLow, Lease: DefaultLease, MaxAttempts: DefaultMaxAttempts, Backoff: DefaultBackoff, MaxBackoff: DefaultMaxBackoff,
		MaxRetryAfters: DefaultMaxRetryAfters, PauseAfter: DefaultPauseAfter, Grace: DefaultGrace, Spread: DefaultSpread, CatchUp: DefaultCatchUp,
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

// processName is the name of this process: the one that was given, or one that tells it from others.
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

// validate refuses what makes no sense, with a *[ConfigError].
func (c Config) validate() error {
	switch {
	case c.Concurrency < 1 || c.Concurrency > 100_000:
		return misconfigured("Concurrency", c.Concurrency, "must be between 1 and 100000, not %d", c.Concurrency)
	case c.Serial != SerialTask && c.Serial != SerialAgent:
		return misconfigured("Serial", c.Serial, "must be %s or %s, not %q", SerialTask, SerialAgent, c.Serial)
	case c.Urgent >= c.Concurrency:
		return misconfigured("Urgent", c.Urgent, "must be less than the concurrency (%d), not %d", c.Concurrency, c.Urgent)
	case c.Margin < 0:
		return misconfigured("Margin", c.Margin, "must not be negative, not %s", c.Margin)
	case c.MaxCrashes < 1:
		return misconfigured("MaxCrashes", c.MaxCrashes, "must be at least 1, not %d", c.MaxCrashes)
	case c.MaxDepth > mostDepth:
		return misconfigured("MaxDepth", c.MaxDepth, "must be at most %d, or negative for no bound, not %d", mostDepth, c.MaxDepth)
	case c.MaxSpawned > mostSpawned:
		return misconfigured("MaxSpawned", c.MaxSpawned, "must be at most %d, or negative for no bound, not %d", mostSpawned, c.MaxSpawned)
	case c.MaxPayload < 1 || c.MaxPayload > mostBytes:
		return misconfigured("MaxPayload", c.MaxPayload, "must be between 1 and %d bytes, not %d", mostBytes, c.MaxPayload)
	case c.MaxResult < 1 || c.MaxResult > mostBytes:
		return misconfigured("MaxResult", c.MaxResult, "must be between 1 and %d bytes, not %d", mostBytes, c.MaxResult)
	}
	if err := c.Default.validate(); err != nil {
		return ofPart("Default", err)
	}
	if _, err := schedule.ParseQuiet(nil, c.Zone); err != nil {
		wrong, _ := errors.AsType[*schedule.ParseError](err)
		return &ConfigError{Field: "Zone", Value: c.Zone, Reason: wrong.Reason}
	}
	if err := validLimits(c.Limits); err != nil {
		return err
	}
	if err := validBudgets(c.Budgets, len(c.Limits), c.Zone); err != nil {
		return err
	}
	for i, binding := range c.Bindings {
		if binding == nil {
			return misconfigured(fmt.Sprintf("Bindings[%d]", i), nil, "must not be nil")
		}
	}
	return c.validateKinds()
}

// validateKinds is validate for the settings of kinds.
func (c Config) validateKinds() error {
	for kind, k := range c.Kinds {
		if invalid, ok := errors.AsType[*InvalidError](validKind("Kinds", kind)); ok {
			return &ConfigError{Field: invalid.Field, Value: kind, Reason: invalid.Reason}
		}
		if err := k.or(c.Default).validate(); err != nil {
			return ofPart(fmt.Sprintf("Kinds[%q]", kind), err)
		}
	}
	return nil
}

// or is these settings with others in place of those that are zero.
func (k KindConfig) or(o KindConfig) KindConfig {
	k.Level = cmp.Or(k.Level, o.Level)
	k.Slots = cmp.Or(k.Slots, o.Slots)
	k.Timeout = cmp.Or(k.Timeout, o.Timeout)
	k.Lease = cmp.Or(k.Lease, o.Lease)
	k.MaxAttempts = cmp.Or(k.MaxAttempts, o.MaxAttempts)
	k.Backoff = cmp.Or(k.Backoff, o.Backoff)
	k.MaxBackoff = cmp.Or(k.MaxBackoff, o.MaxBackoff)
	k.MaxRetryAfters = cmp.Or(k.MaxRetryAfters, o.MaxRetryAfters)
	k.PauseAfter = cmp.Or(k.PauseAfter, o.PauseAfter)
	k.Grace = cmp.Or(k.Grace, o.Grace)
	k.Spread = cmp.Or(k.Spread, o.Spread)
	k.CatchUp = cmp.Or(k.CatchUp, o.CatchUp)
	k.IdleBackoff = k.IdleBackoff.or(o.IdleBackoff)
	k.Batch = cmp.Or(k.Batch, o.Batch)
	k.BatchWait = cmp.Or(k.BatchWait, o.BatchWait)
	if k.BatchBy == nil {
		k.BatchBy = o.BatchBy
	}
	if k.Expect == nil {
		k.Expect = o.Expect
	}
	return k
}

// plain are the settings with zero for what is none.
func (k KindConfig) plain() KindConfig {
	k.Timeout, k.Backoff, k.Grace, k.CatchUp = max(k.Timeout, 0), max(k.Backoff, 0), max(k.Grace, 0), max(k.CatchUp, 0)
	return k
}

// validate refuses what makes no sense. The field is one of KindConfig.
func (k KindConfig) validate() *ConfigError {
	switch {
	case k.Level < LevelHigh || k.Level > LevelLow:
		return misconfigured("Level", k.Level, "must be 1, 2 or 3, not %d", k.Level)
	case k.Slots < 0:
		return misconfigured("Slots", k.Slots, "must not be negative, not %d", k.Slots)
	case k.Lease < minLease || k.Lease > maxLease:
		return misconfigured("Lease", k.Lease, "must be between %s and %s, not %s", minLease, maxLease, k.Lease)
	case k.MaxAttempts < 1 || k.MaxAttempts > maxAttempts:
		return misconfigured("MaxAttempts", k.MaxAttempts, "must be between 1 and %d, not %d", maxAttempts, k.MaxAttempts)
	case k.MaxBackoff < 0 || k.MaxBackoff < k.Backoff:
		return misconfigured("MaxBackoff", k.MaxBackoff, "must be at least the backoff (%s), not %s", max(k.Backoff, 0), k.MaxBackoff)
	}
	if err := k.Activity.validate(); err != nil {
		return ofPart("Activity", err)
	}
	if err := k.IdleBackoff.validate(); err != nil {
		return ofPart("IdleBackoff", err)
	}
	if err := k.Expect.validate(); err != nil {
		return err
	}
	return k.validateBatch()
}

// backoff is the longest pause after a failed attempt, the first being 1.
func (k KindConfig) backoff(attempt int) time.Duration {
	most := k.Backoff
	for range attempt - 1 {
		if most >= k.MaxBackoff/2 {
			most = k.MaxBackoff
			break
		}
		most *= 2
	}
	return min(most, k.MaxBackoff)
}

// randomPause is a pause of at most so long: full jitter, so that tasks that failed together do not come back together.
func randomPause(most time.Duration) time.Duration {
	if most < time.Millisecond {
		return most
	}
	return rand.N(most) + time.Millisecond //nolint:gosec // jitter, not a secret
}
