package main

// The fleet of the scale measurement: which sorts of agents it has, what their tasks are, and when these are due.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// What agents of a fleet have. The nightly tasks are spread over a night. Agents with one-offs have one due each day, so that
// each has as many finished records as there are days for which records are kept.
const (
	fleetNight   = 4 * time.Hour
	fleetDay     = 24 * time.Hour
	fleetLeast   = 5 * time.Minute  // between two polls
	fleetMost    = 15 * time.Minute // the same
	fleetRecords = 7                // days for which the record of a finished task is kept
	fleetBacklog = 20               // waiting tasks of an agent that has many
	fleetLater   = 6 * time.Hour    // until the night begins: no measurement takes so long
)

// leastFleet is the smallest fleet that has enough agents of each sort for the windows.
const leastFleet = 20_000

// rhythm says when the tasks of a sort of agents are due.
type rhythm int

const (
	nights rhythm = iota
	polls
	days
)

// agentSort is a sort of agents.
type agentSort struct {
	name     string
	perMille int
	rhythm   rhythm
	waiting  int // tasks of each
	past     int // runs or records of each
	agents   int // of the fleet
	agent    int // the number of the first
	number   int // the number of the first task
	moved    int // agents whose task has been made due in some window
	each     int // tasks of each, waiting and finished ones
}

// newSorts are the sorts of a fleet. Those that differ in their past alone are apart, so that a history can be weighed.
func newSorts(history int) []*agentSort {
	return []*agentSort{
		{name: "a nightly task", perMille: 828, rhythm: nights, waiting: 1},
		{name: fmt.Sprintf("a nightly task, %d finished runs", history), perMille: 92, rhythm: nights, waiting: 1, past: history},
		{name: fmt.Sprintf("a task every 5 to 15 minutes, %d finished runs", history), perMille: 20, rhythm: polls, waiting: 1, past: history},
		{name: "a one-off within a day, 7 kept records", perMille: 50, rhythm: days, waiting: 1, past: fleetRecords},
		{name: "20 one-offs, 7 kept records", perMille: 10, rhythm: days, waiting: fleetBacklog, past: fleetRecords},
	}
}

// fleet is many agents of several sorts, and what their runs did.
type fleet struct {
	sorts []*agentSort
	night time.Time // when the first nightly tasks are due
	last  []atomic.Int64
	runs  atomic.Int64
	early atomic.Int64
	twice atomic.Int64

	mu   sync.Mutex
	on   bool
	late []float64 // ms
}

// newFleet shares agents out among the sorts; the first has what is left over. A recurring task with a history has so many runs.
func newFleet(agents, history int, now time.Time) *fleet {
	f := &fleet{sorts: newSorts(history), night: now.UTC().Add(fleetLater).Truncate(time.Hour)}
	left := agents
	for _, s := range f.sorts[1:] {
		s.agents = max(agents*s.perMille/1000, 1)
		left -= s.agents
	}
	f.sorts[0].agents = left
	agent, number := 0, 0
	for _, s := range f.sorts {
		s.each = s.waiting
		if s.rhythm == days {
			s.each += s.past
		}
		s.agent, s.number = agent, number
		agent += s.agents
		number += s.agents * s.each
	}
	f.last = make([]atomic.Int64, number)
	return f
}

// run notes a run: no occurrence may run twice, nor before it is due.
func (f *fleet) run(t *core.Task[payload]) {
	late := time.Since(t.Due)
	f.runs.Add(1)
	if late < 0 {
		f.early.Add(1)
	}
	if at := t.Occurrence.UnixNano(); f.last[t.Payload.N].Swap(at) >= at {
		f.twice.Add(1)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.on {
		f.late = append(f.late, milliseconds(late))
	}
}

// watch begins or ends the noting of how late runs are, and returns what was noted.
func (f *fleet) watch(on bool) []float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	late := f.late
	f.on, f.late = on, nil
	return late
}

// check fails if any run was wrong.
func (f *fleet) check() error {
	if early, twice := f.early.Load(), f.twice.Load(); early+twice > 0 {
		return fmt.Errorf("of %d runs %d came early and %d a second time", f.runs.Load(), early, twice)
	}
	return nil
}

// scatter spreads whole numbers over [0, 1), so that neighbours are far apart and any number of them is even.
func scatter(i int) float64 {
	_, fraction := math.Modf(float64(i+1) * math.Phi)
	return fraction
}

// task is task k of agent i of a sort, without a schedule. Those with k of waiting and more are the finished ones.
func (s *agentSort) task(i, k int) core.NewTask {
	agent := s.agent + i
	id := fmt.Sprintf("task-%02d", k)
	return core.NewTask{
		Agent: fmt.Sprintf("agent-%09d", agent), ID: id, Kind: kind, Payload: newPayload(s.number+i*s.each+k, 0),
	}
}

// remade reports whether the waiting tasks have made their history under another schedule.
func (s *agentSort) remade() bool { return s.past > 0 && s.rhythm != days }

// again is a task of a sort that exists already, and is to have another due time.
func (s *agentSort) again(i, k int) core.NewTask {
	t := s.task(i, k)
	t.OnConflict = core.OnConflictReplace
	return t
}

// planned is a waiting task that is due in its own time, none of them before the measurements have ended.
func (f *fleet) planned(s *agentSort, i, k int) core.NewTask {
	t := s.task(i, k)
	if s.remade() {
		t = s.again(i, k)
	}
	switch s.rhythm {
	case nights:
		at := f.night.Add(time.Duration(scatter(i) * float64(fleetNight)))
		t.Cron = fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour())
		t.Jitter = time.Minute
	case polls:
		t.Every, t.Delay = s.every(i), fleetLater
	case days:
		t.Delay = fleetLater + time.Duration((scatter(i)+float64(k))*float64(fleetDay))
	}
	return t
}

// every is the interval of a poll.
func (*agentSort) every(i int) time.Duration {
	return (fleetLeast + time.Duration(scatter(i)*float64(fleetMost-fleetLeast))).Round(time.Second)
}

// perSecond is how many runs a second a sort has on average, in the night or by day.
func (s *agentSort) perSecond(night bool) float64 {
	n := float64(s.agents)
	switch {
	case s.rhythm == nights && night:
		return n / fleetNight.Seconds()
	case s.rhythm == polls:
		least, most := fleetLeast.Seconds(), fleetMost.Seconds()
		return n * math.Log(most/least) / (most - least) // the mean of 1/interval
	case s.rhythm == days:
		return n / fleetDay.Seconds()
	}
	return 0
}

// perSecond is how many runs a second the fleet has.
func (f *fleet) perSecond(night bool) float64 {
	sum := 0.0
	for _, s := range f.sorts {
		sum += s.perSecond(night)
	}
	return sum
}

// submitAll stores the waiting tasks of all agents of a sort.
func (f *fleet) submitAll(ctx context.Context, d *duly, s *agentSort) error {
	return d.submit(ctx, 0, s.agents*s.waiting, func(i int) core.NewTask { return f.planned(s, i/s.waiting, i%s.waiting) })
}

// pastPasses bounds how often recurring tasks are run until each has its history: so many times the runs of one.
const pastPasses = 3

// makePast gives the agents of a sort their finished runs or records: by running them.
func (s *agentSort) makePast(ctx context.Context, d *duly) error {
	if s.rhythm == days {
		n := s.agents * s.past
		err := d.submit(ctx, 0, n, func(i int) core.NewTask { return s.task(i/s.past, s.waiting+i%s.past) })
		if err != nil {
			return err
		}
		return d.drain(ctx, n)
	}
	err := d.submit(ctx, 0, s.agents, func(i int) core.NewTask {
		t := s.task(i, 0)
		t.Every = steadyEvery
		return t
	})
	for pass := 0; err == nil && pass < pastPasses*s.past; pass++ {
		if !pause(ctx, steadyPause) {
			return ctx.Err()
		}
		if err = d.pass(ctx, s.agents); err == nil && pass+1 >= s.past {
			var full bool
			if full, err = s.full(ctx, d); full {
				return err
			}
		}
	}
	return errors.Join(err, errors.New("the histories did not fill"))
}

// full looks at some of the tasks: those that ran least often are among the last that were submitted.
func (s *agentSort) full(ctx context.Context, d *duly) (bool, error) {
	for _, i := range []int{0, s.agents / 2, s.agents - 1} {
		t := s.task(i, 0)
		info, err := d.Task(ctx, t.Agent, t.ID)
		if err != nil || len(info.Runs) < s.past {
			return false, err
		}
	}
	return true, nil
}

// move makes as many tasks of a sort due in a window as are due in such a time on average, times a factor. It returns once they
// are stored; start has to be far enough away for that.
func (s *agentSort) move(ctx context.Context, d *duly, w *window) error {
	if s.rhythm == polls {
		return d.submit(ctx, 0, s.agents, func(i int) core.NewTask {
			t := s.again(i, 0)
			t.Every = max(s.every(i)/time.Duration(w.factor), time.Second)
			t.Delay = w.until(scatter(i+w.factor), t.Every)
			return t
		})
	}
	first, n := s.moved, int(math.Round(s.perSecond(w.night)*w.length.Seconds()*float64(w.factor)))
	if first+n > s.agents {
		return fmt.Errorf("a fleet of so few agents has no %d left with %s", n, s.name)
	}
	s.moved += n
	return d.submit(ctx, 0, n, func(k int) core.NewTask {
		t := s.again(first+k, 0)
		if s.rhythm == nights {
			t.Cron, t.Jitter = fmt.Sprintf("%d %d %d * * *", w.start.Second(), w.start.Minute(), w.start.Hour()), w.length
			return t
		}
		t.Delay = w.until(scatter(k), w.length)
		return t
	})
}

// agentsOf pages through all agents, and returns how many there are.
func agentsOf(ctx context.Context, d *duly) (int, error) {
	n := 0
	for after := ""; ; {
		page, err := d.store.Agents(ctx, store.PageOf{After: after, Limit: inspect.MaxPage})
		if err != nil {
			return n, err
		}
		n += len(page.Agents)
		if after = page.Next; after == "" {
			return n, nil
		}
	}
}
