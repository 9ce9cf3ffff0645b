// Package window is the runs of the last days, by kind, counted by one process and by all; and what was measured meanwhile. It is optional for a store,
// and only displays depend on it.
package window

import (
	"context"
	"math"
	"sort"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Recent is implemented by stores that keep counters of the runs of the last days.
type Recent interface {
	// Tally adds the counts of a process to the current slot. A tally whose Seq is not above the last one of its process in this slot is
	// one that was sent again, and adds nothing.
	Tally(ctx context.Context, t Tally) error
	// Window returns the counters of the last slots, of which the one of now is the last, by kind; and the time of the store. At most
	// KeptSlots and the one of now are known.
	Window(ctx context.Context, slots int) ([]Kind, moment.Millis, error)
	// Slots returns the counters of each of the last slots, oldest first, of which the one of now is the last; and the time of the store. A
	// slot in which nothing ran has no kinds. Slots of SlotTime are known for as long as Window adds them up, and of those of LongSlot, as of
	// these, Kept and the one of now.
	Slots(ctx context.Context, each time.Duration, slots int) ([]Slot, moment.Millis, error)
}

// Slot has the runs of one slot, by kind.
type Slot struct {
	Since moment.Millis
	Kinds []Kind // by name
	// Recovered is how many runs were taken back of processes that had died, by the name of the process.
	Recovered map[string]int64
	Levels
}

// Levels are what one process measured for all. Nil for what was not measured.
type Levels struct {
	// Depth is how many tasks waited, by kind: see count.KindCounters.
	Depth map[string]int64
	// Used is how much of a budget was used, in thousandths of its amount, by what it is about: of one that counts each by itself, by the one
	// that had used most.
	Used map[string]int64
}

// Slots: runs are counted in spans of this length, and known for a day.
const (
	SlotTime  = 5 * time.Minute
	KeptSlots = int(24 * time.Hour / SlotTime)
	// LongSlot is the length of slots that are known for longer, with the same counters.
	LongSlot = time.Hour
	// MostCounters is how many counters a slot has. Kinds beyond are not counted in it: a caller that invents kinds without end is not to
	// fill a Redis with them. A kind has some ten.
	MostCounters = 5000
)

// SlotOf is the number of the slot of a time, among slots of this length.
func SlotOf(at moment.Millis, each time.Duration) int64 { return int64(at) / each.Milliseconds() }

// Kept is how many slots of a length are known before the one of now: those of LongSlot for eight days.
func Kept(each time.Duration) int {
	if each == LongSlot {
		return int(8 * 24 * time.Hour / LongSlot)
	}
	return KeptSlots
}

// Tally has the counts of a process since its last one.
type Tally struct {
	Process string
	Seq     int64 // grows with each tally of the process
	Kinds   []Kind
	// Recovered is how many runs it has taken back of processes that had died, by their names.
	Recovered map[string]int64
	// Levels it has measured for all: the last that a slot gets are those that it keeps.
	Levels
}

// LagSteps is the number of counters that lags are sorted into: each step is longer than the one before by the square root of two, from a millisecond to
// a day.
const LagSteps = 54

// Kind are the runs of one kind within a time. Lags has how many of them were claimed how late: see LagStep.
type Kind struct {
	Kind           string
	Runs, Failures int64
	Lags           [LagSteps]int64
}

// LagStep is the step of a lag: 0 for less than a millisecond, and the last one for all that are longer than a day.
func LagStep(lag time.Duration) int {
	step := 0
	for end := 1.0; step < LagSteps-1 && float64(lag.Milliseconds()) >= end; step++ {
		end *= math.Sqrt2
	}
	return step
}

// Lag is the lag that a share of the runs did not exceed, such as 0.95: rounded up to the end of its step, so it is too long by 41 % at most.
// Zero if there were no runs.
func (k *Kind) Lag(share float64) time.Duration {
	var all, seen int64
	for _, n := range k.Lags {
		all += n
	}
	end := 1.0
	for _, n := range k.Lags {
		if seen += n; n > 0 && float64(seen) >= share*float64(all) {
			return time.Duration(end+0.999) * time.Millisecond
		}
		end *= math.Sqrt2
	}
	return 0
}

// Counter is one number of a slot, by the name that stores have for it.
type Counter struct {
	Name string
	N    int64
}

// Level reports whether the number replaces the one before it, in place of being added to it.
func (c Counter) Level() bool { return c.Name[0] == 'w' || c.Name[0] == 'u' }

// Counters are the numbers of a tally that are not zero, in the order of its kinds.
func (t *Tally) Counters() []Counter {
	var all []Counter
	add := func(name string, n int64) {
		if n != 0 {
			all = append(all, Counter{name, n})
		}
	}
	for i := range t.Kinds {
		k := &t.Kinds[i]
		add("r"+k.Kind, k.Runs)
		add("f"+k.Kind, k.Failures)
		for step, n := range k.Lags {
			add("l"+string([]byte{'0' + byte(step/10), '0' + byte(step%10)})+k.Kind, n)
		}
	}
	for process, n := range t.Recovered {
		add("d"+process, n)
	}
	for kind, n := range t.Depth {
		all = append(all, Counter{"w" + kind, n})
	}
	for budget, n := range t.Used {
		all = append(all, Counter{"u" + budget, n})
	}
	return all
}

// Table gathers the counters of slots. The zero value is empty.
type Table struct {
	kinds map[string]*Kind
	// Recovered is how many runs were taken back of processes that had died, by their names; nil for none.
	Recovered map[string]int64
	Levels
}

// Add adds a counter of a slot; it passes over other names.
func (t *Table) Add(name string, n int64) {
	if name == "" || name[0] == '@' { // the last tally of a process
		return
	}
	what, kind, step := name[0], name[1:], 0
	switch what {
	case 'd':
		t.Recovered = put(t.Recovered, kind, t.Recovered[kind]+n)
		return
	case 'w':
		t.Depth = put(t.Depth, kind, n)
		return
	case 'u':
		t.Used = put(t.Used, kind, n)
		return
	}
	if what == 'l' && len(kind) >= 2 {
		step = int(kind[0]-'0')*10 + int(kind[1]-'0')
		kind = kind[2:]
	}
	if t.kinds == nil {
		t.kinds = map[string]*Kind{}
	}
	k := t.kinds[kind]
	if k == nil {
		k = &Kind{Kind: kind}
		t.kinds[kind] = k
	}
	switch {
	case what == 'r':
		k.Runs += n
	case what == 'f':
		k.Failures += n
	case what == 'l' && step < LagSteps:
		k.Lags[step] += n
	}
}

// put sets a number of a map, which may be nil.
func put(m map[string]int64, name string, n int64) map[string]int64 {
	if m == nil {
		m = map[string]int64{}
	}
	m[name] = n
	return m
}

// Slot is what was gathered, as of one slot.
func (t *Table) Slot(since moment.Millis) Slot {
	return Slot{Since: since, Kinds: t.Sorted(), Recovered: t.Recovered, Levels: t.Levels}
}

// Sorted are the gathered kinds, by name.
func (t *Table) Sorted() []Kind {
	out := make([]Kind, 0, len(t.kinds))
	for _, k := range t.kinds {
		out = append(out, *k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Kind < out[j].Kind })
	return out
}
