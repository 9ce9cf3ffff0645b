package core

// RunDue and its scope: whose tasks, and how much of them; and pulls that several callers share: who leads one, who waits for it, and the cost of
// waiting.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/late"
)

// Scope says whose due tasks a pull runs, and how much of them.
type Scope struct {
	Agents      []string      // these agents; nil for all
	Partitions  []int         // with Agents nil: only agents of these partitions; nil for all
	MaxTasks    int           // most tasks to run; zero for no limit
	MaxDuration time.Duration // after which nothing more is claimed; zero for no limit
	PerAgent    int           // most tasks of one agent in one claim; zero for no limit
	Grace       time.Duration // how long running handlers may continue once the context is cancelled
	// AlarmAt is the time that the alarm was set for which this pull answers, as the clock outside was given it; zero if it is not known.
	AlarmAt time.Time
	// Idle, if set, is called once when the pull has nothing to claim for now, because nothing is due, MaxTasks is reached or
	// the store failed, while handlers may still run: with the time when something is due next as far as is known, or the
	// zero time. It is not called when the context or MaxDuration ended the claiming. It says whether the caller follows
	// with another pull: if not, this one still takes the occurrences of its own runs that become tasks of their own, and
	// looks again in the end.
	Idle func(next time.Time) (follows bool)
	// Join, if set, is called whenever the pull is about to claim. It returns which agents the pull is to serve from then on, as if they had
	// been among Agents, and which no longer. It must return at once.
	Join func() (in, out []string)
	// OnDue, if set, is called when a task that the pull has run is due again. It must not block.
	OnDue func(agent string, due time.Time)
	// OnTick, if set, is called for the ticks of this pull, as Config.OnTick is.
	OnTick func(Tick)
	// Series, if set, ties this pull to those before and after it: see [Series]. It is for hosts that pull again whenever
	// Idle, which has to be set too, was called.
	Series *Series
	loan   *loan // set if runs are lent, or have come back
}

// Tick is the work on the due tasks of one agent within one pull: it lasts from the claim of the first of them until no
// run is open.
type Tick struct {
	Agent    string
	Ended    bool          // false: it begins
	Tasks    int           // claimed in it: so far, or in all
	Duration time.Duration // how long it took, once it has ended
}

// RunDueTasks runs what is due for the given agents: one batched fetch, then one tick for each agent. It is RunDue with
// these agents; without agents it does nothing and calls no store.
func (s *Scheduler) RunDueTasks(ctx context.Context, agents []string) (Report, error) {
	if len(agents) == 0 {
		return Report{}, nil
	}
	return s.RunDue(ctx, Scope{Agents: agents})
}

// RunDue runs what is due within a scope. It claims tasks, runs and settles them until nothing is due, the scope's
// budget is spent, or the context's deadline minus Config.Margin is reached; then it waits for the handlers
// under way. While handlers run, each slot that comes free goes to the agent that has waited longest, in any partition:
// an agent that is never done keeps no other waiting.
// When the context is done nothing more is claimed, handlers are cancelled after the scope's grace, and what has not
// ended is released uncharged. On return nothing is left under lease, unless the store cannot be reached.
//
// The error is a *[RunsError] when handlers failed, although all healthy work was done and the report is whole, and an
// *[AwayError] when some partitions of the store did not answer, although the others were served; it may be both, joined. Any
// other error says why the pull ended early.
func (s *Scheduler) RunDue(ctx context.Context, scope Scope) (Report, error) {
	if err := scope.check(s); err != nil {
		return Report{}, err
	}
	if scope.Agents != nil && len(scope.Agents) == 0 {
		return Report{}, nil
	}
	if err := s.declared.Keep(ctx); err != nil {
		return Report{}, err
	}
	// guard: watches-of-named
	if scope.Agents != nil && s.base.Watching.Load() { // a fleet may have no pull that is for all agents
		scope.Agents = append(slices.Clone(scope.Agents), late.Agent)
	}
	p := newPull(ctx, s, scope)
	defer p.close()
	return p.runBooked()
}

// MaxAgents is the most agents that one scope names.
const MaxAgents = 1000

// check refuses a scope before any store call.
func (scope *Scope) check(s *Scheduler) error {
	if len(scope.Agents) > MaxAgents {
		return check.Invalid("agent_ids", "are %d: the limit is %d a call", len(scope.Agents), MaxAgents)
	}
	for i, agent := range scope.Agents {
		if err := check.ValidID(fmt.Sprintf("agent_ids[%d]", i), agent); err != nil {
			return err
		}
	}
	for _, p := range scope.Partitions {
		if p < 0 || p >= s.store.Partitions() {
			return check.Invalid("partitions", "must be between 0 and %d, not %d", s.store.Partitions()-1, p)
		}
	}
	switch {
	case scope.MaxTasks < 0:
		return check.Invalid("max", "must not be negative, not %d", scope.MaxTasks)
	case scope.MaxDuration < 0:
		return check.Invalid("timeout_ms", "must not be negative, not %s", scope.MaxDuration)
	case scope.PerAgent < 0:
		return check.Invalid("per_agent", "must not be negative, not %d", scope.PerAgent)
	case scope.Series != nil && (scope.Series.s != s || scope.Idle == nil):
		return check.Invalid("series", "must be made by the same scheduler, and its pulls must have Idle")
	}
	return nil
}

// RunTick runs tasks of one agent that were claimed with [Store.Claim] by the same process and lately, in the order given, and settles
// them. It never fetches. It refuses, without running anything, tasks of another agent.
//
// Decisions that a pull makes as it claims, RunTick makes when it begins: whether an occurrence has missed its time, is in quiet hours, is skipped
// or may overlap. How long tasks waited is not known: the waits and durations of their events begin with the tick. Claimed is no message
// between processes: Ref is binary, and JSON does not keep it. Claim and run tasks in one process, or let [Scheduler.RunDue] do both.
func (s *Scheduler) RunTick(ctx context.Context, agent string, claimed []Claimed) (Report, error) {
	for i := range claimed {
		if claimed[i].Agent != agent {
			return Report{}, check.Invalid(fmt.Sprintf("claimed[%d].agent_id", i), "is %q, not %q", claimed[i].Agent, agent)
		}
	}
	if len(claimed) == 0 {
		return Report{}, nil
	}
	p := newPull(ctx, s, Scope{Agents: []string{agent}})
	defer p.close()
	return p.runTick(agent, claimed)
}

// shortestPull is the least time that a pull gets whose caller has waited for others. With less it could start nothing, and the
// wait would have been for nothing too.
const shortestPull = time.Second

// RunShared is [Scheduler.RunDue] for hosts that are called by many callers at once, such as a server that answers a request with
// each pull. While a pull for the same scope is claiming, all further calls for it wait and share one pull after that: it claims
// what has fallen due meanwhile, so that a hundred callers cost the store no more than two. Handlers that still run do not block
// others. Callers of another scope share nothing.
//
// The time that a call waits is taken from the scope's MaxDuration, down to a second. A call whose context ends while it waits
// returns a report that says More and nothing else, as that of a pull that was cut off before it ran anything. If the call that
// leads a pull is cut off, those that wait for it do not get its report: one of them starts over.
//
// A scope with Idle, Join, OnDue, OnTick or Series is invalid: they would be called for the work of others.
func (s *Scheduler) RunShared(ctx context.Context, scope Scope) (Report, error) {
	if err := scope.checkShared(s); err != nil {
		return Report{}, err
	}
	if scope.Agents != nil && len(scope.Agents) == 0 {
		return Report{}, nil
	}
	clock := s.config.Clock
	begun, whole := clock.Now(), scope.MaxDuration
	return s.shared.Do(ctx, shareKey(scope), func(claimed func()) (Report, error) {
		scope.Idle = func(time.Time) bool { claimed(); return false }
		defer context.AfterFunc(ctx, claimed)() // its handlers have their grace then, and no other call has to wait for that
		if waited := clock.Now().Sub(begun); waited > 0 && whole > 0 {
			scope.MaxDuration = max(whole-waited, min(whole, shortestPull))
		}
		return s.RunDue(ctx, scope)
	})
}

// checkShared refuses a scope with functions in it: they would be called for one caller only.
func (scope *Scope) checkShared(s *Scheduler) error {
	if scope.Idle != nil || scope.Join != nil || scope.OnDue != nil || scope.OnTick != nil || scope.Series != nil {
		return check.Invalid("scope", "must have no Idle, Join, OnDue, OnTick or Series: a shared pull works for several callers")
	}
	return scope.check(s)
}

// shareKey is the same for scopes that ask for the same, in any order. Agents are quoted one by one: no name
// can be made to look like two.
func shareKey(s Scope) string {
	agents, partitions := slices.Clone(s.Agents), slices.Clone(s.Partitions)
	slices.Sort(agents)
	slices.Sort(partitions)
	var b strings.Builder
	fmt.Fprint(&b, s.Agents == nil, partitions, s.MaxTasks, s.MaxDuration, s.PerAgent, s.Grace)
	for _, agent := range agents {
		fmt.Fprintf(&b, "%q", agent)
	}
	return b.String()
}
