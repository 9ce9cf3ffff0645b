// Package declared keeps in the store what a process declares: limits, budgets, and what its host adds, such as the profiles and tasks of a file. A store that
// comes back empty has lost it, and its stamp with it: then nothing starts here until it is stored again.
package declared

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// stampEvery is how often a process that claims nothing asks whether its stamp is known: each claim asks for it besides.
const stampEvery = 5 * time.Second

// Declared is what this process declares, and knows of it. Its exported fields are set before it is used.
type Declared struct {
	Base    *base.Base
	Desk    *operate.Desk
	Limits  []bound.Limit
	Budgets []bound.Budget
	Busy    chan struct{} // has room for one element, and has it while they are stored, or their stamp is read

	// Set by Define: what the host adds.
	version string
	apply   func(ctx context.Context) error

	stamp   atomic.Pointer[string] // nil until all is stored once, or if there is nothing to store
	storing atomic.Bool            // by the call that is busy
	asked   time.Time              // when their stamp was last read
	turn    int                    // the partition whose stamp is read next
	left    bool                   // tasks had no room
}

// Define stores everything, with what a host adds under a version: apply stores that.
func (d *Declared) Define(ctx context.Context, version string, apply func(ctx context.Context) error) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	d.version, d.apply = version, apply
	return d.store(ctx)
}

// begin waits until no other call is busy with them, for no longer than the caller does.
func (d *Declared) begin(ctx context.Context) error {
	select {
	case d.Busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end lets the next call begin.
func (d *Declared) end() { <-d.Busy }

// Storing reports whether everything is being stored.
func (d *Declared) Storing() bool { return d.storing.Load() }

// Stamp is the stamp that claims of this process ask for; empty if it has nothing to lose.
func (d *Declared) Stamp() string {
	if stamp := d.stamp.Load(); stamp != nil {
		return *stamp
	}
	return ""
}

// Keep stores what this process declares unless it is stored, and asks now and then whether it still is.
func (d *Declared) Keep(ctx context.Context) error {
	if len(d.Limits)+len(d.Budgets) == 0 && d.stamp.Load() == nil {
		return nil
	}
	// guard: stamp-alone
	if d.stamp.Load() != nil && len(d.Busy) > 0 { // the call of another does it, and the store may be slow
		return nil
	}
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	if d.stamp.Load() == nil {
		return d.store(ctx)
	}
	now := d.Base.Config.Clock.Now()
	// guard: stamp-idle
	if now.Sub(d.asked) < stampEvery {
		return nil
	}
	d.asked = now
	partition := d.turn % d.Base.Store.Partitions()
	d.turn++
	known, err := d.Base.Store.Stamped(ctx, partition, d.Stamp())
	switch {
	case err != nil: // claims ask for it by themselves
		return nil // it is not known to be lost
	case !known:
		return d.storeAgain(ctx, partition)
	case d.left:
		return d.store(ctx)
	}
	return nil
}

// Check stores everything again, if one of some claims reports that the store has lost it. A failure to store it ends the pull: nothing
// may start without it.
func (d *Declared) Check(ctx context.Context, claims []store.Claim) error {
	for i := range claims {
		if claims[i].Unstamped {
			return d.lost(ctx, claims[i].Partition)
		}
	}
	return nil
}

// lost stores everything again, as a claim in a partition has found no stamp, unless that was done meanwhile.
func (d *Declared) lost(ctx context.Context, partition int) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	known, err := d.Base.Store.Stamped(ctx, partition, d.Stamp())
	if err != nil || known {
		return err
	}
	return d.storeAgain(ctx, partition)
}

// storeAgain is store for a store that has lost the definitions. No other call is busy with it.
func (d *Declared) storeAgain(ctx context.Context, partition int) error {
	const why = "the store has lost what this process had stored in it"
	d.Base.Config.Logger.ErrorContext(ctx, why+": limits, budgets and the file are applied again before anything starts", slog.Int("partition", partition),
		slog.String("todo", "find out why Redis came back without its data: a restart without persistence, a failover to an empty replica, or FLUSHALL"))
	err := d.store(ctx)
	e := model.Event{Type: model.EventReset, By: check.ByDuly, Reason: why}
	if err != nil {
		e.Error = check.Clip(err.Error())
	}
	d.Base.Emit(e)
	return err
}

// store stores everything, and then its stamp. No other call is busy with it.
func (d *Declared) store(ctx context.Context) error {
	d.storing.Store(true)
	defer d.storing.Store(false)
	err := d.Desk.SetLimits(ctx, d.Limits...)
	if err == nil {
		err = d.Desk.SetBudgets(ctx, d.Budgets...)
	}
	d.left = false
	if err == nil && d.apply != nil {
		if err = d.apply(ctx); errors.Is(err, store.ErrFull) {
			d.Base.Config.Logger.WarnContext(ctx, "tasks of this process cannot be stored as the store is full: they are tried again", slog.Any("err", err))
			d.left, err = true, nil
		}
	}
	if err != nil {
		return err
	}
	stamp, err := d.newStamp()
	if err != nil {
		return err
	}
	kept, err := d.Base.Store.Stamp(ctx, stamp, d.bounds()...)
	// guard: stamp-kept
	if err == nil && !kept {
		err = errLost
	}
	if err == nil {
		d.stamp.Store(&stamp)
		d.asked = d.Base.Config.Clock.Now()
	}
	return err
}

// errLost is of a store that fell back to what it was before.
var errLost = errors.New("keep what this process declares: limits or budgets of it were lost or lifted while it was stored; the next pull stores them again")

// bounds are what the store has to have before it keeps the stamp.
func (d *Declared) bounds() (of []bound.BudgetTarget) {
	for i := range d.Limits {
		of = append(of, bound.BudgetTarget{LimitTarget: d.Limits[i].About})
	}
	for i := range d.Budgets {
		of = append(of, d.Budgets[i].About)
	}
	return of
}

// newStamp is the stamp of everything that this process declares.
func (d *Declared) newStamp() (string, error) {
	all, err := json.Marshal(struct {
		Limits        []bound.Limit
		Budgets       []bound.Budget
		Zone, Version string
	}{d.Limits, d.Budgets, d.Base.Config.Zone, d.version})
	if err != nil {
		return "", fmt.Errorf("name the definitions: %w", err)
	}
	sum := sha256.Sum256(all)
	return strings.ToUpper(hex.EncodeToString(sum[:bound.StampLen/2])), nil
}
