// Package world runs whole histories of duly in virtual time: several schedulers over one store, clients and operators that act at
// random, and a network, clocks and processes that fail. One seed is one history, and the same seed is the same history again.
//
// A history is planned from its seed ([PlanOf]), then played ([Play]) in one synctest bubble. All possible next steps are in a
// line: calls of the store, timers, handlers, requests, faults. Once every goroutine waits, the driver picks one of them by the
// seed, lets it happen, and waits again; so only one thing happens at a time, however many goroutines there are. An auditor sees
// each of them and compares it with what duly promises: see [Register].
package world

// A history while it is played, its story in lines that a person reads, and its store when that is given an older past, as after a failover to a replica
// that lacked the last writes.

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/stores"
)

// World is one history while it is played.
// What is above the mutex belongs to the driver, which acts only while all other goroutines wait; of it
// they change only pauses. What is below is written by goroutines of the processes and clients too.
type World struct {
	plan     *draw.Plan
	features []*feature
	ctx      context.Context //nolint:containedctx // of the whole history
	began    time.Time       // by the clock of the bubble
	open     stores.Open
	store    store.Store
	clock    *storeClock
	audit    *auditor
	story    *bytes.Buffer
	fences   map[store.Fence]int
	reader   *core.Scheduler // asks the store without the bus
	choices  draw.Dice       // what happens next
	fates    draw.Dice       // of calls
	pauses   draw.Dice

	processes []*process
	line      []candidate
	asked     int // of the planned requests
	befallen  int // of the planned faults
	faults    int // of calls
	steps     int
	saves     int    // of all handlers: each saves a higher number
	expected  []*run // whose contexts have to be done
	making    *call  // that the store carries out
	kind      bool   // no more faults
	kindAt    time.Duration
	full      bool
	fullUntil time.Duration
	defs      map[int]*draw.Definition
	begunRuns map[int]int // of a definition
	over      atomic.Bool
	deeds     []deed
	restores  bool // the store is going to be restored
	restored  bool // it was
	silent    bool // what happened is shown to a new model

	mu        sync.Mutex
	seq       int
	calls     []*call
	runs      []*run
	news      []news             // what events reported, in no order
	heard     []heard            // what clients were answered, in no order
	printed   map[ref]printedEnd // by tasks
	clients   int                // that wait for an answer
	said      int                // signals
	waits     waits
	called    map[string]bool
	posted    []post // the callbacks that were delivered, in no order
	posts     map[ref]int
	rings     []time.Duration // alarms that were set
	batches   []callOf        // calls of handlers of batches, in no order
	answers   map[asked]bool  // of gates
	questions map[ref]int
	numbers   map[ref]int // of the definitions that tasks have
}

// Result is how a history went.
// The story is empty unless it was asked for. Elapsed is virtual time.
type Result struct {
	Plan     *draw.Plan
	Breach   *Breach // nil if every promise was kept
	Story    string
	Steps    int
	Elapsed  time.Duration
	Tried    []int // how often each invariant of the register was tried
	Calls    int
	Starts   int
	Requests int
	Called   map[string]bool // verbs of the store, and Submission.Name for each field of a submission that was not empty
}

// Play plays a history.
// It needs a test, as the bubble of testing/synctest does. The plan is only read, and may be played
// again.
func Play(t *testing.T, plan *draw.Plan, open stores.Open, story bool) *Result {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // what one thing sets off runs in one order
	result := &Result{Plan: plan}
	defer func(old io.Reader) { rand.Reader = old }(rand.Reader)
	rand.Reader = &madeUp{from: draw.DiceOf(plan.Seed, 5)} // ids that are made up are in the order of calls, and in the story
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t.Context(), plan, open, story)
		w.history()
		w.end()
		if f, mortal := w.store.(stores.Mortal); mortal {
			f.End()
		}
		result.Breach, result.Steps, result.Elapsed, result.Tried = w.audit.breach, w.steps, w.elapsed(), w.audit.tried
		result.Starts, result.Requests, result.Called = w.audit.starts, w.asked, w.called
		if w.story != nil {
			result.Story = w.story.String()
		}
	})
	return result
}

// Each use of chance has a stream of its own, so that a change to one, such as fewer faults of calls,
// does not shift the draws of the others.
func newWorld(ctx context.Context, plan *draw.Plan, open stores.Open, story bool) *World {
	w := &World{
		plan: plan, features: features, ctx: context.WithoutCancel(ctx), began: time.Now(), open: open, fences: map[store.Fence]int{},
		choices: draw.DiceOf(plan.Seed, 2), fates: draw.DiceOf(plan.Seed, 3), pauses: draw.DiceOf(plan.Seed, 4), defs: map[int]*draw.Definition{},
		begunRuns: map[int]int{}, printed: map[ref]printedEnd{}, called: map[string]bool{}, answers: map[asked]bool{}, questions: map[ref]int{}, numbers: map[ref]int{},
	}
	if story {
		w.story = &bytes.Buffer{}
	}
	w.clock = &storeClock{w: w}
	st, err := open(&plan.Settings, w.clock)
	if err != nil {
		panic(err) // the test cannot go on
	}
	w.store = st
	w.audit = newAuditor(w)
	w.arrange()
	w.reader = w.newReader()
	w.restores = slices.ContainsFunc(plan.Faults, func(f draw.Fault) bool { return f.Kind == draw.FaultRestore })
	return w
}

// history plays what is planned, then lets the world become kind and wants everything to end.
// A history that has broken a promise is not continued: the kind world would only fail again.
func (w *World) history() {
	for i := range w.plan.Processes {
		p := w.newProcess(&w.plan.Processes[i], "p"+string(rune('1'+i)))
		go p.loop()
	}
	w.play(w.plan.Horizon, func() bool { return w.elapsed() >= w.plan.Horizon })
	if !w.audit.failed() {
		w.calm()
	}
}

// end lets every goroutine of the history end.
// A bubble ends only when all of its goroutines have. Each call that waits for the driver is let go with an
// error, round by round, as each goroutine may come back with another call; nothing is held any more.
func (w *World) end() {
	w.over.Store(true)
	for _, p := range w.processes {
		p.stop()
	}
	for {
		synctest.Wait()
		w.mu.Lock()
		calls, runs := w.calls, w.runs
		w.calls, w.runs = nil, nil
		var timers []*timer
		var naps []*nap
		waits := false
		for _, p := range w.processes {
			timers, naps = append(timers, p.timers...), append(naps, p.naps...)
			p.timers, p.naps = nil, nil
			waits = waits || !p.ended.Load()
		}
		waits = waits || w.clients > 0
		w.mu.Unlock()
		for _, c := range calls {
			c.fail(errCut)
		}
		for _, r := range runs {
			close(r.next)
		}
		for _, n := range naps {
			close(n.wake)
		}
		for _, t := range timers {
			go t.call()
		}
		if len(calls)+len(runs)+len(naps)+len(timers) == 0 && !waits {
			return
		}
		time.Sleep(time.Second)
	}
}

// madeUp generates ids that no client chose: the same ones in each play.
type madeUp struct {
	mu   sync.Mutex
	from draw.Dice
}

// Read never fails.
func (m *madeUp) Read(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range b {
		b[i] = byte(m.from.Uint32())
	}
	return len(b), nil
}

// trace adds a line to the story, if the story is wanted.
// The arguments are formatted only then: most histories are played without a story.
func (w *World) trace(format string, args ...any) {
	if w.story == nil {
		return
	}
	at := w.elapsed()
	line := strings.Map(printable, fmt.Sprintf(format, args...))    // bodies of tasks are bytes
	_, _ = fmt.Fprintf(w.story, "%9.3fs  %s\n", at.Seconds(), line) // to memory
}

// printable drops what a terminal would not show.
func printable(r rune) rune {
	if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
		return -1
	}
	return r
}

// fence numbers fences in the order in which they are seen: their own numbers say nothing to a reader.
func (w *World) fence(f store.Fence) fmt.Stringer { return shortFence{w, f} }

type shortFence struct {
	w *World
	f store.Fence
}

func (s shortFence) String() string {
	if s.w.fences[s.f] == 0 {
		s.w.fences[s.f] = len(s.w.fences) + 1
	}
	return fmt.Sprint("#", s.w.fences[s.f])
}

// deed is something that the store and the model have seen, so that both can be made again.
// It keeps the time of then, at which the new store has to see it: due times and leases depend on it.
type deed struct {
	at   time.Duration
	full bool
	do   func()
}

// remember keeps what happens now, for a plan that restores the store.
// Histories without a restore keep nothing, as that would only cost memory.
func (w *World) remember(do func()) {
	if w.restores {
		w.deeds = append(w.deeds, deed{w.elapsed(), w.full, do})
	}
}

// restore makes a new store and a new model, and replays to both what happened up to back before now. Processes and clients
// remember the rest.
// What was acknowledged in the seconds that are lost is gone by design: assertions about what processes
// and clients remember ask World.restored first. All others hold as before.
func (w *World) restore(back time.Duration) {
	until := w.elapsed() - back
	w.trace("the store has its past of %s ago", back)
	st, err := w.open(&w.plan.Settings, w.clock)
	if err != nil {
		panic(err) // the test cannot go on
	}
	story := w.story
	w.store, w.story, w.silent = st, nil, true
	w.audit.model, w.reader = w.audit.watch(newModel(w)), w.newReader()
	n := 0
	for ; n < len(w.deeds) && w.deeds[n].at <= until; n++ {
		then := draw.Begin.Add(w.deeds[n].at)
		w.clock.then, w.full = &then, w.deeds[n].full
		w.deeds[n].do()
	}
	now := draw.Begin.Add(until)
	w.clock.then = &now
	for _, r := range w.runs { // what was claimed before, and began since, goes on
		if t := w.audit.model.live(ref{r.info.Agent, r.info.ID}); !r.fresh && t != nil && t.phase == claimed && t.lease.fence == r.info.Fence && t.lease.began == nil {
			w.audit.runs.began(r)
		}
	}
	// What was forgotten must not come back with a second restore.
	w.deeds, w.clock.then = w.deeds[:n], nil
	w.story, w.silent, w.restored = story, false, true
}

// newReader asks the store without the bus.
func (w *World) newReader() *core.Scheduler {
	s, err := core.New(w.store, core.Config{Name: "auditor", Clock: w.clock})
	if err != nil {
		panic(err)
	}
	return s
}
