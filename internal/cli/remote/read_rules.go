package remote

// The JSON of limits, budgets and kinds, read into what it was written from.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// limit is a limit, and how much of it is used.
type limit struct {
	core.LimitTarget

	Concurrency int       `json:"concurrency"`
	Rate        string    `json:"rate"`
	Burst       int       `json:"burst"`
	Adaptive    bool      `json:"adaptive"`
	Running     int64     `json:"running"`
	Waiting     int64     `json:"waiting"`
	Learned     []learned `json:"learned"`
}

// learned is what an adaptive limit has found out.
type learned struct {
	Of        string     `json:"of"`
	Runs      int        `json:"concurrency"`
	PerMinute float64    `json:"per_minute"`
	Probing   bool       `json:"probing"`
	HeldUntil *time.Time `json:"held_until"`
}

func (l *limit) core() store.LimitUse {
	out := store.LimitUse{Running: l.Running, Waiting: l.Waiting}
	out.About, out.Concurrency, out.Burst, out.Adaptive = l.LimitTarget, l.Concurrency, l.Burst, l.Adaptive
	if l.Rate != "" { // of a newer server it may be written in a way that this version does not know
		if rate, per, err := core.ParseRate(l.Rate); err == nil {
			out.Rate, out.Per = rate, per
		}
	}
	for _, k := range l.Learned {
		one := store.Learned{Of: k.Of, Runs: k.Runs, PerMinute: k.PerMinute, Probing: k.Probing}
		if k.HeldUntil != nil {
			one.HeldUntil = store.MillisOf(*k.HeldUntil)
		}
		out.Learned = append(out.Learned, one)
	}
	return out
}

// limitsOf are limits; nil for none.
func limitsOf(all []limit) []store.LimitUse {
	var out []store.LimitUse
	for i := range all {
		out = append(out, all[i].core())
	}
	return out
}

// budget is a budget, and how much of it is used.
type budget struct {
	core.LimitTarget

	Unit    string       `json:"unit"`
	Amount  float64      `json:"amount"`
	Per     store.Period `json:"per"`
	Zone    string       `json:"zone"`
	Then    store.Then   `json:"then"`
	Used    float64      `json:"used"`
	UsedUp  int          `json:"used_up"`
	Waiting int64        `json:"waiting"`
	Ends    time.Time    `json:"ends_at"`
	Shares  []struct {
		Of   string  `json:"of"`
		Used float64 `json:"used"`
	} `json:"shares"`
}

func (b *budget) core() store.BudgetUse {
	out := store.BudgetUse{UsedUp: b.UsedUp, Waiting: b.Waiting, Ends: store.MillisOf(b.Ends), Used: store.AmountOf(b.Used)}
	out.About = core.BudgetTarget{LimitTarget: b.LimitTarget, Unit: b.Unit, Per: b.Per}
	out.Amount, out.Zone, out.Then = store.AmountOf(b.Amount), b.Zone, b.Then
	for _, s := range b.Shares {
		out.Shares = append(out.Shares, store.BudgetShare{Of: s.Of, Used: store.AmountOf(s.Used)})
	}
	return out
}

// kind is what a server knows of a kind.
type kind struct {
	Kind      string           `json:"kind"`
	Handled   bool             `json:"handled"`
	Gated     bool             `json:"gated"`
	Processes int              `json:"processes"`
	Live      int64            `json:"live"`
	Resting   int64            `json:"resting"`
	Running   int64            `json:"running"`
	Slots     *slots           `json:"slots"`
	Pause     *model.PauseInfo `json:"pause"`
	Limits    []limit          `json:"limits"`
	Settings  settings         `json:"settings"`
}

// slots are those of a kind in the server.
type slots struct {
	Total int `json:"total"`
	InUse int `json:"in_use"`
}

// settings are those of a kind in the server.
type settings struct {
	Level         core.Level `json:"level"`
	Timeout       span       `json:"timeout"`
	Lease         span       `json:"lease"`
	MaxAttempts   int        `json:"max_attempts"`
	Backoff       span       `json:"backoff"`
	MaxBackoff    span       `json:"max_backoff"`
	MaxRetryAfter int        `json:"max_retry_afters"`
	PauseAfter    int        `json:"pause_after_failures"`
	Grace         span       `json:"grace"`
	Spread        span       `json:"spread"`
	CatchUp       int        `json:"catch_up"`
	Disabled      bool       `json:"disabled"`
	Activity      bool       `json:"activity"`
	Batch         int        `json:"batch"`
	BatchWait     span       `json:"batch_wait"`
	BatchBy       []string   `json:"batch_by"`
}

// core takes the settings of a kind that the server handles for its own; of others they are the defaults.
func (k *kind) core() inspect.KindInfo {
	s := &k.Settings
	out := inspect.KindInfo{
		Kind: k.Kind, Handled: k.Handled, Batches: s.Batch > 0, Gated: k.Gated, Known: k.Handled, Processes: k.Processes,
		Counters: store.KindCounters{Kind: k.Kind, Live: k.Live, Resting: k.Resting, Running: k.Running}, Limits: limitsOf(k.Limits),
		Pause: k.Pause,
		Settings: core.KindConfig{
			Level: s.Level, Timeout: time.Duration(s.Timeout), Lease: time.Duration(s.Lease), MaxAttempts: s.MaxAttempts,
			Backoff: time.Duration(s.Backoff), MaxBackoff: time.Duration(s.MaxBackoff), MaxRetryAfters: s.MaxRetryAfter, PauseAfter: s.PauseAfter,
			Grace: time.Duration(s.Grace), Spread: time.Duration(s.Spread), CatchUp: s.CatchUp, Disabled: s.Disabled,
			Batch: s.Batch, BatchWait: time.Duration(s.BatchWait), BatchBy: s.BatchBy,
		},
	}
	if s.Activity {
		out.Settings.Activity = &core.Activity{}
	}
	if k.Slots != nil {
		out.Slots = model.KindSlots{Total: k.Slots.Total, InUse: k.Slots.InUse}
	}
	return out
}

// span is a duration in JSON; zero is none at all, which core has another duration for.
type span time.Duration

// UnmarshalText reads one as Go writes it.
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if d == 0 {
		d = -time.Millisecond
	}
	*s = span(d)
	return err
}
