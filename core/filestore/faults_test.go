package filestore_test

// What happens to files: kills, cuts, flipped bits, full and broken disks.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/filestore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// named is a task that is due now.
func named(agent, id string) store.Submission {
	return store.Submission{Agent: agent, ID: id, Kind: "k", Level: store.LevelLow, Body: []byte(`"body of ` + id + `"`)}
}

// submit submits a task.
func submit(tb testing.TB, s *filestore.Store, agent, id string) {
	tb.Helper()
	_, err := s.Submit(tb.Context(), []store.Submission{named(agent, id)})
	require.NoError(tb, err)
}

// ids are those of an agent's tasks.
func ids(tb testing.TB, s *filestore.Store, agent string) map[string]store.Status {
	tb.Helper()
	out := map[string]store.Status{}
	for q := (store.List{Agent: agent, Limit: 100}); ; {
		page, err := s.List(tb.Context(), q)
		require.NoError(tb, err)
		for i := range page.Tasks {
			out[page.Tasks[i].ID] = page.Tasks[i].Status
		}
		if q.After = page.Next; page.Next == "" {
			return out
		}
	}
}

// audited finds nothing wrong.
func audited(tb testing.TB, s *filestore.Store) {
	tb.Helper()
	for p := range s.Partitions() {
		found, err := s.Audit(tb.Context(), []audit.Page{{Partition: p}})
		require.NoError(tb, err)
		for i := range found {
			assert.Empty(tb, found[i].Faults)
		}
	}
}

// lives runs tasks of 5 agents from submit to end, in calls one after the other.
func lives(tb testing.TB, s *filestore.Store, n int) {
	tb.Helper()
	for i := range n {
		id := fmt.Sprint("t", i)
		submit(tb, s, fmt.Sprint("a", i%5), id)
		claimed, err := s.Claim(tb.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%016d", i), Kinds: []string{"k"}, Limit: 1, Lease: time.Minute}})
		require.NoError(tb, err)
		require.Len(tb, claimed[0].Tasks, 1)
		if i%3 == 0 {
			continue // it runs when the file ends
		}
		_, err = s.Settle(tb.Context(), []store.Settlement{{Run: claimed[0].Tasks[0].Run, Verb: store.VerbComplete, Record: []byte(`"done"`), Kind: "k"}})
		require.NoError(tb, err)
	}
}

// copied is a folder with the files of another one, but for its lock.
func copied(tb testing.TB, dir string) string {
	tb.Helper()
	to := tb.TempDir()
	all, err := os.ReadDir(dir)
	require.NoError(tb, err)
	for _, e := range all {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(tb, err)
		require.NoError(tb, os.WriteFile(filepath.Join(to, e.Name()), b, 0o600))
	}
	return to
}

// only is the one file of a folder whose name begins so.
func only(tb testing.TB, dir, prefix string) string {
	tb.Helper()
	found, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	require.NoError(tb, err)
	require.Len(tb, found, 1)
	return found[0]
}

// faults is how many are tried: DULY_FILE_FAULTS sets another number.
func faults(t *testing.T, usually int) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("DULY_FILE_FAULTS")); err == nil {
		return n
	}
	return usually
}

// config is a plain store, which keeps everything as it was.
func config(dir string) filestore.Config {
	return filestore.Config{Dir: dir, Elsewhere: true, Reserve: 4096, Logger: slog.New(slog.DiscardHandler)}
}

// Wherever a journal is cut off, what was written whole before is there, and nothing else.
func TestAJournalCutAnywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := filestore.Open(config(dir))
	require.NoError(t, err)
	const n = 120
	sizes := make([]int64, 0, n) // of the journal after each submit
	for i := range n {
		submit(t, s, "a", fmt.Sprint(i))
		info, err := os.Stat(only(t, dir, "journal-"))
		require.NoError(t, err)
		sizes = append(sizes, info.Size())
	}
	filestore.Abandon(s)
	cuts := faults(t, 100)
	r := rand.New(rand.NewPCG(1, 1))
	for range cuts {
		at := r.Int64N(sizes[n-1])
		to := copied(t, dir)
		require.NoError(t, os.Truncate(only(t, to, "journal-"), at))
		s, err := filestore.Open(config(to))
		require.NoError(t, err, "cut at %d", at)
		want := 0
		for want < n && sizes[want] <= at {
			want++
		}
		got := ids(t, s, "a")
		require.Len(t, got, want, "cut at %d", at)
		for i := range want {
			require.Contains(t, got, fmt.Sprint(i))
		}
		audited(t, s)
		submit(t, s, "a", "another")
		require.NoError(t, s.Close())
		s, err = filestore.Open(config(to))
		require.NoError(t, err)
		require.Len(t, ids(t, s, "a"), want+1)
		require.NoError(t, s.Close())
	}
	t.Logf("figure: %d cuts at random offsets", cuts)
}

// A bit that flips in a journal or a snapshot is flipped back, whichever it is. It stays so after the next start.
func TestAFlippedBit(t *testing.T) {
	t.Parallel()
	flips := faults(t, 50)
	for _, prefix := range []string{"journal-", "snapshot-"} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, err := filestore.Open(config(dir))
			require.NoError(t, err)
			lives(t, s, 60)
			want := filestore.State(s)
			if prefix == "journal-" {
				filestore.Abandon(s)
			} else {
				require.NoError(t, s.Close())
			}
			r := rand.New(rand.NewPCG(2, 2))
			for range flips {
				to := copied(t, dir)
				path := only(t, to, prefix)
				b, err := os.ReadFile(path)
				require.NoError(t, err)
				first := bytes.IndexByte(b, '\n') + 1 // what the file is, is read by people too
				bit := first*8 + r.IntN((len(b)-first)*8)
				b[bit/8] ^= 1 << (bit % 8)
				require.NoError(t, os.WriteFile(path, b, 0o600))
				for range 2 {
					var log bytes.Buffer
					c := config(to)
					c.Logger = slog.New(slog.NewTextHandler(&log, nil))
					s, err := filestore.Open(c)
					require.NoError(t, err, "bit %d", bit)
					require.Equal(t, want, filestore.State(s), "bit %d", bit)
					audited(t, s)
					filestore.Abandon(s)
				}
			}
			t.Logf("figure: %d flipped bits", flips)
		})
	}
}

// More damage to what was on the disk for good is named, and nothing is changed.
func TestDamageIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := filestore.Open(config(dir))
	require.NoError(t, err)
	lives(t, s, 30)
	filestore.Abandon(s)
	path := only(t, dir, "journal-")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	at := len(b) - 1000
	copy(b[at:], "something else")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	_, err = filestore.Open(config(dir))
	damaged := &filestore.DamagedError{}
	require.ErrorAs(t, err, &damaged)
	assert.Equal(t, path, damaged.File)
	assert.InDelta(t, at, damaged.Offset, 500)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, b, after)

	require.NoError(t, os.WriteFile(path, []byte("duly journal 2\nin a form to come"), 0o600))
	_, err = filestore.Open(config(dir))
	newer := &filestore.NewerError{}
	require.ErrorAs(t, err, &newer)
	require.NoError(t, os.WriteFile(path, []byte("a letter to the editor"), 0o600))
	_, err = filestore.Open(config(dir))
	require.ErrorAs(t, err, &damaged)

	require.NoError(t, os.WriteFile(path, b[:len(b)/3], 0o600))
	require.NoError(t, os.Rename(path, filepath.Join(dir, "journal-000003")))
	_, err = filestore.Open(config(dir))
	require.ErrorAs(t, err, &damaged)
	assert.ErrorContains(t, err, "journal-000001")
	assert.ErrorContains(t, err, "is missing")
}

// A second process is kept out, by name, and gets the folder once the first one has ended.
func TestOneProcessAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := filestore.Open(config(dir))
	require.NoError(t, err)
	_, err = filestore.Open(config(dir))
	used := &filestore.InUseError{}
	require.ErrorAs(t, err, &used)
	assert.Equal(t, os.Getpid(), used.Process)
	require.NoError(t, s.Close())
	_, err = s.Submit(t.Context(), []store.Submission{named("a", "1")})
	require.ErrorContains(t, err, "is closed")
	open(t, config(dir))
}

// The lock says that the last process is dead, so its tasks are claimed again at once, and only once; unless their runs are said to be elsewhere.
func TestADeadProcessHoldsNothing(t *testing.T) {
	t.Parallel()
	c := config(t.TempDir())
	c.Elsewhere = false
	take := func(s *filestore.Store, nonce string) []store.Claimed {
		claimed, err := s.Claim(t.Context(), []store.ClaimRequest{{Nonce: nonce, Kinds: []string{"k"}, Limit: 10, Lease: time.Hour, Notice: time.Hour}})
		require.NoError(t, err)
		return claimed[0].Tasks
	}
	s, err := filestore.Open(c)
	require.NoError(t, err)
	submit(t, s, "a", "1")
	before := take(s, "first-----------")
	require.Len(t, before, 1)
	filestore.Abandon(s)
	c.Elsewhere = true
	s, err = filestore.Open(c)
	require.NoError(t, err)
	assert.Empty(t, take(s, "second----------"))
	filestore.Abandon(s)
	c.Elsewhere = false
	s, err = filestore.Open(c)
	require.NoError(t, err)
	after := take(s, "third-----------")
	require.Len(t, after, 1)
	assert.Greater(t, after[0].Fence, before[0].Fence)
	assert.Empty(t, take(s, "fourth----------"))
	ended, err := s.Settle(t.Context(), []store.Settlement{{Run: before[0].Run, Verb: store.VerbComplete, Kind: "k"}, {Run: after[0].Run, Verb: store.VerbComplete, Kind: "k"}})
	require.NoError(t, err)
	require.ErrorIs(t, ended[0].Err, store.ErrLeaseLost)
	require.NoError(t, ended[1].Err)
	stats, err := s.Stats(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, stats.Recovered)
	require.NoError(t, s.Close())
}

// disk fails as it is told to.
type disk struct {
	mu   sync.Mutex
	fail map[string]error
	hits map[string]int
}

func (d *disk) point(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hits == nil {
		d.hits = map[string]int{}
	}
	d.hits[name]++
	return d.fail[name]
}

// set has a point fail, or work again with nil.
func (d *disk) set(err error, names ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = map[string]error{}
	for _, n := range names {
		d.fail[n] = err
	}
}

// A full disk takes nothing new in; what is there is read, runs, ends and is deleted. It goes on by itself once there is room.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	d := &disk{}
	var log bytes.Buffer
	c := config(t.TempDir())
	c.Logger, c.SnapshotAfter = slog.New(slog.NewTextHandler(&log, nil)), 16<<10
	full := true
	c = filestore.WithPoint(c, func(name string) error {
		if err := d.point(name); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(c.Dir, "reserve")); err == nil && name == "write" && full && d.count("written") >= 2 {
			return syscall.ENOSPC // until the reserve is given up
		}
		return nil
	})
	s := open(t, c)
	submit(t, s, "a", "1")
	submit(t, s, "a", "2")
	d.set(syscall.ENOSPC, "reserve")
	submit(t, s, "a", "3") // out of the reserve
	_, err := s.Submit(t.Context(), []store.Submission{named("a", "4")})
	require.ErrorIs(t, err, store.ErrFull)
	require.ErrorContains(t, err, "free some space")
	_, err = s.Touch(t.Context(), []store.Touch{{Agent: "a", ID: "t", Kind: "k"}})
	require.ErrorIs(t, err, store.ErrFull)
	request := store.ClaimRequest{Nonce: "0000000000000001", Kinds: []string{"k"}, Limit: 1, Lease: time.Minute}
	claimed, err := s.Claim(t.Context(), []store.ClaimRequest{request})
	require.NoError(t, err)
	require.Len(t, claimed[0].Tasks, 1)
	_, err = s.Settle(t.Context(), []store.Settlement{{Run: claimed[0].Tasks[0].Run, Verb: store.VerbComplete, Kind: "k"}})
	require.NoError(t, err)
	_, err = s.Delete(t.Context(), []store.Deletion{{Agent: "a", ID: "2"}})
	require.NoError(t, err)
	owed := named("a", "owed")
	owed.Owed = true
	_, err = s.Submit(t.Context(), []store.Submission{owed})
	require.NoError(t, err, "what follows an end")
	for i := range 400 { // until a snapshot would be worth it, which would take the room that is left
		_, err = s.Signal(t.Context(), []store.Signal{{Agent: "a", Key: fmt.Sprint("key", i), Payload: []byte(`"a signal"`), Keep: time.Hour}})
		require.NoError(t, err)
	}
	assert.Zero(t, d.count("snapshot written"))
	full = false
	d.set(nil)
	require.Eventually(t, func() bool {
		_, err = s.Submit(t.Context(), []store.Submission{named("a", "5")})
		return err == nil
	}, 10*time.Second, 20*time.Millisecond)
	got := ids(t, s, "a")
	assert.Equal(t, map[string]store.Status{"1": store.StatusCompleted, "3": store.StatusWaiting, "owed": store.StatusWaiting, "5": store.StatusWaiting}, got)
	assert.Contains(t, log.String(), "the disk is full")
	assert.Contains(t, log.String(), "the disk has room again")
}

// count is how often a point was passed.
func (d *disk) count(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hits[name]
}

// A disk that fails has no call answered, and is used again once it works. What was answered before is there.
func TestAFailingDisk(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"write", "written", "synced"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &disk{}
			s := open(t, filestore.WithPoint(config(t.TempDir()), d.point))
			wakeups, err := s.Wakeups(t.Context())
			require.NoError(t, err)
			before, during := named("a", "before"), named("a", "during")
			before.Due = moment.When{After: time.Hour}
			during.Due = before.Due
			_, err = s.Submit(t.Context(), []store.Submission{before})
			require.NoError(t, err)
			d.set(syscall.EIO, name, "snapshot synced")
			_, err = s.Submit(t.Context(), []store.Submission{during})
			require.ErrorIs(t, err, syscall.EIO)
			_, err = s.Stats(t.Context())
			require.ErrorContains(t, err, "cannot be written")
			require.Eventually(t, func() bool { return d.count("snapshot synced") > 0 }, 10*time.Second, 10*time.Millisecond, "it tries again")
			_, err = s.Stats(t.Context())
			require.ErrorContains(t, err, "cannot be written", "while the disk fails")
			for len(wakeups) > 0 {
				<-wakeups
			}
			d.set(nil)
			tried := time.Now()
			for { // without a break: the first call that is answered wakes who waits
				if _, err = s.Submit(t.Context(), []store.Submission{named("b", "after")}); err == nil {
					break
				}
				require.Less(t, time.Since(tried), 10*time.Second)
				runtime.Gosched()
			}
			select {
			case <-wakeups:
			case <-time.After(5 * time.Second):
				t.Fatal("whoever waited for wake-ups before is not woken")
			}
			got := ids(t, s, "a")
			maps.Copy(got, ids(t, s, "b"))
			delete(got, "during") // it may be there or not
			assert.Equal(t, map[string]store.Status{"before": store.StatusWaiting, "after": store.StatusWaiting}, got)
			audited(t, s)
		})
	}
}

// The journal becomes as short as what lives, while calls go on.
func TestAJournalIsCompacted(t *testing.T) {
	t.Parallel()
	c := config(t.TempDir())
	c.SnapshotAfter, c.Kept, c.SyncEvery = 32<<10, 1, 50*time.Millisecond
	d := &disk{}
	s, err := filestore.Open(filestore.WithPoint(c, d.point))
	require.NoError(t, err)
	submit(t, s, "lives", "on")
	n := 3000
	if lives, err := strconv.Atoi(os.Getenv("DULY_FILE_LIVES")); err == nil {
		n, c.SnapshotAfter = lives, 1<<20
	}
	for i := range n {
		id := fmt.Sprint(i)
		submit(t, s, "a", id)
		claimed, err := s.Claim(t.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%016d", i), Kinds: []string{"k"}, Agents: []string{"a"}, Limit: 1, Lease: time.Minute}})
		require.NoError(t, err)
		_, err = s.Settle(t.Context(), []store.Settlement{{Run: claimed[0].Tasks[0].Run, Verb: store.VerbComplete, Kind: "k"}})
		require.NoError(t, err)
	}
	require.Positive(t, d.count("snapshot renamed"))
	want := filestore.State(s)
	filestore.Abandon(s)
	s, err = filestore.Open(c)
	require.NoError(t, err)
	assert.Equal(t, want, filestore.State(s))
	require.NoError(t, s.Close())
	size := int64(0)
	all, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	for _, e := range all {
		if info, err := e.Info(); err == nil && !strings.HasPrefix(e.Name(), "reserve") {
			size += info.Size()
		}
	}
	// What is left is what the store knows: one record, and which ids it has dropped; and the names of its fields.
	assert.Less(t, size, int64(len(want)+32<<10), "%d lives", n)
	t.Logf("figure: %d lives, %d snapshots, %d bytes are left", n, d.count("snapshot renamed"), size)
}

// A snapshot that cannot be made costs nothing but room.
func TestASnapshotThatFails(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"snapshot written", "snapshot synced", "snapshot renamed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &disk{}
			c := config(t.TempDir())
			c.SnapshotAfter = 4 << 10
			d.set(errors.New("no"), name)
			s, err := filestore.Open(filestore.WithPoint(c, d.point))
			require.NoError(t, err)
			for i := 0; d.count(name) == 0 || i < 100; i++ {
				submit(t, s, "a", fmt.Sprint(i))
			}
			want := filestore.State(s)
			filestore.Abandon(s)
			s, err = filestore.Open(c)
			require.NoError(t, err)
			assert.Equal(t, want, filestore.State(s))
			require.NoError(t, s.Close())
		})
	}
}

// An answer waits until its call is on the disk, and a read until everything is that it has seen.
func TestAnswersWaitForTheDisk(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}), make(chan struct{})
	var block atomic.Bool
	s := open(t, filestore.WithPoint(config(t.TempDir()), func(name string) error {
		if name == "synced" && block.Load() {
			reached <- struct{}{}
			<-release
		}
		return nil
	}))
	submit(t, s, "a", "1")
	block.Store(true)
	answered := make(chan error, 1)
	go func() {
		_, err := s.Submit(t.Context(), []store.Submission{named("a", "2")})
		answered <- err
	}()
	select {
	case <-reached:
	case err := <-answered:
		t.Fatal("answered before it was stored", err)
	}
	block.Store(false)
	hurried, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Get(hurried, store.Get{Agent: "a", IDs: []string{"2"}})
	require.ErrorIs(t, err, context.DeadlineExceeded, "it would be read before it is stored")
	assert.Empty(t, answered)
	close(release)
	require.NoError(t, <-answered)
	found, err := s.Get(t.Context(), store.Get{Agent: "a", IDs: []string{"2"}})
	require.NoError(t, err)
	assert.Equal(t, store.StatusWaiting, found.Tasks[0].Status)
}

// A journal whose calls are answered otherwise than when it was written is not gone on with.
func TestOtherAnswersAreNamed(t *testing.T) {
	t.Parallel()
	c := config(t.TempDir())
	s, err := filestore.Open(c)
	require.NoError(t, err)
	lives(t, s, 3)
	filestore.Abandon(s)
	path := only(t, c.Dir, "journal-")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, filestore.Otherwise(b), 0o600))
	_, err = filestore.Open(c)
	damaged := &filestore.DamagedError{}
	require.ErrorAs(t, err, &damaged)
	assert.ErrorContains(t, err, "another state than before")
}

// A snapshot takes no room that calls need: none is begun on a disk that has not enough for it, or that is full.
func TestASnapshotNeedsRoom(t *testing.T) {
	t.Parallel()
	d := &disk{}
	var log bytes.Buffer
	var room atomic.Int64
	c := config(t.TempDir())
	c.SnapshotAfter, c.SyncEvery, c.Logger = 8<<10, time.Second, slog.New(slog.NewTextHandler(&log, nil))
	s, err := filestore.Open(filestore.WithRoom(filestore.WithPoint(c, d.point), room.Load))
	require.NoError(t, err)
	next := 0
	write := func() {
		for range 400 {
			submit(t, s, "a", fmt.Sprint(next))
			next++
		}
	}
	write()
	assert.Zero(t, d.count("snapshot written"))
	assert.Equal(t, 1, strings.Count(log.String(), "no room for a snapshot"), "it is said once until the journal is half as long again")
	room.Store(1 << 30)
	write()
	require.Eventually(t, func() bool { submit(t, s, "b", fmt.Sprint(next)); next++; return d.count("snapshot renamed") > 0 }, 10*time.Second, time.Millisecond)
	require.NoError(t, s.Close())
}

// A frame that could not be read again is not written.
func TestAFrameHasABound(t *testing.T) {
	t.Parallel()
	c := config(t.TempDir())
	s, err := filestore.Open(filestore.WithMostContent(c, 10_000))
	require.NoError(t, err)
	submit(t, s, "a", "1")
	large := named("a", "large")
	large.Body = make([]byte, 20_000)
	_, err = s.Submit(t.Context(), []store.Submission{large})
	require.ErrorContains(t, err, "more than one write takes")
	submit(t, s, "a", "2")
	assert.Len(t, ids(t, s, "a"), 2)
	require.NoError(t, s.Close())
}

// Files that were deleted under a store are there again when it has ended.
func TestDeletedFiles(t *testing.T) {
	t.Parallel()
	c := config(t.TempDir())
	s, err := filestore.Open(c)
	require.NoError(t, err)
	for i := range 100 {
		submit(t, s, "a", fmt.Sprint(i))
	}
	require.NoError(t, s.Close())
	s, err = filestore.Open(c)
	require.NoError(t, err)
	submit(t, s, "a", "last") // so little that a snapshot is not worth it
	require.NoError(t, os.RemoveAll(c.Dir))
	submit(t, s, "a", "behind")
	require.NoError(t, s.Close())
	s = open(t, c)
	assert.Len(t, ids(t, s, "a"), 102)
}
