package redisstore

// The test run of the scripts when a store is opened, so that a missing permission shows at the start.

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/script"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// The probe is a test run of the scripts, so that a user who lacks a command is refused when the store is opened and not
// halfway through a script. It works in a partition of its own. Until its keys are removed it is on a list, as its process may
// be killed meanwhile: the next process that opens the store removes its remains.

const (
	probeKnown  = 24 * time.Hour // how long it is remembered that the probe has passed
	probeAlive  = time.Minute    // a probe that began before is dead
	mostRemoved = 10             // dead probes are removed in one Open
)

// probeKeys are all keys that the scripts make in the partition of a probe.
// A test compares the list with what is left in Redis after a probe, so
// that a new key is not forgotten.
var probeKeys = []string{
	"agenda", "agents", "tasks", "state", "claims", "leases", "ended", "finished", "counters", "due",
	"queue:3:a", "history:a", "parked", "parked:probe", "group:a:g", "pulse", "orders", "holds", "open", "kinds", "serial", "processes",
	"failures:probe", "ends:a", "dead:a", "stale", "failed", "gone", "groups", "answers", "bytes",
}

// probes are the probes that are known of a store, as one look finds them.
type probes struct {
	passed bool     // one has, and is remembered
	dead   []string // these were left unfinished
	now    int64    // by the clock of Redis, ms
}

// probe makes a test run of the scripts, unless Config.Remember lets it rely on one that has passed before.
func (s *Store) probe(ctx context.Context) error {
	known, err := s.lookForProbes(ctx)
	// The order is: look, clean up after others, and only then decide whether to probe.
	if err != nil {
		return probeError(err)
	}
	for _, nonce := range known.dead {
		_ = s.endProbe(ctx, nonce) // some idle keys; the next one tries again
	}
	if known.passed && s.config.Remember {
		return nil
	}
	// A nonce for the partition's name, so that two processes that open a
	// store at the same time do not meet.
	nonce := newNonce()
	// On the list before its first key exists: a kill between the two leaves a name
	// without keys, never keys without a name.
	if err := s.db.Client.Do(ctx, "ZADD", s.probeList(), known.now, nonce).Err(); err != nil {
		return s.orFull(ctx, err)
	}
	defer func() { _ = s.endProbe(context.WithoutCancel(ctx), nonce) }() // as above
	if err := s.life(ctx, nonce); err != nil {
		return s.orFull(ctx, err)
	}
	return s.orFull(ctx, s.db.Client.Do(ctx, "SET", s.probeMark(), 1, "PX", probeKnown.Milliseconds()).Err())
}

// orFull is the error of a probe, unless it is that memory is full: the store must open then, so that runs can end and make room.
func (s *Store) orFull(ctx context.Context, err error) error {
	// guard: full-open
	if err == nil || !errors.Is(call.Wrap("open", err), store.ErrFull) {
		return probeError(err)
	}
	s.config.Logger.WarnContext(ctx, "Redis is at maxmemory: tasks cannot be submitted, and whether its user may run every script was not tried",
		slog.String("todo", "give Redis more memory, or delete what is not needed: what runs and what is deleted makes room"))
	return nil
}

// lookForProbes asks in one round trip. The list is short: only a process
// that was killed leaves an entry.
func (s *Store) lookForProbes(ctx context.Context) (probes, error) {
	pipe := s.db.Client.Pipeline()
	mark := pipe.Do(ctx, "EXISTS", s.probeMark())
	list := pipe.Do(ctx, "ZRANGE", s.probeList(), 0, mostRemoved-1, "WITHSCORES")
	clock := pipe.Do(ctx, "TIME")
	if _, err := pipe.Exec(ctx); err != nil {
		return probes{}, err
	}
	known, err := mark.Int()
	if err != nil {
		return probes{}, err
	}
	found := probes{passed: known == 1, now: int64(layout.ParseTime(clock))}
	// By the clock of Redis alone, as the entries were written by other machines.
	for _, z := range layout.ScoresOf(list) {
		if int64(z.Score) < found.now-probeAlive.Milliseconds() {
			found.dead = append(found.dead, z.Member)
		}
	}
	return found, nil
}

// endProbe removes the keys of a probe, and then the probe from the list.
func (s *Store) endProbe(ctx context.Context, nonce string) error {
	args := []any{"UNLINK"}
	for _, key := range s.probePartition(nonce).Keys(probeKeys) {
		// All keys are in the slot of the probe's partition, so one UNLINK serves a cluster as well.
		args = append(args, key)
	}
	if err := s.db.Client.Do(ctx, args...).Err(); err != nil {
		return err
	}
	// Only now: if the UNLINK fails, the entry stays and the next Open tries again.
	return s.db.Client.Do(ctx, "ZREM", s.probeList(), nonce).Err()
}

// probeList is the ZSET of the probes that have not ended, by when they began.
func (s *Store) probeList() string { return s.config.Prefix + "probes" }

// probeMark is the key which records that a probe has passed: of these scripts, under this user, on this server.
// A new version of the scripts, another user or a restarted server may each lack something
// that this one has, and makes another key.
func (s *Store) probeMark() string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %q %q", s.db.Scripts.Submit.SHA, s.user, s.server) // a hash takes everything
	_, _ = h.Write([]byte(script.Index))                                         // the hashes of all
	return s.config.Prefix + "probed:" + hex.EncodeToString(h.Sum(nil)[:16])
}

// probePartition has braces around a name of its own: its keys share a slot, which
// is not that of a real partition's tag.
func (s *Store) probePartition(nonce string) layout.Partition {
	return layout.Partition{Base: s.config.Prefix + "{probe." + nonce + "}:"}
}

// probeError explains the failure of a probe.
func probeError(err error) error {
	if err == nil {
		return nil
	}
	if call.Denied(err) {
		return fmt.Errorf("the Redis user lacks a permission that duly needs: %w; see docs/guarantees.md for the ACL", err)
	}
	return fmt.Errorf("a test run of the scripts failed: %w", err)
}

// life is submit, claim, extend, settle, read, list, replay and sweep, then touch, hold and orders.
// The copy shares the client and the scripts, and has other partitions.
// No agent of a user is ever touched.
func (s *Store) life(ctx context.Context, nonce string) error {
	// One partition, so that every agent is in the probe's own.
	p := s.over([]layout.Partition{s.probePartition(nonce)})
	p.config.MaxTasks = DefaultMaxTasks // it makes more tasks than a user may allow an agent
	p.plain, p.swept = []call.Plain{{}}, make([]atomic.Pointer[sweep], 1)
	if err := p.plainLife(ctx); err != nil {
		return err
	}
	p.plain[0].Never()
	task := func(id string) store.Submission {
		return store.Submission{Agent: "a", ID: id, Kind: "probe", Group: "g", Level: store.LevelLow}
	}
	alone := task("3") // the group ends with the other two
	alone.Group = ""
	if _, err := p.submitAll(ctx, []store.Submission{task("1"), task("2"), alone}, modeAll); err != nil {
		return err
	}
	// Claiming with no kinds makes the script park the tasks that it finds, so that the
	// second claim has to bring them back.
	if _, _, err := p.take(ctx, nil); err != nil { // parks
		return err
	}
	fence, tasks, err := p.take(ctx, []string{"probe"})
	if err != nil || len(tasks) == 0 {
		return errors.Join(err, errors.New("nothing was claimed"))
	}
	if _, err := p.Extend(ctx, []store.Extension{{Fence: fence, Lease: sweepEvery, Nonce: nonce[:min(len(nonce), store.NonceLen)], Back: []store.Run{tasks[0].Run}}}); err != nil {
		return err
	}
	progress := []store.Progress{{Run: tasks[0].Run, State: []byte("s")}}
	if _, err := p.Extend(ctx, []store.Extension{{Fence: fence, Lease: sweepEvery, Progress: progress}}); err != nil {
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
	if err := p.settleEach(ctx, runs); err != nil {
		return err
	}
	if err := p.lookBack(ctx, tasks[0].ID); err != nil {
		return err
	}
	if err := p.operate(ctx); err != nil {
		return err
	}
	// Sweep with 1 ms of retention, so that it has something to drop.
	_, err = p.db.Run(ctx, "sweep", []call.Call{{Script: &p.db.Scripts.Sweep, Args: []any{"0", 1, "1|1"}}})
	return err
}

// lookBack reads what life has left, and puts the task that has failed back.
func (s *Store) lookBack(ctx context.Context, failed string) error {
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
func (s *Store) settleEach(ctx context.Context, runs []store.Settlement) error {
	settled, err := s.Settle(ctx, runs)
	for i := range settled {
		err = cmp.Or(err, settled[i].Err)
	}
	return err
}

// plainLife is submit, claim and settle as most tasks have them.
func (s *Store) plainLife(ctx context.Context) error {
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
func (s *Store) operate(ctx context.Context) error {
	touched := store.Touch{Agent: "a", ID: "4", Kind: "probe", Level: store.LevelLow}
	if o := s.touch(ctx, []store.Touch{touched}); o[0].err != nil {
		return o[0].err
	}
	if _, err := s.Look(ctx, []store.LookRequest{{Agents: []string{"a"}}}); err != nil {
		return err
	}
	if err := s.Announce(ctx, "probe", nil, sweepEvery); err != nil {
		return err
	}
	one := store.Target{Agent: "a", ID: "4"}
	_, err1 := s.Hold(ctx, []store.Hold{{Target: one, Until: store.When{After: sweepEvery}}})
	_, err2 := s.RunNow(ctx, []store.RunNow{{Agent: "a", ID: "4"}})
	_, err3 := s.Unhold(ctx, []store.Target{one})
	_, err4 := s.Audit(ctx, []store.AuditPage{ // not t0, which begins a round that counts
		{Cursor: "t00", Repair: true}, {Cursor: "a0", Repair: true}, {Cursor: "g0", Repair: true},
	})
	_, err5 := s.Delete(ctx, []store.Deletion{{Agent: "a", ID: "4"}})
	_, err6 := s.Get(ctx, store.Get{Agent: "a", IDs: []string{"1", "2", "3"}, Explain: true})
	_, err7 := s.Agents(ctx, store.PageOf{Limit: 1})
	_, err8 := s.Limit(ctx, []store.LimitChange{{Limit: store.Limit{About: store.LimitTarget{Kind: "probe"}}, Lift: true}})
	if err := cmp.Or(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		return err
	}
	_, err := s.Stats(ctx)
	return err
}

// take claims all due tasks of the probe's agent, for as long as a probe needs.
func (s *Store) take(ctx context.Context, kinds []string) (store.Fence, []store.Claimed, error) {
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
