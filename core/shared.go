package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
)

// Pulls that several callers share: who leads one, who waits for it, and the cost of waiting.

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
	if err := s.checkShared(scope); err != nil {
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
func (s *Scheduler) checkShared(scope Scope) error {
	if scope.Idle != nil || scope.Join != nil || scope.OnDue != nil || scope.OnTick != nil || scope.Series != nil {
		return check.Invalid("scope", "must have no Idle, Join, OnDue, OnTick or Series: a shared pull works for several callers")
	}
	return s.check(scope)
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
