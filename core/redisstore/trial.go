package redisstore

// The test run of the scripts: what a probe does in its partition.

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// trial is a store with a partition of its own, in which all scripts are run once: a user who lacks a command is refused before anything is stored.
// It shares the client and the scripts. No agent of a user is ever touched.
type trial struct{ *Store }

// tried is a trial of a store.
func (s *Store) tried(nonce string) trial {
	// One partition, so that every agent is in the probe's own.
	p := s.over([]layout.Partition{s.probePartition(nonce)})
	p.config.MaxTasks = DefaultMaxTasks // it makes more tasks than a user may allow an agent
	p.plain, p.swept = []call.Plain{{}}, make([]atomic.Pointer[sweep], 1)
	return trial{p}
}

// life is submit, claim, extend, settle, read, list, replay and sweep, then touch, hold and orders.
func (s trial) life(ctx context.Context, nonce string) error {
	if err := s.plainLife(ctx); err != nil {
		return err
	}
	s.plain[0].Never()
	task := func(id string) store.Submission {
		return store.Submission{Agent: "a", ID: id, Kind: "probe", Group: "g", Level: store.LevelLow}
	}
	alone := task("3") // the group ends with the other two
	alone.Group = ""
	if _, err := s.submitAll(ctx, []store.Submission{task("1"), task("2"), alone}, modeAll); err != nil {
		return err
	}
	// Claiming with no kinds makes the script park the tasks that it finds, so that the
	// second claim has to bring them back.
	if _, _, err := s.take(ctx, nil); err != nil { // parks
		return err
	}
	fence, tasks, err := s.take(ctx, []string{"probe"})
	if err != nil || len(tasks) == 0 {
		return errors.Join(err, errors.New("nothing was claimed"))
	}
	if _, err := s.Extend(ctx, []store.Extension{{Fence: fence, Lease: sweepEvery, Nonce: nonce[:min(len(nonce), store.NonceLen)], Back: []store.Run{tasks[0].Run}}}); err != nil {
		return err
	}
	progress := []store.Progress{{Run: tasks[0].Run, State: []byte("s")}}
	if _, err := s.Extend(ctx, []store.Extension{{Fence: fence, Lease: sweepEvery, Progress: progress}}); err != nil {
		return err
	}
	// One of each kind of ending: dead, for the replay below; completed; and due again.
	verbs := []store.Verb{store.VerbFail, store.VerbComplete, store.VerbAgain}
	var runs []store.Settlement
	for i, t := range tasks {
		runs = append(runs, store.Settlement{
			Run: t.Run, Verb: verbs[i%len(verbs)], Group: "g", State: []byte("s"), Kind: "probe",
			Tally: &store.RunStat{Kind: "probe", Failed: true},
		})
	}
	// The task that was submitted alone has no group.
	runs[len(runs)-1].Group = ""
	if err := s.settleEach(ctx, runs); err != nil {
		return err
	}
	if err := s.lookBack(ctx, tasks[0].ID); err != nil {
		return err
	}
	if err := s.operate(ctx); err != nil {
		return err
	}
	// Sweep with 1 ms of retention, so that it has something to drop.
	_, err = s.db.Run(ctx, "sweep", []call.Call{{Script: &s.db.Scripts.Sweep, Args: []any{"0", 1, "1|1"}}})
	return err
}

// lookBack reads what life has left, and puts the task that has failed back.
func (s trial) lookBack(ctx context.Context, failed string) error {
	if _, err := s.List(ctx, store.List{Agent: "a", Limit: 1}); err != nil {
		return err
	}
	if _, err := s.Group(ctx, "a", "g"); err != nil {
		return err
	}
	dead := store.Replay{Agent: "a", ID: failed, Kind: "probe", Group: "g", Level: store.LevelLow}
	_, err := s.Replay(ctx, []store.Replay{dead})
	return err
}

// settleEach settles runs, which may be in more than one step, and fails if one fails.
func (s trial) settleEach(ctx context.Context, runs []store.Settlement) error {
	settled, err := s.Settle(ctx, runs)
	for i := range settled {
		err = cmp.Or(err, settled[i].Err)
	}
	return err
}

// plainLife is submit, claim and settle as most tasks have them.
func (s trial) plainLife(ctx context.Context) error {
	task := store.Submission{Agent: "b", ID: "1", Kind: "plain", Level: store.LevelLow}
	if _, err := s.submitAll(ctx, []store.Submission{task}, modeAll); err != nil {
		return err
	}
	claims, err := s.Claim(ctx, []store.ClaimRequest{{Nonce: newNonce(), Kinds: []string{task.Kind}, Limit: 1, Lease: sweepEvery}})
	if err != nil {
		return err
	}
	if len(claims[0].Tasks) != 1 {
		return errors.New("nothing was claimed")
	}
	if err := s.settleEach(ctx, []store.Settlement{{Run: claims[0].Tasks[0].Run, Verb: store.VerbComplete, Kind: task.Kind}}); err != nil {
		return err
	}
	task.ID = "2"
	_, err = s.Claim(ctx, []store.ClaimRequest{{Nonce: newNonce(), Kinds: []string{task.Kind}, Limit: 1, Lease: sweepEvery, New: &task}})
	return err
}

// operate goes through the operator's verbs, looks, and announces a process, on a store that life made.
func (s trial) operate(ctx context.Context) error {
	touched := store.Touch{Agent: "a", ID: "4", Kind: "probe", Level: store.LevelLow}
	if o := s.touch(ctx, []store.Touch{touched}); o[0].err != nil {
		return o[0].err
	}
	if _, err := s.Look(ctx, []store.LookRequest{{Agents: []string{"a"}}}); err != nil {
		return err
	}
	if _, err := s.Announce(ctx, "probe", nil, sweepEvery); err != nil {
		return err
	}
	one := store.Target{Agent: "a", ID: "4"}
	_, err1 := s.Hold(ctx, []store.Hold{{Target: one, Until: moment.When{After: sweepEvery}}})
	_, err2 := s.RunNow(ctx, []store.RunNow{{Agent: "a", ID: "4"}})
	_, err3 := s.Unhold(ctx, []store.Target{one})
	_, err4 := s.Audit(ctx, []audit.Page{ // not t0, which begins a round that counts
		{Cursor: "t00", Repair: true}, {Cursor: "a0", Repair: true}, {Cursor: "g0", Repair: true},
	})
	_, err5 := s.Delete(ctx, []store.Deletion{{Agent: "a", ID: "4"}})
	_, err6 := s.Get(ctx, store.Get{Agent: "a", IDs: []string{"1", "2", "3"}, Explain: true})
	_, err7 := s.Agents(ctx, store.PageOf{Limit: 1})
	_, err8 := s.Limit(ctx, []bound.LimitChange{{Limit: bound.Limit{About: bound.LimitTarget{Kind: "probe"}}, Lift: true}})
	if err := cmp.Or(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		return err
	}
	_, err := s.Stats(ctx)
	return err
}

// take claims all due tasks of the probe's agent, for as long as a probe needs.
func (s trial) take(ctx context.Context, kinds []string) (store.Fence, []store.Claimed, error) {
	r := store.ClaimRequest{Nonce: newNonce(), Agents: []string{"a"}, Kinds: kinds, Limit: store.MaxClaim, Lease: sweepEvery}
	replies, err := s.db.Run(ctx, "claim", []call.Call{{Script: &s.db.Scripts.Claim, Args: claimArgs(&r, "")}})
	if err != nil {
		return 0, nil, err
	}
	c, err := parseClaim(0, replies[0])
	return c.Fence, c.Tasks, err
}

// newNonce is a nonce for a claim of the store's own.
func newNonce() string { return rand.Text()[:16] }
