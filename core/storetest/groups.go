package storetest

// Groups and their counts.

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest/whole"
	"github.com/seed-6f6f2c11/duly/internal/race"
)

// grouped is a task of agent a whose body names its group, as core's do.
// A reader of the body thus knows the group that the task had.
func grouped(id, group string) store.Submission {
	s := task("a", id)
	s.Group, s.Body = group, []byte(group)
	return s
}

// groupRounds does things to a few tasks of a few groups, as random as a store allows it, the way that core does them: it
// says of a task what it has read of it, which may have changed since.
// A caller may be wrong about a group, and the counts have to be right all the same.
type groupRounds struct {
	*bench

	rand *rand.Rand
	runs []store.Claimed
	seen map[string]store.Stored // of some tasks, as they were some time ago
}

// The empty one is no group, which has no counts.
var someGroups = []string{"", "g", "h", "i"}

func (r *groupRounds) id() string    { return fmt.Sprint(r.rand.IntN(4)) }
func (r *groupRounds) group() string { return someGroups[r.rand.IntN(len(someGroups))] }

// read is a task as it is, or as it was when it was read last.
func (r *groupRounds) read(id string) store.Stored {
	if old, ok := r.seen[id]; ok && r.rand.IntN(3) == 0 {
		return old
	}
	r.seen[id] = r.one("a", id)
	return r.seen[id]
}

// step does one random thing to one of four tasks.
func (r *groupRounds) step() {
	id := r.id()
	switch r.rand.IntN(9) {
	case 0:
		r.submit(grouped(id, r.group()))
	case 1, 2:
		t := r.read(id)
		s := grouped(id, r.group())
		s.Conflict, s.Version, s.OldGroup = store.ConflictReplace, t.Version, string(t.Body)
		_, _ = r.store.Submit(r.Context(), []store.Submission{s})
	// Refused where the task has changed since it was read, which is what
	// half of these rounds are about.
	case 3:
		r.runs = append(r.runs, r.claim(2).Tasks...)
	case 4:
		t := r.read(id)
		s := about(id)
		s.Version, s.Group = t.Version, string(t.Body)
		r.cancelled(store.Cancellation{Agent: s.Agent, ID: s.ID, Group: s.Group, Version: s.Version, Order: t.Body})
	case 5:
		s := about(id)
		s.Group = string(r.read(id).Body)
		r.delete(s)
	case 6:
		r.clock.Advance(time.Second)
	default:
		r.settleOne()
	}
}

// settleOne ends a run in the group that its task had when it was claimed, or that it had when it was cancelled.
// It may be out of date, and is then refused or asked to cancel.
func (r *groupRounds) settleOne() {
	if len(r.runs) == 0 {
		return
	}
	at := r.rand.IntN(len(r.runs))
	run := r.runs[at]
	verbs := []store.Verb{store.VerbComplete, store.VerbFail, store.VerbCancel, store.VerbAgain}
	s := store.Settlement{Run: run.Run, Kind: "k", Verb: verbs[r.rand.IntN(4)], Group: string(run.Body), Renewed: r.rand.IntN(2) == 0}
	err := r.settle(s)[0].Err
	if _, told := err.(*store.EndingError); told { //nolint:errorlint // a store returns it as it is
		s.Verb = store.VerbCancel
		err = r.settle(s)[0].Err
	}
	if err == nil || r.rand.IntN(2) == 0 {
		r.runs = append(r.runs[:at], r.runs[at+1:]...)
	}
}

// check compares the counts of all groups with what is live.
// The body of a live task says which group it is in.
func (r *groupRounds) check(round int) {
	live := map[string]int64{}
	for id := range 4 {
		if t := r.one("a", fmt.Sprint(id)); t.Status == store.StatusWaiting || t.Status == store.StatusInProgress {
			live[string(t.Body)]++
		}
	}
	for _, g := range someGroups[1:] {
		assert.Equal(r, live[g], r.bench.group(g).Live, "round %d, group %s", round, g)
	}
}

// testGroupsRandom demands that the counts of groups are right in the end, whatever was done to their tasks in any order.
// Rounds are seeded by their number, so that a failure can be repeated.
func testGroupsRandom(_ *testing.T, b *bench) {
	b.with(Options{})
	rounds := 300
	if race.Enabled { // one call after the other: .ci/run makes all without
		rounds /= 6
	}
	for round := range rounds {
		r := &groupRounds{bench: b, rand: rand.New(rand.NewPCG(uint64(round), 7)), seen: map[string]store.Stored{}}
		for range 30 {
			r.step()
		}
		r.check(round)
		if b.Failed() {
			return
		}
		for id := range 4 {
			// And once all is over, every group is empty.
			s := about(fmt.Sprint(id))
			s.Group = r.group()
			b.delete(s)
		}
		r.check(round)
		whole.Audit(b.T, b.store)
		b.clock.Advance(time.Hour)
	}
}

// A task that is moved to another group while it runs, and then cancelled or deleted, counts where it has been moved to,
// whatever group the caller takes it for.
// Only the store knows where the task is by now.
func testGroupMoved(t *testing.T, b *bench) {
	for _, to := range []string{"h", ""} {
		for _, end := range []string{"cancel", "delete", "again", "crash", "crash, and the caller knows of no group"} {
			b.with(Options{})
			b.submit(grouped("1", "g"))
			run := b.take("a/1").Tasks[0]
			s := grouped("1", to)
			s.Conflict, s.Version, s.OldGroup = store.ConflictReplace, b.one("a", "1").Version, "g"
			b.submit(s)
			cancelled := store.GroupCounts{}
			switch end {
			case "cancel":
				require.Equal(t, store.EffectOrdered, b.cancelled(b.cancel()).Code)
				b.ended(store.Settlement{Run: run.Run, Kind: "k", Verb: store.VerbCancel, Group: "g"})
				cancelled.Cancelled = 1
			case "delete":
				require.Equal(t, store.EffectDone, b.remove("1", "g"))
			case "again":
				renewed := again(run, 0)
				renewed.Renewed, renewed.Group = true, "g"
				b.ended(renewed)
				stale := complete(b.take("a/1").Tasks[0])
				stale.Group = "g"
				b.ended(stale)
				cancelled.Completed = 1
			default:
				b.clock.Advance(lease)
				stale := complete(b.take("a/1").Tasks[0])
				if end == "crash" {
					stale.Group = "i"
				}
				b.ended(stale)
				cancelled.Completed = 1
			}
			if to == "" {
				cancelled = store.GroupCounts{}
			} else {
				assert.Equal(t, cancelled, b.group(to), end)
			}
			assert.Equal(t, store.GroupCounts{}, b.group("g"), "%s to %q", end, to)
			assert.Equal(t, store.GroupCounts{}, b.group("i"), end)
			whole.Audit(t, b.store)
		}
	}
}
