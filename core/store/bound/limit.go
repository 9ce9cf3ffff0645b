// Package bound is what bounds the runs of tasks, over all processes: limits, and budgets of what they use.
package bound

// Limits: how many tasks of a sort run at once and start within a time, over all processes.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Limit bounds the runs of the tasks that it is about: how many there are at once, how many start within a time, or both. Tasks that
// it holds back wait in line, agent by agent in turn, where they cost claims nothing. A run counts from its claim until it ends, or
// until the lease of its process does.
type Limit struct {
	About       LimitTarget
	Concurrency int // most runs at once; 0 for any number
	// Rate is how many runs may start in each Per; 0 for any number. They are spread evenly: Burst is how many more may start at once
	// after a pause, so that within any time of Per no more than Rate + Burst do.
	Rate  int
	Per   time.Duration // whole milliseconds
	Burst int
	// Adaptive finds out by itself how much load the called service bears: once a run returns RetryAfter, nothing starts until then;
	// one goes first, and behind it half as many at once as before, no faster than was served between this refusal and the one before.
	// From then on there are more of them, and faster, until the next refusal. It starts with one run; Concurrency is the most it
	// comes to, and there is no Rate.
	Adaptive bool
}

// LimitTarget says which tasks a limit is about, and which of them it counts together. No two limits have the same.
type LimitTarget struct {
	Kind string `json:"kind,omitempty"`      // of this kind; empty for any
	Key  string `json:"limit_key,omitempty"` // that have this key; with a * at its end, a key that begins so; empty for any, and none
	Each Each   `json:"each,omitempty"`      // whether each agent, or each key, is bounded by itself
	// Agent is the agent whose profile the limit belongs to; empty for one of all agents.
	Agent string `json:"agent_id,omitempty"`
}

// Each says what a limit counts separately.
type Each string

// What a limit counts separately; empty for nothing: all tasks that it is about together.
const (
	EachAgent Each = "agent"
	EachKey   Each = "key"
)

// MostLimits is how many limits there may be: each claim reads them all. MostInProfile is how many limits and budgets a profile may have.
const (
	MostLimits    = 100
	MostInProfile = 20
)

// StampLen is the length of a stamp, which names the definitions of a process; MostStamps is how many a partition knows, those that were given last.
const (
	StampLen   = 24
	MostStamps = 32
)

// LimitChange sets a limit, or lifts it.
type LimitChange struct {
	Limit
	Lift bool // only About counts then
}

// LimitUse is a limit, and how much of it is used.
type LimitUse struct {
	Limit
	// Running, and Waiting in line; of a limit with Each those of all agents, or keys, together, as far as a bounded search has found
	// them.
	Running, Waiting int64
	Learned          []Learned // of an adaptive limit; see MostShares
}

// Learned is the state of an adaptive limit for one agent or key, or for all that it is about.
type Learned struct {
	Of        string        `json:"of,omitempty"` // the agent or key, where each counts by itself
	Runs      int           `json:"concurrency"`  // that there may be at once
	PerMinute float64       `json:"per_minute"`   // starts; zero while nothing was refused
	HeldUntil moment.Millis `json:"-"`            // when the first run may ask again; zero if it may now
	Probing   bool          `json:"probing"`      // one run asks again, and the others wait for its answer
}

// OfOneAgent reports whether all that is counted together is of one agent, and so in one partition.
func (t LimitTarget) OfOneAgent() bool {
	return t.Each == EachAgent || t.Each == EachTask || t.Agent != ""
}

// String names the target, as in: kind "k", limit key "s", each agent, each agent of kind "k", each limit key "openai:*".
func (t LimitTarget) String() string {
	var text string
	switch t.Each {
	case EachAgent:
		text = "each agent"
	case EachTask:
		text = "each task"
	case EachKey:
		text = "each limit key"
		if t.Key != "*" { // any key
			text += fmt.Sprintf(" %q", t.Key)
		}
	}
	if t.Kind != "" {
		text = strings.TrimPrefix(fmt.Sprintf("%s of kind %q", text, t.Kind), " of ")
	}
	if t.Key != "" && t.Each != EachKey {
		text = strings.TrimPrefix(fmt.Sprintf("%s with limit key %q", text, t.Key), " with ")
	}
	if t.Agent != "" {
		text = strings.TrimPrefix(fmt.Sprintf("%s of agent %q", text, t.Agent), " of ")
	}
	return cmp.Or(text, "everything")
}

// RateText is the rate of a limit in its usual notation, such as "60/1m"; empty if any number may start.
func (l *Limit) RateText() string {
	if l.Rate == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%s", l.Rate, moment.ShortDuration(l.Per))
}

// limitFields are those of a limit in JSON.
type limitFields struct {
	LimitTarget

	Concurrency int    `json:"concurrency,omitempty"`
	Rate        string `json:"rate,omitempty"`
	Burst       *int   `json:"burst,omitempty"`
	Adaptive    bool   `json:"adaptive,omitempty"`
}

// fields includes a burst of none: a limit without the field gets the default. Whose profile it belongs to is not among them.
func (l *Limit) fields() limitFields {
	f := limitFields{LimitTarget: l.About, Concurrency: l.Concurrency, Rate: l.RateText(), Adaptive: l.Adaptive}
	f.Agent = ""
	if l.Rate > 0 {
		f.Burst = &l.Burst
	}
	return f
}

// limit is the limit that has these fields. A rate in the notation of a later version is left out.
func (f *limitFields) limit() Limit {
	l := Limit{About: f.LimitTarget, Concurrency: f.Concurrency, Adaptive: f.Adaptive}
	n, per, _ := strings.Cut(f.Rate, "/")
	rate, err := strconv.Atoi(n)
	if d, wrong := time.ParseDuration(per); err == nil && wrong == nil {
		l.Rate, l.Per = rate, d
	}
	if f.Burst != nil {
		l.Burst = *f.Burst
	}
	return l
}

// MarshalJSON writes a limit with the fields that it has.
func (l Limit) MarshalJSON() ([]byte, error) { return json.Marshal(l.fields()) }

// UnmarshalJSON reads what MarshalJSON writes, in this version or another. Input is read more strictly, by [core.ReadLimit].
func (l *Limit) UnmarshalJSON(data []byte) error {
	f := limitFields{}
	err := json.Unmarshal(data, &f)
	*l = f.limit()
	return err
}

// limitUseFields are those of a limit, and of how much of it is used.
type limitUseFields struct {
	limitFields

	Running int64     `json:"running"`
	Waiting int64     `json:"waiting"`
	Learned []Learned `json:"learned,omitempty"`
}

// MarshalJSON writes a limit with the fields that it has, and how much of it is used.
func (u LimitUse) MarshalJSON() ([]byte, error) {
	return json.Marshal(limitUseFields{u.fields(), u.Running, u.Waiting, u.Learned})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (u *LimitUse) UnmarshalJSON(data []byte) error {
	f := limitUseFields{}
	err := json.Unmarshal(data, &f)
	*u = LimitUse{f.limit(), f.Running, f.Waiting, f.Learned}
	return err
}

type (
	plainLearned Learned

	learnedFields struct {
		*plainLearned

		HeldUntil *time.Time `json:"held_until,omitempty"`
	}
)

// MarshalJSON writes when a key is asked again as a time.
func (l Learned) MarshalJSON() ([]byte, error) {
	f := learnedFields{plainLearned: (*plainLearned)(&l)}
	if l.HeldUntil > 0 {
		at := l.HeldUntil.Time()
		f.HeldUntil = &at
	}
	return json.Marshal(f)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Learned) UnmarshalJSON(data []byte) error {
	f := learnedFields{plainLearned: (*plainLearned)(l)}
	err := json.Unmarshal(data, &f)
	if f.HeldUntil != nil {
		l.HeldUntil = moment.Of(*f.HeldUntil)
	}
	return err
}

// SortLimits puts limits in the order of their kind, key and Each.
func SortLimits(all []LimitUse) {
	sort.Slice(all, func(i, k int) bool { // slices.SortFunc is compiled again for each type
		a, b := &all[i].About, &all[k].About
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Each, b.Each)) < 0
	})
	for i := range all {
		learned := all[i].Learned
		sort.Slice(learned, func(i, k int) bool { return learned[i].Of < learned[k].Of })
		all[i].Learned = learned[:min(len(learned), MostShares)]
	}
}

// MadeUp is for how long an adaptive limit makes up for starts that came late, in ms.
const MadeUp moment.Millis = 100

// LearnedOf is the state of an adaptive limit: how many runs at once, ms between two starts or 0, until when nothing starts, and
// whether one run has to show first that it is served.
func LearnedOf(allow, gap float64, till moment.Millis, probing bool) Learned {
	l := Learned{Runs: int(allow), HeldUntil: till, Probing: probing}
	if gap > 0 {
		l.PerMinute = float64(time.Minute.Milliseconds()) / gap
	}
	return l
}
