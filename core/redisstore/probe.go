package redisstore

// The test run of the scripts when a store is opened, so that a missing permission shows at the start.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
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
		return probeError(s.name, err)
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
	if err := s.tried(nonce).life(ctx, nonce); err != nil {
		return s.orFull(ctx, err)
	}
	return s.orFull(ctx, s.db.Client.Do(ctx, "SET", s.probeMark(), 1, "PX", probeKnown.Milliseconds()).Err())
}

// orFull is the error of a probe, unless it is that memory is full: the store must open then, so that runs can end and make room.
func (s *Store) orFull(ctx context.Context, err error) error {
	// guard: full-open
	if err == nil || !errors.Is(call.Wrap("open", err), store.ErrFull) {
		return probeError(s.name, err)
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

// probeError explains the failure of a probe on a Redis of a name.
func probeError(name string, err error) error {
	if err == nil {
		return nil
	}
	if network := net.Error(nil); errors.As(err, &network) { // it says nothing of the scripts
		return &UnreachableError{Name: name, Err: err}
	}
	if call.Denied(err) {
		return fmt.Errorf("the Redis user lacks a permission that duly needs: %w; see docs/guarantees.md for the ACL", err)
	}
	return fmt.Errorf("a test run of the scripts failed: %w", err)
}
