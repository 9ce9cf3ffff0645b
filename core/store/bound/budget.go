package bound

// Budgets: bounds on the use of runs within an hour, a day or a month.

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Budget bounds what the runs of some tasks use within each hour, day or month of a zone: starts, or units that the runs report, such
// as tokens or money. A run is charged when it ends, with what it reports as used, in the period that it ends in; its start is
// charged when it is claimed. Once a budget is used up none of its tasks starts before the period is over, or before the
// budget is raised: they wait in line, where they cost claims nothing. A claim reserves for a run what runs of its kind have used: the most of the
// last [UsualOf], or what the claim expects. A run starts beside others only if what nine in ten of those have used fits beside what is reserved, so
// that runs of equal use exceed no budget but with the last run, and others by what one used beyond that. The first run of a kind without known
// use starts beside no other such run. A budget that spans partitions reserves the same for runs of every kind.
type Budget struct {
	About  BudgetTarget
	Amount Amount
	Zone   string // an IANA name: where the period begins at the full hour, or at midnight
	// Clock is how far Zone is ahead of UTC. It is made when the budget is set, so that stores need no zones.
	Clock Clock
	Then  Then
	Note  []byte // ThenPause: the note of the pause, opaque
}

// BudgetTarget says which runs a budget is about, which of them it counts together, and what it counts. No two budgets have the same.
type BudgetTarget struct {
	LimitTarget
	Unit string `json:"unit"` // UnitRuns, or what runs report
	Per  Period `json:"per"`
}

// UnitRuns is the unit of starts, which every run has one of.
const UnitRuns = "runs"

// EachTask lets a budget count each task by itself. No limit does.
const EachTask Each = "task"

// Period is the length of time that a budget is for.
type Period string

// The periods. A day and a month begin at midnight in the budget's zone, or at the end of the gap where there is no midnight.
const (
	PerHour  Period = "hour"
	PerDay   Period = "day"
	PerMonth Period = "month"
)

// Then is how a budget that is used up treats its tasks.
type Then string

// How a budget treats its tasks once it is used up: they wait for the next period, they are paused until resumed, or they run on and it is reported.
const (
	ThenHold   Then = "hold"
	ThenPause  Then = "pause"
	ThenNotify Then = "notify"
)

// Amount is how much of something, in millionths.
type Amount int64

// AmountOne is one of something, and MostAmount the most that one budget, or one run, can have.
const (
	AmountOne  Amount = 1_000_000
	MostAmount        = 9_000_000_000 * AmountOne
)

// AmountOf is the amount of a number, to the nearest millionth.
func AmountOf(n float64) Amount { return Amount(math.Round(n * float64(AmountOne))) }

// String is the amount as a decimal number: 1200, or 0.02.
func (a Amount) String() string {
	text := fmt.Sprintf("%d.%06d", a/AmountOne, a%AmountOne)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalJSON writes a number.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON reads one.
func (a *Amount) UnmarshalJSON(data []byte) error {
	var n float64
	err := json.Unmarshal(data, &n)
	*a = AmountOf(n)
	return err
}

// Used is how much a run has used of a unit.
type Used struct {
	Unit   string
	Amount Amount
}

// Expected is how much a run of a kind is expected to use of a unit.
type Expected struct {
	Kind string
	Used
}

// UsualOf is how many runs of a kind are remembered, to estimate the usual use of one.
const UsualOf = 20

// Clock is how far local time is ahead of UTC, by when it changes.
type Clock []Ahead

// Ahead is how far local time is ahead from some time on: of the first one since ever.
type Ahead struct {
	Since moment.Millis
	By    time.Duration // whole seconds
}

// clockYears is how far ahead the changes of a clock are known. Budgets from a file are set again whenever a process starts.
const clockYears = 10

// ClockOf is the clock of a zone, from a time on for ten years.
func ClockOf(zone *time.Location, now time.Time) Clock {
	ahead := func(t time.Time) time.Duration {
		_, by := t.In(zone).Zone()
		return time.Duration(by) * time.Second
	}
	at := now.Add(-48 * time.Hour)
	clock := Clock{{By: ahead(at)}}
	for end := now.AddDate(clockYears, 0, 0); at.Before(end); {
		_, change := at.In(zone).ZoneBounds()
		if change.IsZero() || change.After(end) {
			break
		}
		if by := ahead(change); by != clock[len(clock)-1].By {
			clock = append(clock, Ahead{Since: moment.Of(change), By: by})
		}
		at = change
	}
	return clock
}

// at is how far local time is ahead, and since when.
func (c Clock) at(t moment.Millis) Ahead {
	out := Ahead{}
	for i, a := range c {
		if i > 0 && a.Since > t {
			break
		}
		out = a
	}
	return out
}

// End is when the period is over that a time is in.
func (c Clock) End(per Period, at moment.Millis) moment.Millis {
	now := c.at(at)
	local := at.Add(now.By).Time().UTC()
	switch per {
	case PerHour:
		local = local.Truncate(time.Hour).Add(time.Hour)
	case PerMonth:
		local = time.Date(local.Year(), local.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	default:
		local = time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, time.UTC)
	}
	end := moment.Of(local).Add(-now.By)
	if later := c.at(end); later.By != now.By { // clocks are changed before
		end = max(moment.Of(local).Add(-later.By), later.Since)
	}
	return end
}

// String is the clock in its stored form: how far ahead, in ms, then pairs of when that changes, in ms, and its new value.
func (c Clock) String() string {
	var b strings.Builder
	for i, a := range c {
		if i > 0 {
			fmt.Fprintf(&b, ",%d,", a.Since)
		}
		fmt.Fprintf(&b, "%d", a.By/time.Millisecond)
	}
	return b.String()
}

// ParseClock reads a clock as String writes it.
func ParseClock(text string) (Clock, error) {
	parts := strings.Split(text, ",")
	if len(parts)%2 == 0 {
		return nil, fmt.Errorf("a clock of %d parts", len(parts))
	}
	clock := make(Clock, (len(parts)+1)/2)
	for i, part := range parts {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, err
		}
		if i%2 == 0 {
			clock[i/2].By = time.Duration(n) * time.Millisecond
		} else {
			clock[i/2+1].Since = moment.Millis(n)
		}
	}
	return clock, nil
}

// BudgetChange sets a budget, or lifts it.
type BudgetChange struct {
	Budget
	Lift bool // only About counts then
}

// BudgetUse is a budget, and how much of it is used in the period that is now.
type BudgetUse struct {
	Budget
	// Used is what all together have used, UsedUp how many agents, keys or tasks have used theirs up (1 at most if it counts all together),
	// and Waiting the tasks that it holds back; as far as a bounded search has found them.
	Used   Amount
	UsedUp int
	// Reserved is what is reserved for runs under way, of a budget that a task waits for.
	Reserved Amount
	Waiting  int64
	Ends     moment.Millis // when the period ends
	Shares   []BudgetShare
}

// Share is how much of the amount is used, as in 0.5: of a budget that counts each by itself, by the one that has used most.
func (u *BudgetUse) Share() float64 {
	used := u.Used
	if u.About.Each != "" {
		used = 0
		for _, s := range u.Shares {
			used = max(used, s.Used)
		}
	}
	if u.Amount <= 0 {
		return 0
	}
	return float64(used) / float64(u.Amount)
}

// BudgetShare is what one agent, key or task has used of a budget that counts each by itself.
type BudgetShare struct {
	Of   string `json:"of"` // a task as agent:id
	Used Amount `json:"used"`
}

// MostShares is how many shares a BudgetUse has: those with the largest use.
const MostShares = 10

// Crossing says that a run has used up a budget.
type Crossing struct {
	About BudgetTarget
	Of    string        // the agent or key, where each counts by itself; the agent of the task
	Task  string        // its id, where each task counts by itself
	Ends  moment.Millis // when the period ends
}

// Crossed are the budgets that a run has used up.
type Crossed struct{ Budgets []Crossing }

// Add adds budgets to some, which may be nil.
func (c *Crossed) Add(all ...Crossing) *Crossed {
	if len(all) == 0 {
		return c
	}
	if c == nil {
		c = &Crossed{}
	}
	c.Budgets = append(c.Budgets, all...)
	return c
}

// String names what a budget is about, as in: 100 tokens a day of each agent needs no more than "tokens a day of each agent".
func (t BudgetTarget) String() string {
	return fmt.Sprintf("%s %s of %s", t.Unit, t.Per.Text(), t.LimitTarget)
}

// Text is a period as people say it, such as a day.
func (p Period) Text() string {
	if p == PerHour {
		return "an hour"
	}
	return "a " + string(p)
}

// budgetFields are those of a budget in JSON.
type budgetFields struct {
	Kind   string `json:"kind,omitempty"`
	Key    string `json:"limit_key,omitempty"`
	Each   Each   `json:"each,omitempty"`
	Unit   string `json:"unit"`
	Amount Amount `json:"amount"`
	Per    Period `json:"per"`
	Zone   string `json:"zone"`
	Then   Then   `json:"then"`
}

func (b *Budget) fields() budgetFields {
	return budgetFields{b.About.Kind, b.About.Key, b.About.Each, b.About.Unit, b.Amount, b.About.Per, b.Zone, b.Then}
}

func (f *budgetFields) budget() Budget {
	about := BudgetTarget{LimitTarget{Kind: f.Kind, Key: f.Key, Each: f.Each}, f.Unit, f.Per}
	return Budget{About: about, Amount: f.Amount, Zone: f.Zone, Then: f.Then}
}

// MarshalJSON writes the bounds of a budget.
func (b Budget) MarshalJSON() ([]byte, error) { return json.Marshal(b.fields()) }

// UnmarshalJSON reads what MarshalJSON writes, in this version or another. Input is read more strictly, by [core.ReadBudget].
func (b *Budget) UnmarshalJSON(data []byte) error {
	f := budgetFields{}
	err := json.Unmarshal(data, &f)
	*b = f.budget()
	return err
}

// budgetUseFields are those of a budget, and of how much of it is used.
type budgetUseFields struct {
	budgetFields

	Used    Amount        `json:"used"`
	UsedUp  int           `json:"used_up"`
	Waiting int64         `json:"waiting"`
	Ends    time.Time     `json:"ends_at"`
	Shares  []BudgetShare `json:"shares"`
}

// MarshalJSON writes a budget, and how much of it is used.
func (u BudgetUse) MarshalJSON() ([]byte, error) {
	shares := u.Shares
	if shares == nil {
		shares = []BudgetShare{}
	}
	return json.Marshal(budgetUseFields{u.fields(), u.Used, u.UsedUp, u.Waiting, u.Ends.Time(), shares})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (u *BudgetUse) UnmarshalJSON(data []byte) error {
	f := budgetUseFields{}
	err := json.Unmarshal(data, &f)
	*u = BudgetUse{Budget: f.budget(), Used: f.Used, UsedUp: f.UsedUp, Waiting: f.Waiting, Ends: moment.Of(f.Ends), Shares: f.Shares}
	return err
}

// Add counts the use of agents, keys or tasks, or of all together.
func (u *BudgetUse) Add(shares ...BudgetShare) {
	for _, s := range shares {
		u.Used += s.Used
		if s.Used >= u.Amount {
			u.UsedUp++
		}
		if u.About.Each != "" {
			u.Shares = append(u.Shares, s)
		}
	}
}

// SortBudgets puts budgets in the order of their targets, and the shares of each with the largest first.
func SortBudgets(all []BudgetUse) {
	sort.Slice(all, func(i, k int) bool { // slices.SortFunc is compiled again for each type
		a, b := &all[i].About, &all[k].About
		return slices.Compare([]string{a.Kind, a.Key, string(a.Each), a.Unit, string(a.Per)}, []string{b.Kind, b.Key, string(b.Each), b.Unit, string(b.Per)}) < 0
	})
	for i := range all {
		shares := all[i].Shares
		sort.Slice(shares, func(i, k int) bool {
			a, b := &shares[i], &shares[k]
			return a.Used > b.Used || a.Used == b.Used && a.Of < b.Of
		})
		all[i].Shares = shares[:min(len(shares), MostShares)]
	}
}
