package redisstore

// Repartition: the tasks of a stopped store change over to another number of partitions. All of them are copied first, beside the
// originals, then the copies take the places of the originals: see docs/decisions/0027-repartition.md.

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/count"
)

const verbRepartition = "repartition"

// undoIn bounds undoing a move that was cancelled.
const undoIn = time.Minute

// Repartitioning is the input of [Repartition].
type Repartitioning struct {
	// To is the number of partitions that the prefix is to have, a power of two up to 1024.
	To int
	// DryRun counts what would be moved, and refuses all that a move would; it changes nothing.
	DryRun bool
	// Progress, if not nil, is called between two steps, from one goroutine: how many of the agents, tasks and records are copied.
	Progress func(done, total int64)
}

// Repartitioned is the result of a move. No fault was found in the moved tasks.
type Repartitioned struct {
	From int `json:"from"`
	To   int `json:"to"`
	Moved
	// Undone is set if To was the number that the prefix had before a move that had not ended, and was undone.
	Undone bool `json:"undone,omitempty"`
}

// Repartition gives a prefix another number of partitions. Every process of the prefix has to be stopped: it refuses to begin while
// one announces itself or a run holds its lease, and no process can open the prefix before it ends. It needs memory for a second copy
// of all that is stored, and fails, with nothing changed, if there is not enough.
//
// If it is killed, the same call again brings it to its end, from wherever it was; as long as it was copying, a call with the number
// that the prefix had undoes it. Anything else that fails while it copies undoes it too. Errors say which it is.
func Repartition(ctx context.Context, config Config, r Repartitioning) (Repartitioned, error) {
	if !isPartitions(r.To) {
		return Repartitioned{}, misconfigured("To", r.To, "must be a power of two up to %d, not %d", maxPartitions, r.To)
	}
	config.moves, config.Partitions = true, 0
	s, err := Open(ctx, config)
	if err != nil {
		return Repartitioned{}, err
	}
	defer func() { _ = s.Close() }() // all that it did is acknowledged
	return s.repartition(ctx, r)
}

// mover moves the tasks of one store: it copies them, and has the copies take the places of the originals.
type mover struct {
	copier

	state *moving
	fresh *Store // the partitions that will be
}

// copier copies the tasks of one store beside the originals.
type copier struct {
	progress func(done, total int64)

	done, total int64

	old    *Store // the partitions that are
	copies *Store // those that will be, with names of their own until they are placed
	slots  *Store // those that are and those that will be: a tag may be one of either number

	holds  map[string]string           // in force in every partition, by scope
	bays   map[string]bool             // of the partition that is read: where tasks wait for the ends of holds
	parked map[string]map[string]int64 // base -> kind or '@' -> how many tasks
	found  []*stream                   // keys that copied ones have led to
}

// aim sets which partitions a mover is about; its state is known.
func (m *mover) aim(s *Store) {
	m.old = s.over(layout.PartitionsOf(s.config.Prefix, m.state.From))
	m.fresh = s.over(layout.PartitionsOf(s.config.Prefix, m.state.To))
	slots, copies := m.old.db.Parts, make([]layout.Partition, len(m.fresh.db.Parts))
	was := map[layout.Partition]bool{}
	for _, p := range slots {
		was[p] = true
	}
	for i, p := range m.fresh.db.Parts {
		copies[i] = layout.Partition{Base: p.Base + copyOf(m.state.Copy)}
		if !was[p] {
			slots = append(slices.Clip(slots), p)
		}
	}
	m.copies = s.over(copies)
	m.slots = s.over(slots)
}

// anyCopy begins the names of all copies, after the base of their partition.
const anyCopy = "moving:"

// copyOf begins those of an attempt.
func copyOf(attempt int64) string { return fmt.Sprintf("%s%d:", anyCopy, attempt) }

// repartition is Repartition on a store that is open.
func (s *Store) repartition(ctx context.Context, r Repartitioning) (Repartitioned, error) {
	m, err := s.newMover(ctx, r)
	if err != nil {
		return Repartitioned{}, err
	}
	answer := Repartitioned{From: m.state.From, To: r.To}
	if r.DryRun {
		answer.Moved, err = m.wouldMove(ctx)
		return answer, err
	}
	if err := m.begin(ctx); err != nil {
		return answer, err
	}
	if r.To == m.state.From {
		answer.Undone = true
		return answer, m.undo(ctx)
	}
	if m.state.Phase == copying {
		if err := m.copyAll(ctx); err != nil {
			return answer, m.undoFor(ctx, err)
		}
	}
	if m.state.Phase == dropping {
		if err := m.dropAll(ctx, func(name string) bool { return !strings.HasPrefix(name, copyOf(m.state.Copy)) }); err != nil {
			return answer, err
		}
		if err := m.next(ctx, placing); err != nil {
			return answer, err
		}
	}
	answer.Moved = m.state.Moved
	return answer, m.end(ctx)
}

// newMover reads how far a move is, or makes the state of one that has not begun. It refuses another number than that of a move that
// has not ended, except for the number that undoes it.
func (s *Store) newMover(ctx context.Context, r Repartitioning) (*mover, error) {
	asked := s.db.Client.Do(ctx, "HGETALL", s.key.name())
	if err := asked.Err(); err != nil {
		return nil, call.Wrap(verbRepartition, err)
	}
	stored := layout.FieldsOf(asked)
	state, moves, err := movingOf(stored)
	switch {
	case err != nil:
		return nil, s.duringAMove(s.key.name(), state, err)
	case !moves:
		state = &moving{From: len(s.db.Parts), To: r.To, Version: stored["version"]}
		if state.From == r.To {
			return nil, fmt.Errorf("the prefix %q has %d partitions already", s.config.Prefix, r.To)
		}
	case r.To == state.From && state.tooFar():
		return nil, fmt.Errorf("the prefix %q cannot have %d partitions again: its move to %d is too far. Run duly repartition --to %d --yes to its end first",
			s.config.Prefix, r.To, state.To, state.To)
	case r.To != state.To && r.To != state.From:
		return nil, fmt.Errorf("the prefix %q is being moved from %d to %d partitions, and not to %d: run duly repartition --to %d --yes to its end first",
			s.config.Prefix, state.From, state.To, r.To, state.To)
	}
	m := &mover{copier: copier{progress: r.Progress}, state: state}
	m.aim(s)
	return m, nil
}

// wouldMove counts what a move would copy.
func (m *mover) wouldMove(ctx context.Context) (Moved, error) {
	if m.state.tooFar() {
		return m.state.Moved, nil
	}
	if err := m.stopped(ctx); err != nil {
		return Moved{}, err
	}
	all, err := countAll(ctx, &m.old.db)
	return all.Moved, err
}

// begin closes the prefix, or takes a move over from the attempt before, which cannot continue from then on.
func (m *mover) begin(ctx context.Context) error {
	if m.state.Phase == "" {
		// Before the prefix is closed: a store that runs stays open.
		if err := m.stopped(ctx); err != nil {
			return err
		}
		if err := m.trial(ctx); err != nil {
			return err
		}
	}
	now, err := m.old.db.Time(ctx, verbRepartition)
	if err != nil {
		return err
	}
	next := *m.state
	next.Attempt = max(int64(now), m.state.Attempt+1)
	if !m.state.tooFar() { // copies that are not whole are made again
		next.Phase, next.Copy = copying, next.Attempt
	}
	if err := m.old.key.turn(ctx, m.state, &next); err != nil {
		return err
	}
	m.state = &next
	m.aim(m.old)
	return m.take(ctx)
}

// next stores that a phase begins.
func (m *mover) next(ctx context.Context, phase string) error {
	next := *m.state
	next.Phase = phase
	if err := m.old.key.turn(ctx, m.state, &next); err != nil {
		return err
	}
	m.state = &next
	return nil
}

// copyAll makes the copies, and proves them: they have no fault, and equal their originals.
func (m *mover) copyAll(ctx context.Context) error {
	if err := m.dropCopies(ctx); err != nil {
		return err
	}
	// Again, now that no other process can begin.
	if err := m.stopped(ctx); err != nil {
		return err
	}
	if err := m.recover(ctx); err != nil {
		return err
	}
	counters, err := countersOf(ctx, &m.old.db)
	if err != nil {
		return err
	}
	before, err := m.old.Stats(ctx)
	if err != nil {
		return err
	}
	moved, err := countAll(ctx, &m.old.db)
	if err != nil {
		return err
	}
	m.total = moved.Agents + moved.Tasks + moved.Records
	if err := m.copyPartitions(ctx); err != nil {
		return err
	}
	if err := m.fold(ctx, counters, &before); err != nil {
		return err
	}
	if err := m.proven(ctx, moved, &before); err != nil {
		return err
	}
	// Every change of a task changes a counter.
	if again, err := countersOf(ctx, &m.old.db); err != nil || !reflect.DeepEqual(again, counters) {
		return orElse(err, "a process that announces itself nowhere has changed the store meanwhile: stop it, then try again")
	}
	m.state.Moved = moved.Moved
	return m.next(ctx, dropping)
}

// orElse is an error, or one with a text if there is none.
func orElse(err error, text string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s", text)
}

// proven compares the copies with their originals. Counts of live tasks are set by the audit, from the tasks.
func (m *mover) proven(ctx context.Context, moved counted, before *count.Stats) error {
	const repair = "duly audit finds out more, and duly audit --repair mends what it can; then try again"
	for _, mend := range []bool{true, false} {
		faults, err := m.copies.auditAll(ctx, mend)
		if err != nil {
			return err
		}
		for _, f := range faults {
			// Counters of a partition, and its hint, do not exist yet.
			if mend && f.Agent == "" && f.ID == "" && (f.Code == audit.Miscounted || f.Code == audit.Asleep) {
				continue
			}
			return fmt.Errorf("the audit of the copy has found a fault (%s, agent %q, task %q): %s", f.Code, f.Agent, f.ID, repair)
		}
	}
	after, err := m.copies.Stats(ctx)
	if err != nil {
		return err
	}
	after.Partitions, after.Now = before.Partitions, before.Now
	if !reflect.DeepEqual(&after, before) {
		return fmt.Errorf("the copy has other counters than the store (%+v, not %+v): %s", after, *before, repair)
	}
	copied, err := countAll(ctx, &m.copies.db)
	if err == nil && copied != moved {
		err = fmt.Errorf("the copy has %+v, but the store %+v: %s", copied, moved, repair)
	}
	return err
}

// end gives the copies their names, looks at all of it once more, and opens the prefix again.
func (m *mover) end(ctx context.Context) error {
	if err := m.placeAll(ctx); err != nil {
		return err
	}
	faults, err := m.fresh.auditAll(ctx, false)
	if err != nil {
		return err
	}
	if err := m.old.key.reopen(ctx, m.state, m.state.To); err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("the audit of what was moved has found %d faults, such as %q of agent %q: run duly audit --repair",
			len(faults), faults[0].Code, faults[0].Agent)
	}
	return nil
}

// undo drops the copies and opens the prefix as it was. It records that first: if the answer was lost that the copies are whole, they are
// all that counts, and stay.
func (m *mover) undo(ctx context.Context) error {
	// guard: undone
	if err := m.next(ctx, undoing); err != nil {
		return err
	}
	if err := m.dropCopies(ctx); err != nil {
		return err
	}
	return m.old.key.reopen(ctx, m.state, m.state.From)
}

// undoFor undoes a move for an error, also if that is that the caller waits no longer.
func (m *mover) undoFor(ctx context.Context, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoIn)
	defer cancel()
	if m.state.Phase != copying {
		return why
	}
	if err := m.undo(ctx); err != nil {
		return fmt.Errorf("%w; nothing was changed, and the prefix stays closed: run duly repartition --to %d --yes again, or --to %d to undo it",
			why, m.state.To, m.state.From)
	}
	return fmt.Errorf("nothing was changed: %w", why)
}
