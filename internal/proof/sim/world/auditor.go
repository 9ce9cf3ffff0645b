package world

// The auditor sees all that happens, and stops a history at the first promise that is not kept.

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// Its methods are called by the driver, but for what events and the reports of pulls hold: these come
// from other goroutines, for which it has the mutex.
type auditor struct {
	w      *World
	model  *storeModel
	tried  []int
	starts int
	saved  map[ref]int   // the last checkpoint of which a handler knows that it is stored
	since  time.Duration // when time last passed, and how many steps there were from then on
	atOnce int

	// Its parts, each for one sort of what happens.
	claims      claimAudit
	balances    balanceAudit
	beats       heartbeatAudit
	limits      limitAudit
	orders      orderAudit
	outcomes    outcomeAudit
	runs        runAudit
	settlements settlementAudit
	submits     submitAudit

	mu     sync.Mutex
	breach *Breach
}

func newAuditor(w *World) *auditor {
	a := &auditor{w: w, tried: make([]int, len(register))}
	a.claims = claimAudit{a}
	a.balances = balanceAudit{a}
	a.beats = heartbeatAudit{a}
	a.limits = limitAudit{a}
	a.orders = orderAudit{a}
	a.outcomes = outcomeAudit{a}
	a.runs = runAudit{a}
	a.settlements = settlementAudit{a}
	a.submits = submitAudit{a}
	a.model = a.watch(newModel(w))
	return a
}

// must asserts an invariant. It reports whether it was kept, so that a check that depends on it can be skipped.
// While deeds are repeated for a restored store it counts and reports nothing, as all of it was held
// before.
func (a *auditor) must(i *Invariant, kept bool, format string, args ...any) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.w.silent {
		return kept
	}
	a.tried[i.index]++
	if kept || a.breach != nil {
		return kept
	}
	a.breach = &Breach{Invariant: i, What: fmt.Sprintf(format, args...), At: fmt.Sprintf("after %.3fs", a.w.elapsed().Seconds())}
	a.w.trace("BREACH of %s (%s): %s", i.Name, i.Sentence, a.breach.What)
	return false
}

func (a *auditor) failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.breach != nil
}

// now is the store's clock as the store has it.
// Due times are compared with it in whole milliseconds, as the store keeps them.
func (a *auditor) now() moment.Millis { return moment.Millis(a.w.clock.Now().UnixMilli()) }

// known reports whether the store must, and whether it may, know an id: of a task that exists or has ended lately.
// Between the two ages the answer is the store's: it may have dropped the record already, and with it
// the id.
func (a *auditor) known(r ref) (must, may bool) {
	t := a.model.tasks[r]
	switch {
	case t == nil:
		return false, false
	case t.phase != ended:
		return true, true
	}
	age := a.now() - t.at
	return age < a.model.knownFor(), age < a.model.retention()
}

// holds reports whether a run has its task still.
func (a *auditor) holds(r *run) bool {
	t := a.model.live(ref{r.info.Agent, r.info.ID})
	return t != nil && t.phase == claimed && t.lease.fence == r.info.Fence && !a.takenBack(t)
}

// takenBack reports whether the store has taken a task back whose lease is over: the store sends no notice, so it is looked up.
// A store takes leases back when a claim finds them, and a claim may stop before it has looked at all.
// The model cannot know how far it came, so that it looks once lease.over says that it matters.
// Reading the store here goes past the bus and changes nothing.
func (a *auditor) takenBack(t *task) bool {
	if !t.lease.over {
		return false
	}
	found, err := a.w.store.Get(a.w.ctx, store.Get{Agent: t.agent, IDs: []string{t.id}})
	return err == nil && found.Tasks[0].Status != store.StatusInProgress
}

// heard is called with the error of each answer to a client.
// A request may fail because of a fault or a conflict. It may not fail as invalid, since every planned
// request is valid, nor with an error that has no code. A run of a store that has its past again may be of a task that it does not know, and so may
// one that has lost its task, whose record may be gone.
func (a *auditor) heard(err error, of *run) {
	code := core.CodeOf(err)
	if wrong, is := errors.AsType[*core.InvalidError](err); is && wrong.Field == "parent" && (a.w.restored || of != nil && !a.holds(of)) {
		return
	}
	a.must(errorsAreKnown, code != core.CodeInternal && code != core.CodeInvalid, "a client was answered: %v (%s)", err, code)
}

// ms is a time of the store, for people: it is formatted only if it is printed.
type ms moment.Millis

func (m ms) String() string {
	if m == 0 {
		return "never"
	}
	return fmt.Sprintf("%.3fs", float64(int64(m)-draw.Begin.UnixMilli())/1000)
}

// Breach is a promise that was not kept.
// It is the first one of its history: a later failure may only be its consequence.
type Breach struct {
	*Invariant

	What string // what was seen
	At   string // when
}

// String says which promise, and what was seen instead.
func (b *Breach) String() string {
	return fmt.Sprintf("%s: %s\n  %s, %s", b.Name, b.Sentence, b.At, b.What)
}
