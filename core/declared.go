package core

// What a process declares in the store: limits, budgets, and what its host adds, such as the profiles and tasks of a file. A store that
// comes back empty has lost it, and its stamp with it: then nothing starts here until it is stored again.

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

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// stampEvery is how often a process that claims nothing asks whether its stamp is known: each claim asks for it besides.
const stampEvery = 5 * time.Second

// Definitions are what a host declares in the store in addition to Config.Limits and Config.Budgets.
type Definitions struct {
	// Version distinguishes these from others: processes with the same one, the same limits and the same budgets rely on one another to have
	// stored them. A digest of them is a good one.
	Version string
	// Apply stores them. It is called again, by one goroutine at a time, whenever the store has lost them, and must leave alone what is already
	// right. It may submit tasks, and fail with CodeStoreFull once everything but tasks is stored: the rest is tried again later.
	Apply func(ctx context.Context) error
}

// declared is what this process knows of its definitions.
type declared struct {
	own   Definitions
	stamp atomic.Pointer[string] // nil until all is stored once, or if there is nothing to store

	busy    chan struct{} // has an element while they are stored, or their stamp is read
	storing atomic.Bool   // by the call that is busy
	asked   time.Time     // when their stamp was last read
	turn    int           // the partition whose stamp is read next
	left    bool          // tasks had no room
}

// Define stores the limits and budgets of the configuration and the definitions that the host adds, and makes sure that they are stored again if the
// store loses them: before anything else starts in this process. Call it once, before the first pull. Without it the limits and budgets of the
// configuration are stored by the first pull, and kept in the same way.
func (s *Scheduler) Define(ctx context.Context, d Definitions) error {
	if err := s.declared.begin(ctx); err != nil {
		return err
	}
	defer s.declared.end()
	s.declared.own = d
	return s.declare(ctx)
}

// begin waits until no other call is busy with them, for no longer than the caller does.
func (d *declared) begin(ctx context.Context) error {
	select {
	case d.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end lets the next call begin.
func (d *declared) end() { <-d.busy }

// stamped is the stamp that claims of this process ask for; empty if it has nothing to lose.
func (s *Scheduler) stamped() string {
	if stamp := s.declared.stamp.Load(); stamp != nil {
		return *stamp
	}
	return ""
}

// keepDeclared stores what this process declares unless it is stored, and asks now and then whether it still is.
func (s *Scheduler) keepDeclared(ctx context.Context) error {
	d := &s.declared
	if len(s.config.Limits)+len(s.config.Budgets) == 0 && d.stamp.Load() == nil {
		return nil
	}
	// guard: stamp-alone
	if d.stamp.Load() != nil && len(d.busy) > 0 { // the call of another does it, and the store may be slow
		return nil
	}
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	if d.stamp.Load() == nil {
		return s.declare(ctx)
	}
	now := s.config.Clock.Now()
	// guard: stamp-idle
	if now.Sub(d.asked) < stampEvery {
		return nil
	}
	d.asked = now
	partition := d.turn % s.store.Partitions()
	d.turn++
	known, err := s.store.Stamped(ctx, partition, s.stamped())
	switch {
	case err != nil: // claims ask for it by themselves
		return nil // it is not known to be lost
	case !known:
		return s.declareAgain(ctx, partition)
	case d.left:
		return s.declare(ctx)
	}
	return nil
}

// declaredLost stores everything again, as a claim in a partition has found no stamp, unless that was done meanwhile.
func (s *Scheduler) declaredLost(ctx context.Context, partition int) error {
	d := &s.declared
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	known, err := s.store.Stamped(ctx, partition, s.stamped())
	if err != nil || known {
		return err
	}
	return s.declareAgain(ctx, partition)
}

// declareAgain is declare for a store that has lost the definitions. No other call is busy with it.
func (s *Scheduler) declareAgain(ctx context.Context, partition int) error {
	const why = "the store has lost what this process had stored in it"
	s.config.Logger.ErrorContext(ctx, why+": limits, budgets and the file are applied again before anything starts", slog.Int("partition", partition),
		slog.String("todo", "find out why Redis came back without its data: a restart without persistence, a failover to an empty replica, or FLUSHALL"))
	err := s.declare(ctx)
	e := Event{Type: model.EventReset, By: check.ByDuly, Reason: why}
	if err != nil {
		e.Error = check.Clip(err.Error())
	}
	s.base.Emit(e)
	return err
}

// declare stores everything, and then its stamp. No other call is busy with it.
func (s *Scheduler) declare(ctx context.Context) error {
	d := &s.declared
	d.storing.Store(true)
	defer d.storing.Store(false)
	err := s.SetLimits(ctx, s.config.Limits...)
	if err == nil {
		err = s.SetBudgets(ctx, s.config.Budgets...)
	}
	d.left = false
	if err == nil && d.own.Apply != nil {
		if err = d.own.Apply(ctx); errors.Is(err, store.ErrFull) {
			s.config.Logger.WarnContext(ctx, "tasks of this process cannot be stored as the store is full: they are tried again", slog.Any("err", err))
			d.left, err = true, nil
		}
	}
	if err != nil {
		return err
	}
	stamp, err := s.newStamp()
	if err == nil {
		err = s.store.Stamp(ctx, stamp)
	}
	if err == nil {
		d.stamp.Store(&stamp)
		d.asked = s.config.Clock.Now()
	}
	return err
}

// newStamp is the stamp of everything that this process declares.
func (s *Scheduler) newStamp() (string, error) {
	all, err := json.Marshal(struct {
		Limits        []Limit
		Budgets       []Budget
		Zone, Version string
	}{s.config.Limits, s.config.Budgets, s.config.Zone, s.declared.own.Version})
	if err != nil {
		return "", fmt.Errorf("name the definitions: %w", err)
	}
	sum := sha256.Sum256(all)
	return strings.ToUpper(hex.EncodeToString(sum[:store.StampLen/2])), nil
}
