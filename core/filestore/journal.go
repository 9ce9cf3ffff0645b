package filestore

// The journal: writing it, and making it short again.

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/memstore"
)

const (
	// mostSegments is how many segments make a snapshot worth it: each start begins one.
	mostSegments = 16
	// againEvery is how often is tried whether what failed can be written again.
	againEvery = time.Second
	// mostSpare is how large a buffer may be that is kept for the next calls.
	mostSpare = 1 << 20
)

// journal is the segment that is being written. One goroutine has it; only synced and full are for others too.
type journal struct {
	folder *folder
	config *Config

	out    *os.File
	number int
	head   int64 // bytes of its header
	size   int64 // bytes written
	// synced is how many of them are there for good.
	synced atomic.Int64
	full   atomic.Bool // the disk is, and the reserve is in use
	// behind are the bytes of the segments between the last snapshot and this one, and segments is how many these are.
	behind   int64
	segments int
	snapshot int64 // bytes
	wanted   int64 // so many bytes behind a snapshot make the next one worth it
	// compacted has the outcome of a snapshot that is made in the background; compacting is set until then.
	compacting bool
	compacted  chan compacted
}

// compacted is the outcome of a snapshot: its size, the segments and bytes that it has made superfluous.
type compacted struct {
	size, covered int64
	segments      int
	err           error
}

// begin begins a new segment behind what was loaded.
func (j *journal) begin(l *loaded, now settings) error {
	j.number, j.snapshot, j.behind, j.segments = l.next, l.snapshot, l.journal, l.segments
	j.want()
	if j.out != nil {
		_ = j.out.Close() // what failed
	}
	if err := j.room(func() error { return j.segment(now) }); err != nil {
		return err
	}
	if !j.full.Load() && !j.keepReserve() {
		j.setFull()
	}
	return nil
}

// setFull takes nothing new in until there is room again.
func (j *journal) setFull() {
	j.full.Store(true)
	j.config.Logger.Warn("the disk is full: nothing new is taken in, and what is there runs on out of the reserve", slog.String("dir", j.config.Dir),
		slog.String("todo", "free some space"))
}

// want works out when the next snapshot is worth it.
func (j *journal) want() { j.wanted = max(j.config.SnapshotAfter, j.snapshot/4) }

// segment begins the file of a segment, which is there for good when it returns.
func (j *journal) segment(now settings) error {
	h := header{By: program(), Settings: now}
	for _, v := range verbs {
		h.Verbs, h.Schemas = append(h.Verbs, v.called()), append(h.Schemas, v.schema())
	}
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	b := append(appendHead(nil), head...)
	seal(b)
	path := j.folder.path(segmentName, j.number)
	out, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // in the folder
	if err != nil {
		return err
	}
	_, err = out.Write(append([]byte(segmentMagic), b...))
	if err = errors.Join(err, j.folder.at("segment written")); err == nil {
		err = errors.Join(out.Sync(), j.folder.sync(), j.folder.at("segment synced"))
	}
	if err != nil {
		_ = out.Close()
		_ = os.Remove(path)
		return err
	}
	j.out, j.head = out, int64(len(segmentMagic)+len(b))
	j.size = j.head
	j.synced.Store(j.size)
	return nil
}

// put writes a frame, and makes it last unless that is done now and then.
func (j *journal) put(frame []byte) error {
	err := j.room(func() error {
		if err := j.folder.at("write"); err != nil {
			return err
		}
		_, err := j.out.WriteAt(frame, j.size)
		return err
	})
	if err = errors.Join(err, j.folder.at("written")); err != nil {
		return err
	}
	j.size += int64(len(frame))
	if j.config.SyncEvery > 0 {
		return nil
	}
	return j.sync()
}

// sync makes what was written last.
func (j *journal) sync() error {
	// guard: file-sync
	if err := errors.Join(j.out.Sync(), j.folder.at("synced")); err != nil {
		return err
	}
	j.synced.Store(j.size)
	return nil
}

// room does something that needs room on the disk, out of the reserve if there is no other.
func (j *journal) room(do func() error) error {
	err := do()
	if !isFull(err) || j.full.Load() {
		return err
	}
	j.setFull()
	return errors.Join(os.Remove(j.reserve()), do())
}

// reserve is the file that keeps room.
func (j *journal) reserve() string { return filepath.Join(j.config.Dir, reserveName) }

// keepReserve makes the reserve what it is to be. It reports whether there is room for it.
func (j *journal) keepReserve() bool {
	if info, err := os.Stat(j.reserve()); err == nil && info.Size() == j.config.Reserve {
		return true
	}
	out, err := os.OpenFile(j.reserve(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return false
	}
	// Not zeros: those take no room on some disks.
	b := make([]byte, 1<<16)
	x := uint32(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x & 0xff)
	}
	for left := j.config.Reserve; left > 0 && err == nil; left -= int64(len(b)) {
		err = j.folder.at("reserve")
		if err == nil {
			_, err = out.Write(b[:min(left, int64(len(b)))])
		}
	}
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		_ = os.Remove(j.reserve())
		return false
	}
	return true
}

// after is the machine's: what it measures is the disk, and not what is due.
func after(d time.Duration) <-chan time.Time { return time.After(d) } //nolint:forbidigo // see above

// write is the goroutine that writes.
func (s *Store) write() {
	var sync, again <-chan time.Time
	for {
		select {
		case <-s.kick:
			s.flush()
		case <-sync:
			sync = nil
			s.fail(s.journal.sync())
		case c := <-s.journal.compacted:
			s.journal.finish(c)
		case <-again:
			again = nil
			s.tryAgain()
		case <-s.stop:
			s.flush()
			return
		}
		if sync == nil && s.config.SyncEvery > 0 && s.failed == nil && s.journal.synced.Load() < s.journal.size {
			sync = after(s.config.SyncEvery)
		}
		if again == nil && (s.failed != nil || s.journal.full.Load()) {
			again = after(againEvery)
		}
		if s.failed == nil && s.journal.isLong() {
			s.fail(s.compact())
		}
	}
}

// flush writes what is pending.
func (s *Store) flush() {
	s.mu.Lock()
	frame, batch := s.pending, s.batch
	s.pending = nil
	if frame == nil {
		s.mu.Unlock()
		return
	}
	setCheck(frame, memstore.StateOf(s.mem).Fingerprint())
	s.mu.Unlock()
	seal(frame)
	err := s.journal.put(frame)
	s.fail(err)
	batch.err = err
	close(batch.done)
	if cap(frame) <= mostSpare {
		s.mu.Lock()
		s.spare = frame[:0]
		s.mu.Unlock()
	}
}

// fail notes that what is in memory is no longer what is stored: nothing is answered until the folder was read again.
func (s *Store) fail(err error) {
	if err == nil || s.failed != nil {
		return
	}
	s.config.Logger.Error("the journal cannot be written: nothing is answered until it can be", slog.String("dir", s.config.Dir), slog.Any("error", err))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = fmt.Errorf("the journal in %s cannot be written: %w", s.config.Dir, err)
	if s.pending != nil {
		s.batch.err = s.failed
		close(s.batch.done)
		s.pending = nil
	}
}

// tryAgain reads the folder again after a failure, and looks whether a full disk has room again.
func (s *Store) tryAgain() {
	if s.failed != nil {
		if s.journal.compacting {
			return // it reads what is about to be replaced
		}
		if err := s.read(); err != nil {
			s.config.Logger.Error("the journal cannot be written yet", slog.String("dir", s.config.Dir), slog.Any("error", err))
			return
		}
		s.config.Logger.Info("the journal can be written again", slog.String("dir", s.config.Dir))
		s.mu.Lock()
		close(s.again)
		s.again = make(chan struct{})
		s.mu.Unlock()
	}
	if s.journal.full.Load() && s.journal.keepReserve() {
		s.config.Logger.Info("the disk has room again", slog.String("dir", s.config.Dir))
		s.journal.full.Store(false)
	}
}

// compact begins a snapshot in the background once the journal has become long. It is made of the files alone, by a store of its own, so that no call waits
// for it: the last snapshot and the calls since then.
func (s *Store) compact() error {
	j := &s.journal
	if err := j.sync(); err != nil {
		return err
	}
	old := j.out
	covered, segments := j.behind+j.size, j.segments+1
	j.number++
	if err := j.room(func() error { return j.segment(s.settings) }); err != nil {
		return err
	}
	_ = old.Close()
	j.behind, j.segments, j.compacting = covered, segments, true
	background := s.folder
	background.stop = s.stop
	below := j.number
	s.ended.Go(func() {
		out := compacted{covered: covered, segments: segments}
		l, err := background.load(below)
		if err == nil {
			out.size, err = background.writeSnapshot(l.mem, l.settings, below)
		}
		out.err = err
		j.compacted <- out
	})
	return nil
}

// isLong reports whether a snapshot is worth it, and none is under way.
func (j *journal) isLong() bool {
	return !j.compacting && (j.size-j.head+j.behind >= j.wanted || j.segments >= mostSegments)
}

// finish notes the outcome of a snapshot. One that failed is tried again when the journal is half as long again.
func (j *journal) finish(c compacted) {
	j.compacting = false
	if c.err != nil {
		if !errors.Is(c.err, errStopped) {
			j.config.Logger.Warn("the journal could not be made shorter", slog.String("dir", j.config.Dir), slog.Any("error", c.err))
		}
		j.wanted = j.behind + j.behind/2
		return
	}
	j.snapshot, j.behind, j.segments = c.size, j.behind-c.covered, j.segments-c.segments
	j.want()
}

// end ends the segment. It leaves a snapshot if that takes no longer than making the calls again would.
func (j *journal) end(mem *memstore.Store, now settings) error {
	defer func() { _ = j.out.Close() }()
	if err := j.sync(); err != nil {
		return err
	}
	written := j.size - j.head
	if written == 0 {
		_ = os.Remove(j.out.Name())
	}
	if written+j.behind == 0 || (written+j.behind)*8 < j.snapshot && j.segments < mostSegments {
		return nil
	}
	_, err := j.folder.writeSnapshot(mem, now, j.number+1)
	return unlessFull(err) // the journal has it all
}

// unlessFull is an error, unless it says that the disk is full.
func unlessFull(err error) error {
	if isFull(err) {
		return nil
	}
	return err
}
