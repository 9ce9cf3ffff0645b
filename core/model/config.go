package model

// The settings of a kind: defaults, bounds, and how a kind inherits.

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Bounds of batches.
const (
	MaxBatch     = 1000        // tasks
	maxBatchWait = time.Minute // a task that waits holds a lease, which other processes respect
)

// BatchByAgent is what every [KindConfig].BatchBy must contain: the tasks of a batch belong to one agent. A tick is for one agent, and so is
// the authorization before a run; a batch of several agents would run in the name of all of them.
const BatchByAgent = "agent"

// validateBatch refuses invalid settings of batches.
func (k KindConfig) validateBatch() *store.ConfigError {
	switch {
	case k.Batch < 0 || k.Batch > MaxBatch:
		return check.Misconfigured("Batch", k.Batch, "must be between 1 and %d, not %d", MaxBatch, k.Batch)
	case k.BatchWait < 0 || k.BatchWait > maxBatchWait:
		return check.Misconfigured("BatchWait", k.BatchWait, "must be at most %s, not %s", maxBatchWait, k.BatchWait)
	case k.BatchWait > 0 && k.Batch == 0:
		return check.Misconfigured("BatchWait", k.BatchWait, "needs the size of a batch: set it too")
	// The batch that waits holds the only slot, so no more tasks could be claimed for it.
	case k.BatchWait > 0 && k.Slots == 1:
		return check.Misconfigured("BatchWait", k.BatchWait, "needs at least 2 slots for the kind, not 1: a batch that waits has one of them")
	case k.BatchBy != nil && k.Batch == 0:
		return check.Misconfigured("BatchBy", k.BatchBy, "needs the size of a batch: set it too")
	case k.BatchBy != nil && !slices.Contains(k.BatchBy, BatchByAgent):
		return check.Misconfigured("BatchBy", k.BatchBy, "must contain %q: all tasks of a batch are of one agent", BatchByAgent)
	}
	for _, name := range k.BatchBy {
		if name == "" || len(name) > check.MaxLabelName {
			return check.Misconfigured("BatchBy", k.BatchBy, "must name labels of 1 to %d bytes, not %q", check.MaxLabelName, check.Clip(name))
		}
	}
	return nil
}

// KindCallback is the kind of the tasks that deliver callbacks. It is reserved: callers can neither submit such a task nor handle the kind. Its settings,
// in Config.Kinds, apply to the deliveries: how many attempts they have, how long one may take, and how they are spread.
const KindCallback = "duly.callback"

// NotReserved refuses the kind that only duly itself uses: a caller that could submit its tasks could have anything signed.
func NotReserved(kind string) error {
	if kind == KindCallback || slices.Contains(check.Everywhere, kind) {
		return check.Invalid("kind", "%q is duly's own: submit a task with callback, or with expect_success, and duly makes its own", kind)
	}
	return nil
}

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

// KindConfig are the settings of one kind of task. A zero field is taken from Config.Default, then from the defaults; a
// negative one means none, where that is possible: a timeout, pauses between attempts, the grace, catching up, pausing.
type KindConfig struct {
	Level       store.Level   // of tasks that name none; LevelLow if zero
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
	// Grace is how late an occurrence may be; a later one was missed, and the task's Misfire applies: negative for
	// not late at all. Missed occurrences are caught up within Spread, each task at its own stable time; negative for at
	// once. CatchUp bounds how many missed occurrences MisfireAll runs; negative for none.
	Grace, Spread time.Duration
	CatchUp       int
	// Activity makes tasks of this kind activity tasks: they are created by Scheduler.Activity.
	Activity *Activity
	// IdleBackoff is how much less often the gate of the kind is asked while it says that there is nothing to do.
	IdleBackoff IdleBackoff
	// Batch is the most tasks that one call of a handler that was registered with [core.HandleBatch] gets, up to MaxBatch. Such a call takes one
	// slot, regardless of its size. If zero, it gets the tasks of one claim, and each task takes a slot.
	Batch int
	// BatchWait is how long a batch that is not full waits for more tasks in a process that pulls continuously: not at all if zero, up to maxBatchWait. It
	// does not wait if no more tasks can come, as no slot is free to claim them or the pull ends, nor with a task of level 1.
	BatchWait time.Duration
	// BatchBy is what the tasks of a batch have in common: BatchByAgent, which is required, and names of labels. BatchByAgent alone if nil.
	BatchBy []string
	// Expect is what a run of this kind is expected to use, by units: budgets reserve that much for each run until the store knows what the last ones have used.
	// Without it the first run does not start beside another run of unknown usage.
	Expect Usage
	// ExpectSuccess and OnLate are those of tasks of this kind that recur and have none of their own, where the schedule leaves less between two runs.
	ExpectSuccess time.Duration
	OnLate        string
	// Disabled refuses new tasks of this kind. Existing ones still run.
	Disabled bool
	// Tool, if set, has models call this kind as a tool: see adapters/mcp.
	Tool *Tool
}

// Or returns these settings, with zero fields taken from o.
func (k KindConfig) Or(o KindConfig) KindConfig {
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
	if k.ExpectSuccess == 0 {
		k.ExpectSuccess, k.OnLate = o.ExpectSuccess, o.OnLate
	}
	return k
}

// Plain returns the settings with zero in place of what is negative, which means none.
func (k KindConfig) Plain() KindConfig {
	k.Timeout, k.Backoff, k.Grace, k.CatchUp = max(k.Timeout, 0), max(k.Backoff, 0), max(k.Grace, 0), max(k.CatchUp, 0)
	return k
}

// Validate refuses invalid settings. The field of its error is one of KindConfig.
func (k KindConfig) Validate() *store.ConfigError {
	switch {
	case k.Level < store.LevelHigh || k.Level > store.LevelLow:
		return check.Misconfigured("Level", k.Level, "must be 1, 2 or 3, not %d", k.Level)
	case k.Slots < 0:
		return check.Misconfigured("Slots", k.Slots, "must not be negative, not %d", k.Slots)
	case k.Lease < check.MinLease || k.Lease > check.MaxLease:
		return check.Misconfigured("Lease", k.Lease, "must be between %s and %s, not %s", check.MinLease, check.MaxLease, k.Lease)
	case k.MaxAttempts < 1 || k.MaxAttempts > check.MaxAttempts:
		return check.Misconfigured("MaxAttempts", k.MaxAttempts, "must be between 1 and %d, not %d", check.MaxAttempts, k.MaxAttempts)
	case k.ExpectSuccess != 0 && (k.ExpectSuccess < schedule.MinInterval || k.ExpectSuccess > check.MaxDelay):
		return check.Misconfigured("ExpectSuccess", k.ExpectSuccess, "must be between %s and %s, not %s", schedule.MinInterval, check.MaxDelay, k.ExpectSuccess)
	case k.OnLate != "" && k.ExpectSuccess == 0:
		return check.Misconfigured("OnLate", k.OnLate, "needs the time within which a task is to succeed: set ExpectSuccess too")
	case k.MaxBackoff < 0 || k.MaxBackoff < k.Backoff:
		return check.Misconfigured("MaxBackoff", k.MaxBackoff, "must be at least the backoff (%s), not %s", max(k.Backoff, 0), k.MaxBackoff)
	}
	if err := k.Activity.validate(); err != nil {
		return check.OfPart("Activity", err)
	}
	if err := k.IdleBackoff.validate(); err != nil {
		return check.OfPart("IdleBackoff", err)
	}
	if err := k.Expect.validate(); err != nil {
		return err
	}
	return k.validateBatch()
}

// LongestPause is the longest pause after a failed attempt, the first being 1.
func (k KindConfig) LongestPause(attempt int) time.Duration {
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

// DefaultMaxRetryAfters is how often in a row a handler may return RetryAfter without its task being charged.
const DefaultMaxRetryAfters = 100

// MaxSubmit is the most tasks that one Submit takes: all or none are stored, in one step of the store.
const MaxSubmit = 1000
