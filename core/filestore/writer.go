package filestore

// Writing: what has gathered is written by one goroutine, which also begins again after a failure, and makes the journal short.

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/seed-6f6f2c11/duly/core/memstore"
)

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
			if text := err.Error(); text != s.said { // not each second
				s.said = text
				s.config.Logger.Error("the journal cannot be written yet", slog.String("dir", s.config.Dir), slog.Any("error", err))
			}
			return
		}
		s.said = ""
		s.config.Logger.Info("the journal can be written again", slog.String("dir", s.config.Dir))
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
	if !j.hasRoom() {
		j.later()
		return nil
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
