package redisstore_test

// Repartition, killed at every command, at work twice, or refused.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// killer lets some commands through, and none after these. With lost, the first of the others runs, and its answer is lost; with once,
// those behind that one work again.
type killer struct {
	mu         sync.Mutex
	left       int
	lost, once bool
	// at, if not nil, is called before each command.
	at func(cmds []redis.Cmder)
}

func (*killer) DialHook(next redis.DialHook) redis.DialHook { return next }

// pass says whether a command runs, and whether its answer arrives.
func (k *killer) pass(cmds ...redis.Cmder) (runs, arrives bool) {
	if k.at != nil {
		k.at(cmds)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left--
	if k.left == -1 {
		return k.lost, false
	}
	return k.left >= 0 || k.once, k.left >= 0 || k.once
}

func (k *killer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		runs, arrives := k.pass(cmd)
		var err error
		if runs {
			err = next(ctx, cmd)
		}
		if !arrives {
			err = errKilled
			cmd.SetErr(err)
		}
		return err
	}
}

func (k *killer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		runs, arrives := k.pass(cmds...)
		var err error
		if runs {
			err = next(ctx, cmds)
		}
		if !arrives {
			err = errKilled
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// dumped is everything that Redis has under a prefix.
type dumped struct {
	prefix string
	keys   []string
	values []string
	ttls   []time.Duration
}

func dump(t *testing.T, c *redis.Client, prefix string) dumped {
	t.Helper()
	d := dumped{prefix: prefix, keys: done1[[]string](t)(c.Keys(t.Context(), prefix+"*").Result())}
	for _, key := range d.keys {
		d.values = append(d.values, done1[string](t)(c.Dump(t.Context(), key).Result()))
		d.ttls = append(d.ttls, max(done1[time.Duration](t)(c.PTTL(t.Context(), key).Result()), 0))
	}
	return d
}

// restore puts all of it under another prefix.
func (d *dumped) restore(t *testing.T, c *redis.Client, prefix string) {
	t.Helper()
	pipe := c.Pipeline()
	for i, key := range d.keys {
		pipe.Restore(t.Context(), prefix+strings.TrimPrefix(key, d.prefix), d.ttls[i], d.values[i])
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
}

// killEvery is how many commands lie between two at which a move is killed: all of them are tried with DULY_TEST_KILLS=all, and
// otherwise some, others each time, as each takes a whole move.
func killEvery() int {
	if os.Getenv("DULY_TEST_KILLS") == "all" {
		return 1
	}
	return 6
}

func firstKill() int { return 1 + rand.IntN(killEvery()) }

// A move that is killed at any command, or whose answer to it is lost, is brought to its end by the next: nothing is lost or there
// twice. Until it ends nobody opens the prefix.
func TestRepartitionSurvivesKills(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		from, to   int
		lost, once bool
	}{
		{"killed", 4, 1, false, false},
		{"killed and its answer lost", 2, 4, true, false},
		{"an answer lost", 4, 1, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			st := open(t, redisstore.Config{URL: srv.URL, Prefix: "from:", Partitions: c.from})
			fill(t, st, 20)
			before, client := viewOf(t, st, pastAgents...), srv.Client(t)
			whole := dump(t, client, "from:")
			for n := firstKill(); ; n += killEvery() {
				prefix := fmt.Sprintf("n%d:", n)
				whole.restore(t, client, prefix)
				config := redisstore.Config{URL: srv.URL, Prefix: prefix, Remember: true}
				if !killedAt(t, config, c.to, &killer{left: n, lost: c.lost, once: c.once}) {
					t.Logf("figure: killed at each of %d commands", n)
					require.Greater(t, n, 50)
					return
				}
				after := open(t, config)
				require.Equal(t, c.to, after.Partitions())
				requireSame(t, before, viewOf(t, after, pastAgents...), c.to)
				assertSound(t, after)
				require.NoError(t, after.Close())
				forget(t, client, prefix)
			}
		})
	}
}

// forget deletes all keys with a prefix.
func forget(t *testing.T, c *redis.Client, prefix string) {
	t.Helper()
	require.NoError(t, c.Del(t.Context(), done1[[]string](t)(c.Keys(t.Context(), prefix+"*").Result())...).Err())
}

// killedAt kills a move, and brings it to its end; false if it came there before it was to be killed.
func killedAt(t *testing.T, config redisstore.Config, to int, k *killer) bool {
	t.Helper()
	n := k.left
	_, err := redisstore.RepartitionWith(t.Context(), config, redisstore.Repartitioning{To: to}, k)
	if err == nil {
		return k.left < 0 // nobody needs every answer
	}
	require.ErrorIs(t, err, errKilled, "at command %d", n)
	if st, err := redisstore.Open(t.Context(), config); err == nil {
		partitions := st.Partitions()
		require.NoError(t, st.Close())
		if partitions == to { // it was the last answer that was lost
			return true
		}
	} else {
		require.ErrorContains(t, err, "run duly repartition --to", "at command %d", n)
	}
	moved, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: to})
	require.NoError(t, err, "at command %d", n)
	require.Equal(t, to, moved.To)
	require.NotZero(t, moved.Tasks, "at command %d", n)
	return true
}

// While it copies, a move can be undone; what was there is as it was.
func TestRepartitionIsUndone(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	config := redisstore.Config{URL: srv.URL}
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 4})
	fill(t, st, 20)
	before, c := viewOf(t, st, pastAgents...), srv.Client(t)
	keys := len(done1[[]string](t)(c.Keys(t.Context(), "duly:{*").Result()))
	copies := &killer{left: 40}
	_, err := redisstore.RepartitionWith(t.Context(), config, redisstore.Repartitioning{To: 16}, copies)
	require.ErrorIs(t, err, errKilled)
	require.ErrorContains(t, err, "nothing was changed, and the prefix stays closed: run duly repartition --to 16 --yes again, or --to 4 to undo it")
	_, err = redisstore.Open(t.Context(), config)
	require.ErrorContains(t, err, "being moved from 4 to 16 partitions")
	_, err = redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 8})
	require.ErrorContains(t, err, "and not to 8: run duly repartition --to 16 --yes to its end first")
	undone, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 4})
	require.NoError(t, err)
	assert.Equal(t, redisstore.Repartitioned{From: 4, To: 4, Undone: true}, undone)
	requireSame(t, before, viewOf(t, open(t, config), pastAgents...), 4)
	after := done1[[]string](t)(c.Keys(t.Context(), "duly:{*").Result())
	assert.Len(t, slices.DeleteFunc(after, func(key string) bool { return strings.HasSuffix(key, ":mover") }), keys)
}

// Whatever fails while a move copies undoes it: a Redis that is full, a caller that waits no longer.
func TestRepartitionUndoesWhatFails(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--maxmemory-policy", "noeviction")
	config := redisstore.Config{URL: srv.URL}
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 4})
	fill(t, st, 20)
	before, c := viewOf(t, st, pastAgents...), srv.Client(t)
	unchanged := func() {
		t.Helper()
		requireSame(t, before, viewOf(t, open(t, redisstore.Config{URL: srv.URL, Remember: true}), pastAgents...), 4)
		for _, key := range done1[[]string](t)(c.Keys(t.Context(), "duly:*").Result()) {
			require.NotContains(t, key, "moving:")
		}
	}
	full := &killer{left: 1 << 30, at: func(cmds []redis.Cmder) {
		if strings.EqualFold(cmds[0].Name(), "hscan") {
			_ = c.ConfigSet(context.WithoutCancel(t.Context()), "maxmemory", "1").Err()
		}
	}}
	_, err := redisstore.RepartitionWith(t.Context(), config, redisstore.Repartitioning{To: 16}, full)
	require.ErrorIs(t, err, store.ErrFull)
	require.ErrorContains(t, err, "nothing was changed: ")
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
	unchanged()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err = redisstore.Repartition(ctx, config, redisstore.Repartitioning{To: 16, Progress: func(int64, int64) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	unchanged()
}

// A second attempt takes over from one that is frozen, wherever that is; waking up, it changes nothing more.
func TestRepartitionIsTakenOver(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Prefix: "from:", Partitions: 2})
	fill(t, st, 20)
	before, c := viewOf(t, st, pastAgents...), srv.Client(t)
	whole := dump(t, c, "from:")
	frozen := 0
	for n := firstKill(); ; n += killEvery() {
		prefix := fmt.Sprintf("n%d:", n)
		whole.restore(t, c, prefix)
		config := redisstore.Config{URL: srv.URL, Prefix: prefix, Remember: true}
		k, over := &killer{left: 1 << 30}, false
		k.at = func([]redis.Cmder) {
			if k.mu.Lock(); (1<<30)-k.left != n {
				k.mu.Unlock()
				return
			}
			k.mu.Unlock()
			over = true
			_, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 4})
			if err != nil { // it was at its end
				require.ErrorContains(t, err, "has 4 partitions already")
			}
		}
		_, err := redisstore.RepartitionWith(t.Context(), config, redisstore.Repartitioning{To: 4}, k)
		if !over {
			break
		}
		if err != nil {
			frozen++
			require.Regexp(t, "another duly repartition has taken over|has changed the store meanwhile|has 4 partitions already|copy", err.Error())
		}
		after := open(t, config)
		requireSame(t, before, viewOf(t, after, pastAgents...), 4)
		assertSound(t, after)
		require.NoError(t, after.Close())
		forget(t, c, prefix)
	}
	require.Greater(t, frozen, 20/killEvery())
}

func TestRepartitionRefuses(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	config := redisstore.Config{URL: srv.URL}
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 2})
	refused := func(to int, why string) {
		t.Helper()
		for _, dry := range []bool{true, false} {
			_, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: to, DryRun: dry})
			require.ErrorContains(t, err, why)
			require.NoError(t, open(t, config).Close(), "the store stays open")
		}
	}
	for _, to := range []int{-1, 0, 3, 2048} {
		refused(to, fmt.Sprintf("To must be a power of two up to 1024, not %d", to))
	}
	refused(2, `the prefix "duly:" has 2 partitions already`)
	_, err := st.Announce(t.Context(), "someone", []byte("{}"), time.Minute)
	require.NoError(t, err)
	refused(4, "processes that use the store: 1 (duly processes lists them)")
	require.NoError(t, srv.Client(t).Del(t.Context(), "duly:{"+redisstore.Tags(2)[0]+"}:processes").Err())
	_, err = st.Announce(t.Context(), "-worker", []byte("{}"), time.Hour)
	require.NoError(t, err, "a worker that has left uses nothing")

	f := &filler{T: t, st: st}
	f.submit(sub("a", "1"), sub("a", "2"), sub("b", "1"))
	var runs []store.Claimed
	for p := range 2 {
		c := done1[[]store.Claim](t)(st.Claim(t.Context(), []store.ClaimRequest{{
			Partition: p, Nonce: fmt.Sprintf("%016d", p), Kinds: []string{"k"}, Limit: 10, Lease: time.Hour,
		}}))
		runs = append(runs, c[0].Tasks...)
	}
	require.Len(t, runs, 3)
	refused(4, "tasks that run under a lease: 3; the last lease ends at ")
	f.end(runs[:1], func(int, *store.Settlement) {})
	refused(4, "tasks that run under a lease: 2; ")
	// Those of the dead are taken back first.
	for _, r := range runs[1:] {
		done1[[]store.Extended](t)(st.Extend(t.Context(), []store.Extension{{Partition: r.Partition, Fence: r.Fence, Lease: 0}}))
	}
	moved, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 4})
	require.NoError(t, err)
	assert.EqualValues(t, 2, moved.Tasks)
	after := open(t, config)
	stats, err := after.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []int64{2, 2, 0}, []int64{stats.Recovered, stats.Waiting, stats.InProgress})
	// The late end of a run of the dead is refused, whatever it has claimed there.
	settled := done1[[]store.Settled](t)(after.Settle(t.Context(), []store.Settlement{{Run: runs[1].Run, Kind: "k", Verb: store.VerbComplete}}))
	require.ErrorIs(t, settled[0].Err, store.ErrLeaseLost)
	runsToItsEnd(t, after, "k")
}

// A process that works on while all is copied is noticed before anything is dropped.
func TestRepartitionNoticesAProcessThatWorks(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	config := redisstore.Config{URL: srv.URL}
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 2})
	f := &filler{T: t, st: st}
	f.submit(sub("a", "1"))
	n := 0
	_, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 4, Progress: func(int64, int64) {
		n++
		f.submit(sub("late", fmt.Sprint(n)))
	}})
	require.Error(t, err)
	require.ErrorContains(t, err, "nothing was changed: ")
	require.Equal(t, int64(n+1), viewOf(t, open(t, config)).Stats.Waiting)
}

// A store with a fault is not moved: the fault would look like one of the move.
func TestRepartitionRefusesADamagedStore(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	config := redisstore.Config{URL: srv.URL}
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 2})
	f := &filler{T: t, st: st}
	f.submit(sub("a", "1"), sub("b", "2"))
	c := srv.Client(t)
	for _, tag := range redisstore.Tags(2) {
		require.NoError(t, c.ZRem(t.Context(), "duly:{"+tag+"}:agenda", "a").Err())
	}
	_, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 1})
	require.ErrorContains(t, err, `has found a fault (lost, agent "a", task "1"): duly audit finds out more, and duly audit --repair mends what it can`)
	st = open(t, config)
	for p := range 2 {
		for cursor, first := "", true; first || cursor != ""; first = false {
			cursor = done1[[]audit.Result](t)(st.Audit(t.Context(), []audit.Page{{Partition: p, Cursor: cursor, Repair: true}}))[0].Next
		}
	}
	require.NoError(t, c.Set(t.Context(), "duly:{"+redisstore.Tags(2)[1]+"}:later", 1, 0).Err())
	_, err = redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 1})
	require.ErrorContains(t, err, "is none that this version of duly makes")
	require.NoError(t, c.Del(t.Context(), "duly:{"+redisstore.Tags(2)[1]+"}:later").Err())
	_, err = redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 1})
	require.NoError(t, err)
	runsToItsEnd(t, open(t, config), "k")
}

// Binaries of before read the field version only, which is no number during a move: they refuse it, and show it.
func TestOlderBinariesRefuseAMove(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	open(t, redisstore.Config{URL: srv.URL, Partitions: 2})
	config, c := redisstore.Config{URL: srv.URL}, srv.Client(t)
	_, err := redisstore.RepartitionWith(t.Context(), config, redisstore.Repartitioning{To: 4}, &killer{left: 30})
	require.ErrorIs(t, err, errKilled)
	layout := done1[map[string]string](t)(c.HGetAll(t.Context(), "duly:layout").Result())
	assert.Equal(t, "2, being moved to 4 partitions: run duly repartition --to 4 --yes to its end", layout["version"])
	assert.Equal(t, "2", layout["partitions"])
	require.NoError(t, c.HDel(t.Context(), "duly:layout", "moving").Err(), "so that this binary sees what others see")
	_, err = redisstore.Open(t.Context(), config)
	require.ErrorContains(t, err, `the prefix "duly:" has layout version "2, being moved to 4 partitions: run duly repartition --to 4 --yes to its end", `+
		`but this binary reads versions 1 to 2`)
	require.NoError(t, c.HSet(t.Context(), "duly:layout", "moving", "{}").Err())
	_, err = redisstore.Open(t.Context(), config)
	require.ErrorContains(t, err, `the key "duly:layout" is damaged: its field moving is "{}"`)
}

// A user who lacks a command that only a move needs is told before anything is dropped.
func TestRepartitionNeedsMorePermissions(t *testing.T) {
	t.Parallel()
	srv := redistest.StartTCP(t)
	c := srv.Client(t)
	setUser := func(rules string) {
		args := []any{"ACL", "SETUSER", "duly", "reset"}
		for r := range strings.FieldsSeq(rules) {
			args = append(args, r)
		}
		require.NoError(t, c.Do(t.Context(), args...).Err())
	}
	setUser(leastPrivilege)
	config := redisstore.Config{URL: strings.Replace(srv.URL, "redis://", "redis://duly:secret@", 1)}
	f := &filler{T: t, st: open(t, redisstore.Config{URL: config.URL, Partitions: 2})}
	f.submit(sub("a", "1"), sub("b", "1"))
	const more = " +scan +rename +rpush +pttl +llen"
	for lacks := range strings.FieldsSeq(more) {
		setUser(leastPrivilege + strings.Replace(more, lacks, "", 1))
		_, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 4})
		require.ErrorContains(t, err, "the Redis user lacks a permission that duly repartition needs", lacks)
		require.NoError(t, open(t, config).Close())
	}
	setUser(leastPrivilege + more)
	_, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 4})
	require.NoError(t, err)
}
