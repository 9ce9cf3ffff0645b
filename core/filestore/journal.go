package filestore

// The journal: its segment, its room on the disk, and when it is too long.

import (
	"encoding/json"
	"errors"
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
	// wanted is how many bytes behind a snapshot make the next one worth it, and wantedSegments how many segments do.
	wanted         int64
	wantedSegments int
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

// keepReserve makes the reserve as large as it is to be at least. It reports whether there is room for it.
func (j *journal) keepReserve() bool {
	if info, err := os.Stat(j.reserve()); err == nil && info.Size() >= j.config.Reserve {
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

// isLong reports whether a snapshot is worth it, and may be made: on a full disk it would take the room of what calls write.
func (j *journal) isLong() bool {
	// guard: file-room
	return !j.compacting && !j.full.Load() && (j.size-j.head+j.behind >= j.wanted || j.segments >= j.wantedSegments)
}

// want works out when the next snapshot is worth it.
func (j *journal) want() {
	j.wanted, j.wantedSegments = max(j.config.SnapshotAfter, j.snapshot/4), mostSegments
}

// later puts the next snapshot off until the journal is half as long again, and has as many segments more.
func (j *journal) later() {
	long := j.behind + j.size
	j.wanted, j.wantedSegments = long+long/2, j.segments+mostSegments
}

// hasRoom reports whether the disk has room for a snapshot besides what calls write, and the reserve: it is no longer than what it is made of.
func (j *journal) hasRoom() bool {
	needs, has := j.snapshot+j.behind+j.size+j.config.Reserve, j.config.room()
	// guard: file-snapshot-room
	if has >= needs {
		return true
	}
	j.config.Logger.Warn("the disk has no room for a snapshot: the journal grows, and the next start takes longer", slog.String("dir", j.config.Dir),
		slog.Int64("needs", needs), slog.Int64("has", has), slog.String("todo", "free some space"))
	return false
}

// finish notes the outcome of a snapshot.
func (j *journal) finish(c compacted) {
	j.compacting = false
	if c.err != nil {
		if !errors.Is(c.err, errStopped) {
			j.config.Logger.Warn("the journal could not be made shorter", slog.String("dir", j.config.Dir), slog.Any("error", c.err))
		}
		j.later()
		return
	}
	j.snapshot, j.behind, j.segments = c.size, j.behind-c.covered, j.segments-c.segments
	j.want()
}

// end ends the segment. It leaves a snapshot if that takes no longer than making the calls again would, or if it has to.
func (j *journal) end(mem *memstore.Store, now settings, has bool) error {
	defer func() { _ = j.out.Close() }()
	if err := j.sync(); err != nil {
		return err
	}
	written := j.size - j.head
	if written == 0 {
		_ = os.Remove(j.out.Name())
	}
	if !has && (written+j.behind == 0 || (written+j.behind)*8 < j.snapshot && j.segments < mostSegments) {
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
