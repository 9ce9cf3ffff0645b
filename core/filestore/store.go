package filestore

// The store: opening and closing, and how a call is answered.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// Config says where a store is and how it works. Every zero but Dir is a good default.
type Config struct {
	Dir string // the folder; it is made if it does not exist, for this user alone
	// SyncEvery is how often what was written is made to last, by an fsync: zero for before each answer. Calls that were answered within this time
	// are lost if the machine dies; if only the process dies, none is.
	SyncEvery time.Duration
	// SnapshotAfter is how many bytes of journal make a snapshot worth it, and so how long a start may take: DefaultSnapshotAfter if zero. A
	// journal may always become a quarter of the last snapshot.
	SnapshotAfter int64
	Reserve       int64 // bytes that are kept at least for when the disk is full: DefaultReserve if zero
	// Elsewhere says that runs go on in other processes than the one that has the folder open. Otherwise its runs have died with it, as the lock
	// proves, and Open ends their leases: their tasks start again at once.
	Elsewhere bool
	Logger    *slog.Logger // what was mended, cut off, and cannot be written: slog.Default() if nil

	// The others are those of a memstore. Partitions is what an empty folder gets; a folder that has tasks keeps its own.
	Partitions, Kept, KeptBytes, MaxTasks, MaxBytes int
	Retention                                       time.Duration
	Clock                                           memstore.Clock // the machine's if nil

	// For tests. Point is called at each place at which a process may die; an error is that of the step. Room is that of the disk, and most the bytes
	// of one write.
	point func(name string) error
	room  func() int64
	most  int
}

// Defaults of Config.
const (
	DefaultSnapshotAfter = 16 << 20
	DefaultReserve       = 16 << 20
)

// Store is a [store.Store] in a folder. It is safe for concurrent use, by one process.
type Store struct {
	config Config
	folder folder
	lock   *os.File

	mu    sync.Mutex
	mem   *memstore.Store
	clock *still
	// settings are those under which calls are made.
	settings settings
	// pending are the records of calls that are not written yet. batch is who waits for the last record of all.
	pending []byte
	spare   []byte        // a buffer for the next ones
	last    moment.Millis // when the last of them was made
	batch   *batch
	failed  error  // why nothing can be stored now; nil while it can
	said    string // the last reason that was logged for not beginning again
	closed  bool

	journal journal
	kick    chan struct{} // there is something to write
	stop    chan struct{}
	ended   sync.WaitGroup
	outputs
}

// The interfaces are checked here, as nothing in this package uses them.
var (
	_ store.Store    = (*Store)(nil)
	_ store.Waker    = (*Store)(nil)
	_ feed.Feed      = (*Store)(nil)
	_ store.Presence = (*Store)(nil)
	_ window.Recent  = (*Store)(nil)
)

// batch are calls that are written at once.
type batch struct {
	done chan struct{} // closed when they are stored, or err says why not
	err  error
}

// Open opens a folder, which is made if it does not exist. It fails with an *[InUseError] if another process has it, and with a *[DamagedError] or a
// *[NewerError] if it cannot be read.
func Open(config Config) (*Store, error) {
	config = config.withDefaults()
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	held, err := lock(config.Dir, filepath.Join(config.Dir, lockName))
	if err != nil {
		return nil, err
	}
	s := &Store{
		config: config, folder: folder{dir: config.Dir, logger: config.Logger, point: config.point}, lock: held,
		kick: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	s.of = s
	s.journal = journal{folder: &s.folder, config: &s.config, compacted: make(chan compacted, 1)}
	if err := s.read(); err != nil {
		_ = unlock(held)
		return nil, fmt.Errorf("open: %w", err)
	}
	s.ended.Go(s.write)
	// guard: file-orphans
	if !config.Elsewhere && memstore.StateOf(s.mem).Held() {
		if _, err := change(context.Background(), s, orphans, nothing{}); err != nil { //nolint:forbidigo // files are opened without a context
			return nil, errors.Join(fmt.Errorf("open: %w", err), s.Close())
		}
	}
	return s, nil
}

// withDefaults has a default in place of each zero.
func (c Config) withDefaults() Config {
	if c.SnapshotAfter == 0 {
		c.SnapshotAfter = DefaultSnapshotAfter
	}
	if c.Reserve == 0 {
		c.Reserve = DefaultReserve
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Clock == nil {
		c.Clock = machine{}
	}
	if c.room == nil {
		c.room = func() int64 { return roomOf(c.Dir) }
	}
	if c.most == 0 {
		c.most = mostContent
	}
	return c
}

// machine is the clock of the machine.
type machine struct{}

// Now is time.Now.
func (machine) Now() time.Time { return time.Now() } //nolint:forbidigo // the one place of this package that reads it

// read reads the folder, and begins a new segment in it. A snapshot is made first of what was mended, so that it is mended for good.
func (s *Store) read() error {
	l, err := s.folder.load(0)
	if err != nil {
		return err
	}
	c := &s.config
	now := settings{
		Partitions: c.Partitions, Retention: c.Retention, Kept: c.Kept, KeptBytes: c.KeptBytes, MaxTasks: c.MaxTasks, MaxBytes: c.MaxBytes, Secret: l.settings.Secret,
	}
	if now.Secret == nil {
		now.Secret = make([]byte, feed.SecretLen)
		_, _ = rand.Read(now.Secret) // it never fails
	}
	if l.mem == nil {
		l.mem = memstore.New(now.config(l.clock))
	}
	now.Partitions = l.mem.Partitions()
	if c.Partitions != 0 && c.Partitions != now.Partitions {
		return fmt.Errorf("%s has %d partitions, not %d: leave the setting out", c.Dir, now.Partitions, c.Partitions)
	}
	memstore.StateOf(l.mem).Configure(now.config(l.clock))
	if l.changed || s.failed != nil {
		size, err := s.folder.writeSnapshot(l.mem, now, l.next)
		if err != nil && !isFull(err) {
			return err
		}
		if err == nil {
			l.snapshot, l.journal = size, 0
		}
	}
	if err := s.journal.begin(l, now); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mem != nil {
		memstore.StateOf(l.mem).Succeed(s.mem)
	}
	s.mem, s.clock, s.settings, s.failed = l.mem, l.clock, now, nil
	s.pending, s.batch = nil, nil
	return nil
}

// Name is the folder.
func (s *Store) Name() string { return s.config.Dir }

// Partitions is the number of partitions.
func (s *Store) Partitions() int { return s.memory().Partitions() }

// memory is the store in memory, with the time of now.
func (s *Store) memory() *memstore.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.set(s.now())
	return s.mem
}

// now is the time of a call, in whole milliseconds as in Redis.
func (s *Store) now() moment.Millis { return moment.Millis(s.config.Clock.Now().UnixMilli()) }

// hasRoom is an error if the disk is full.
func (s *Store) hasRoom(verb string) error {
	// guard: file-full
	if s.journal.full.Load() {
		return &store.Error{Verb: verb, Err: &FullError{s.config.Dir}}
	}
	return nil
}

// change makes a call that changes the store, and answers it once it is stored.
func change[A, R any](ctx context.Context, s *Store, v *verb[A, R], args A) (R, error) {
	var none R
	for {
		if err := ctx.Err(); err != nil {
			return none, &store.Error{Verb: v.name, Err: err}
		}
		s.mu.Lock()
		before, err := note(s, v, &args)
		if before == nil && err == nil {
			break
		}
		s.mu.Unlock()
		if err == nil {
			s.wake()
			err = before.wait(ctx)
		}
		if err != nil {
			return none, &store.Error{Verb: v.name, Err: err}
		}
	}
	// The caller may have gone by the time that the call is made again.
	out, err := v.do(context.WithoutCancel(ctx), s.mem, args)
	batch := s.batch
	s.mu.Unlock()
	s.wake()
	if failed := batch.wait(ctx); failed != nil {
		return none, &store.Error{Verb: v.name, Err: failed}
	}
	return out, err
}

// unable is why no call can be answered now; nil if it can. The mutex is held.
func (s *Store) unable() error {
	if s.closed {
		return errors.New("the store is closed")
	}
	return s.failed
}

// note adds the record of a call to those that are written next, at the time of now, which is that of the call. If they would be more than one write
// takes it adds nothing, and returns those that have to be written before. The mutex is held.
func note[A, R any](s *Store, v *verb[A, R], args *A) (before *batch, err error) {
	if err := s.unable(); err != nil {
		return nil, err
	}
	begins, was := s.pending == nil, s.batch
	if begins {
		s.pending, s.spare, s.last = appendCheck(appendHead(s.spare), s.journal.synced.Load()), nil, 0
		s.batch = &batch{done: make(chan struct{})}
	}
	now, end := s.now(), len(s.pending)
	// guard: file-journal
	s.pending = appendRecord(s.pending, v, now-s.last, args)
	switch {
	case len(s.pending)-frameHead <= s.config.most:
		s.clock.set(now)
		s.last = now
		return nil, nil //nolint:nilnil // nothing has to be written before, and nothing is wrong
	case begins:
		n := len(s.pending) - end
		s.pending, s.batch = nil, was
		return nil, fmt.Errorf("the call has %d bytes, which is more than one write takes: send it in parts", n)
	default:
		s.pending = s.pending[:end]
		return s.batch, nil
	}
}

// wake lets what is pending be written.
func (s *Store) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// look makes a call that changes nothing that lasts. It is answered once everything that it has seen is stored.
func look[A, R any](ctx context.Context, s *Store, verb string, do func(m *memstore.Store, ctx context.Context, args A) (R, error), args A) (R, error) {
	var none R
	s.mu.Lock()
	if err := s.unable(); err != nil {
		s.mu.Unlock()
		return none, &store.Error{Verb: verb, Err: err}
	}
	s.clock.set(s.now())
	out, err := do(s.mem, ctx, args)
	batch := s.batch
	s.mu.Unlock()
	// guard: file-seen
	if failed := batch.wait(ctx); failed != nil {
		return none, &store.Error{Verb: verb, Err: failed}
	}
	return out, err
}

// ask is look for a method without arguments.
func ask[R any](ctx context.Context, s *Store, verb string, do func(m *memstore.Store, ctx context.Context) (R, error)) (R, error) {
	return look(ctx, s, verb, func(m *memstore.Store, ctx context.Context, _ nothing) (R, error) { return do(m, ctx) }, nothing{})
}

// wait waits until a batch is stored; nil is.
func (b *batch) wait(ctx context.Context) error {
	if b == nil {
		return nil
	}
	select {
	case <-b.done:
		return b.err
	default:
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close stores what is still to be stored, and leaves a snapshot where that is worth it, so that the next start is quick and a later version
// has nothing to make again. Calls fail from then on.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	s.ended.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.failed
	if err == nil {
		err = s.journal.end(s.mem, s.settings, restored(s))
	}
	return errors.Join(err, unlock(s.lock))
}

// restored makes the folder again if it was deleted under the store, which has all of it still, unless another process has one there by now. It reports
// whether it did so.
func restored(s *Store) bool {
	if _, err := os.Stat(s.journal.out.Name()); !errors.Is(err, os.ErrNotExist) {
		return false
	}
	held, err := s.lock.Stat()
	there, missing := os.Stat(s.lock.Name())
	if err != nil || missing == nil && !os.SameFile(held, there) {
		return false
	}
	s.config.Logger.Warn("files were deleted while they were in use: they are written again", slog.String("dir", s.config.Dir))
	return os.MkdirAll(s.config.Dir, 0o700) == nil
}
