package stores

// The verbs of a store outside of the bubble.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/message"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// Each of them drops the context of the caller, and uses the whole test's: a deadline of the
// bubble means nothing outside, and the bus decides the fate of a call.
var _ store.Store = (*outside)(nil)

func (o *outside) Partitions() int { return o.store.Partitions() }

func (o *outside) Submit(_ context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	return on(o, func() ([]store.Submitted, error) { return o.store.Submit(o.ctx, tasks) })
}

func (o *outside) Touch(_ context.Context, touches []store.Touch) ([]store.Touched, error) {
	return on(o, func() ([]store.Touched, error) { return o.store.Touch(o.ctx, touches) })
}

func (o *outside) Look(_ context.Context, requests []store.LookRequest) ([]store.Look, error) {
	return on(o, func() ([]store.Look, error) { return o.store.Look(o.ctx, requests) })
}

func (o *outside) Claim(_ context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	return on(o, func() ([]store.Claim, error) { return o.store.Claim(o.ctx, requests) })
}

func (o *outside) Settle(_ context.Context, runs []store.Settlement) ([]store.Settled, error) {
	return on(o, func() ([]store.Settled, error) { return o.store.Settle(o.ctx, runs) })
}

// Turn is made of Settle and Claim.
func (o *outside) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	return store.InTurn(ctx, o, runs, requests)
}

func (o *outside) Extend(_ context.Context, leases []store.Extension) ([]store.Extended, error) {
	return on(o, func() ([]store.Extended, error) { return o.store.Extend(o.ctx, leases) })
}

func (o *outside) Replay(_ context.Context, tasks []store.Replay) ([]store.Effect, error) {
	return on(o, func() ([]store.Effect, error) { return o.store.Replay(o.ctx, tasks) })
}

func (o *outside) RunNow(_ context.Context, tasks []store.RunNow) ([]store.Effect, error) {
	return on(o, func() ([]store.Effect, error) { return o.store.RunNow(o.ctx, tasks) })
}

func (o *outside) Cancel(_ context.Context, tasks []store.Cancellation) ([]store.Effect, error) {
	return on(o, func() ([]store.Effect, error) { return o.store.Cancel(o.ctx, tasks) })
}

func (o *outside) Delete(_ context.Context, tasks []store.Deletion) ([]store.Effect, error) {
	return on(o, func() ([]store.Effect, error) { return o.store.Delete(o.ctx, tasks) })
}

func (o *outside) Hold(_ context.Context, holds []store.Hold) ([]store.Effect, error) {
	return on(o, func() ([]store.Effect, error) { return o.store.Hold(o.ctx, holds) })
}

func (o *outside) Unhold(_ context.Context, targets []store.Target) ([]store.Effect, error) {
	return on(o, func() ([]store.Effect, error) { return o.store.Unhold(o.ctx, targets) })
}

func (o *outside) Profile(_ context.Context, changes []store.ProfileChange) ([]store.Effect, error) {
	return on(o, func() ([]store.Effect, error) { return o.store.Profile(o.ctx, changes) })
}

func (o *outside) Replan(_ context.Context, tasks []store.Replan) ([]store.Effect, error) {
	return on(o, func() ([]store.Effect, error) { return o.store.Replan(o.ctx, tasks) })
}

func (o *outside) Forget(_ context.Context, r store.Remains) (string, error) {
	return on(o, func() (string, error) { return o.store.Forget(o.ctx, r) })
}

func (o *outside) ProfileOf(_ context.Context, agent string) ([]byte, error) {
	return on(o, func() ([]byte, error) { return o.store.ProfileOf(o.ctx, agent) })
}

func (o *outside) Profiles(_ context.Context, q store.PageOf) (store.ProfilePage, error) {
	return on(o, func() (store.ProfilePage, error) { return o.store.Profiles(o.ctx, q) })
}

func (o *outside) Limit(_ context.Context, changes []bound.LimitChange) ([]store.Effect, error) {
	return on(o, func() ([]store.Effect, error) { return o.store.Limit(o.ctx, changes) })
}

func (o *outside) Audit(_ context.Context, pages []audit.Page) ([]audit.Result, error) {
	return on(o, func() ([]audit.Result, error) { return o.store.Audit(o.ctx, pages) })
}

func (o *outside) Get(_ context.Context, q store.Get) (store.Found, error) {
	return on(o, func() (store.Found, error) { return o.store.Get(o.ctx, q) })
}

func (o *outside) Find(_ context.Context, q store.Find) (store.Page, error) {
	return on(o, func() (store.Page, error) { return o.store.Find(o.ctx, q) })
}

func (o *outside) List(_ context.Context, q store.List) (store.Page, error) {
	return on(o, func() (store.Page, error) { return o.store.List(o.ctx, q) })
}

func (o *outside) Agents(_ context.Context, q store.PageOf) (store.AgentPage, error) {
	return on(o, func() (store.AgentPage, error) { return o.store.Agents(o.ctx, q) })
}

func (o *outside) Holds(_ context.Context, q store.PageOf) (store.HoldPage, error) {
	return on(o, func() (store.HoldPage, error) { return o.store.Holds(o.ctx, q) })
}

func (o *outside) Group(_ context.Context, agent, group string) (store.GroupCounts, error) {
	return on(o, func() (store.GroupCounts, error) { return o.store.Group(o.ctx, agent, group) })
}

func (o *outside) Budget(_ context.Context, changes []bound.BudgetChange) ([]store.Effect, error) {
	return on(o, func() ([]store.Effect, error) { return o.store.Budget(o.ctx, changes) })
}

func (o *outside) Budgets(context.Context) ([]bound.BudgetUse, error) {
	return on(o, func() ([]bound.BudgetUse, error) { return o.store.Budgets(o.ctx) })
}

func (o *outside) Stamp(_ context.Context, stamp string, of ...bound.BudgetTarget) (bool, error) {
	return on(o, func() (bool, error) { return o.store.Stamp(o.ctx, stamp, of...) })
}

func (o *outside) Stamped(_ context.Context, partition int, stamp string) (bool, error) {
	return on(o, func() (bool, error) { return o.store.Stamped(o.ctx, partition, stamp) })
}

func (o *outside) Receive(_ context.Context, r message.Receipt) (message.Received, error) {
	return on(o, func() (message.Received, error) { return o.store.Receive(o.ctx, r) })
}

func (o *outside) Limits(context.Context) ([]bound.LimitUse, error) {
	return on(o, func() ([]bound.LimitUse, error) { return o.store.Limits(o.ctx) })
}

func (o *outside) Stats(context.Context) (count.Stats, error) {
	return on(o, func() (count.Stats, error) { return o.store.Stats(o.ctx) })
}

func (o *outside) Book(_ context.Context, b alarm.Booking) (alarm.Booked, error) {
	return on(o, func() (alarm.Booked, error) { return o.store.Book(o.ctx, b) })
}

func (o *outside) Confirm(_ context.Context, b alarm.Booking) error {
	_, err := on(o, func() (struct{}, error) { return struct{}{}, o.store.Confirm(o.ctx, b) })
	return err
}

func (o *outside) Signal(_ context.Context, signals []store.Signal) ([]store.Signalled, error) {
	return on(o, func() ([]store.Signalled, error) { return o.store.Signal(o.ctx, signals) })
}

func (o *outside) Heard(_ context.Context, waits []store.Wait) ([]*store.Told, error) {
	return on(o, func() ([]*store.Told, error) { return o.store.Heard(o.ctx, waits) })
}

func (o *outside) Tally(_ context.Context, t window.Tally) error {
	_, err := on(o, func() (struct{}, error) { return struct{}{}, o.store.(window.Recent).Tally(o.ctx, t) })
	return err
}

func (o *outside) Window(_ context.Context, slots int) (kinds []window.Kind, now moment.Millis, err error) {
	o.do(func() { kinds, now, err = o.store.(window.Recent).Window(o.ctx, slots) })
	return kinds, now, err
}

func (o *outside) Slots(_ context.Context, each time.Duration, n int) (slots []window.Slot, now moment.Millis, err error) {
	o.do(func() { slots, now, err = o.store.(window.Recent).Slots(o.ctx, each, n) })
	return slots, now, err
}
