package filestore

// The folder: its files, and reading them all into a store in memory.

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/image"
)

// Names of files. Segments and snapshots are followed by a number of at least six digits.
const (
	segmentName  = "journal-"
	snapshotName = "snapshot-"
	unfinished   = ".new" // of a snapshot that is being written
	lockName     = "lock"
	reserveName  = "reserve"
)

// The first line of a file, with the version of its form.
const (
	segmentMagic  = "duly journal 1\n"
	snapshotMagic = "duly snapshot 1\n"
)

// header is the first frame of a segment and of a snapshot.
type header struct {
	By       string   `json:"by"` // the version that wrote it
	Settings settings `json:"settings"`
	Schema   string   `json:"schema,omitempty"`  // of a snapshot: of the state
	Verbs    []string `json:"verbs,omitempty"`   // of a segment: by the numbers that its records have
	Schemas  []string `json:"schemas,omitempty"` // of their arguments
}

// settings are those of a memstore that decide how it answers: a call is made again under those it was made under.
type settings struct {
	Partitions int           `json:"partitions"`
	Retention  time.Duration `json:"retention"`
	Kept       int           `json:"kept"`
	KeptBytes  int           `json:"kept_bytes"`
	MaxTasks   int           `json:"max_tasks"`
	MaxBytes   int           `json:"max_bytes"`
	Secret     []byte        `json:"secret"` // of the feed
}

// config is a memstore's.
func (s *settings) config(clock memstore.Clock) memstore.Config {
	return memstore.Config{
		Partitions: s.Partitions, Retention: s.Retention, Kept: s.Kept, KeptBytes: s.KeptBytes, MaxTasks: s.MaxTasks, MaxBytes: s.MaxBytes,
		Clock: clock, FeedSecret: s.Secret,
	}
}

// still is a clock that does not move during a call.
type still struct{ at atomic.Int64 }

// Now is the time of the call.
func (c *still) Now() time.Time       { return time.UnixMilli(c.at.Load()) }
func (c *still) now() store.Millis    { return store.Millis(c.at.Load()) }
func (c *still) set(now store.Millis) { c.at.Store(int64(now)) }

// folder is where the files are.
type folder struct {
	dir    string
	logger *slog.Logger
	point  func(name string) error // a failpoint: see Config
	stop   <-chan struct{}         // ends what is under way; nil for never
}

// file is a segment or a snapshot.
type file struct {
	path   string
	number int
}

// files are those of a sort, by number.
func (f *folder) files(prefix string) ([]file, error) {
	all, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	var out []file
	for _, e := range all {
		digits, ok := strings.CutPrefix(e.Name(), prefix)
		if n, err := strconv.Atoi(digits); ok && err == nil {
			out = append(out, file{filepath.Join(f.dir, e.Name()), n})
		}
	}
	slices.SortFunc(out, func(a, b file) int { return a.number - b.number })
	return out, nil
}

// path is that of a segment or a snapshot.
func (f *folder) path(prefix string, number int) string {
	return filepath.Join(f.dir, fmt.Sprintf("%s%06d", prefix, number))
}

// loaded is what the folder has.
type loaded struct {
	mem      *memstore.Store // nil if the folder is empty
	clock    *still
	settings settings
	snapshot int64 // bytes
	journal  int64 // bytes of the segments behind it
	segments int   // how many these are
	next     int   // number of the next segment
	// changed is set if files were not as they were left: a tail was cut off, or a bit flipped back.
	changed bool
}

// load reads the last snapshot and makes the calls of the segments behind it again: of those below a number, or of all if it is zero.
func (f *folder) load(below int) (*loaded, error) {
	snapshots, err := f.files(snapshotName)
	if err != nil {
		return nil, err
	}
	segments, err := f.files(segmentName)
	if err != nil {
		return nil, err
	}
	l := &loaded{clock: &still{}, next: 1}
	if n := len(snapshots); n > 0 {
		if err := f.readSnapshot(snapshots[n-1], l); err != nil {
			return nil, err
		}
	}
	for i, s := range segments {
		if s.number < l.next || below > 0 && s.number >= below {
			continue
		}
		if s.number != l.next {
			return nil, &DamagedError{File: f.path(segmentName, l.next), What: "it is missing"}
		}
		if err := f.replay(s, l, i == len(segments)-1); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// replay makes the calls of a segment again. The last one may end in the middle of a frame.
func (f *folder) replay(s file, l *loaded, last bool) error {
	var calls *recorded
	end, err := f.read(s, segmentMagic, func(content []byte, at int64) (err error) {
		if calls == nil {
			calls, err = f.begin(s, l, content)
			return err
		}
		return calls.replay(l, content, s.path, at)
	})
	torn := &tornError{}
	switch {
	case errors.As(err, &torn) && last:
		f.logger.Warn("the journal ends in the middle of a call, which was never answered: cut off there", slog.String("file", s.path),
			slog.Int64("offset", torn.at), slog.Int64("bytes", torn.size-torn.at))
		l.changed = true
		if err := f.cut(s, torn.at, calls == nil); err != nil {
			return err
		}
		if calls == nil { // not even its header
			return nil
		}
		end.size = torn.at
	case errors.As(err, &torn):
		return &DamagedError{File: s.path, Offset: torn.at, What: "its end is missing"}
	case err != nil:
		return err
	}
	l.changed = l.changed || end.mended
	l.journal += end.size
	l.segments++
	l.next = s.number + 1
	return nil
}

// cut ends a file at an offset, or removes it.
func (f *folder) cut(s file, at int64, remove bool) error {
	if remove {
		return errors.Join(os.Remove(s.path), f.sync())
	}
	out, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(out.Truncate(at), out.Sync(), out.Close())
}

// begin reads the header of a segment.
func (f *folder) begin(s file, l *loaded, content []byte) (*recorded, error) {
	var h header
	if err := json.Unmarshal(content, &h); err != nil {
		return nil, &DamagedError{File: s.path, Offset: int64(len(segmentMagic)), What: "its header is none"}
	}
	l.settings = h.Settings
	if l.mem == nil {
		l.mem = memstore.New(h.Settings.config(l.clock))
	}
	memstore.StateOf(l.mem).Configure(h.Settings.config(l.clock))
	calls, err := recordedBy(&h)
	if err != nil {
		return nil, &NewerError{File: s.path, By: h.By, Err: err}
	}
	return calls, nil
}

// readSnapshot reads a snapshot.
func (f *folder) readSnapshot(s file, l *loaded) error {
	var h *header
	var pieces [][]byte
	end, err := f.read(s, snapshotMagic, func(content []byte, at int64) error {
		if h == nil {
			h = &header{}
			return json.Unmarshal(content, h)
		}
		pieces = append(pieces, content)
		return nil
	})
	if torn := (*tornError)(nil); errors.As(err, &torn) {
		err = &DamagedError{File: s.path, Offset: torn.at, What: "its end is missing"}
	}
	if err != nil {
		return err
	}
	if n := len(pieces); h == nil || n == 0 || len(pieces[n-1]) != 4 {
		return &DamagedError{File: s.path, Offset: end.size, What: "its end is missing"}
	}
	sum, pieces := pieces[len(pieces)-1], pieces[:len(pieces)-1]
	l.mem, err = memstore.ReadState(h.Settings.config(l.clock), h.Schema, func() ([]byte, error) {
		if len(pieces) == 0 {
			return nil, image.ErrDamaged
		}
		piece := pieces[0]
		pieces[0], pieces = nil, pieces[1:]
		return piece, nil
	})
	if unknown := (*image.UnknownError)(nil); errors.As(err, &unknown) {
		return &NewerError{File: s.path, By: h.By, Err: err}
	}
	if err != nil || memstore.StateOf(l.mem).Fingerprint() != binary.LittleEndian.Uint32(sum) {
		return &DamagedError{File: s.path, What: "it is not what was written"}
	}
	l.settings, l.next, l.snapshot, l.changed = h.Settings, s.number, end.size, end.mended
	return nil
}

// writeSnapshot stores the state of a store as that after all segments below a number, and then forgets those.
func (f *folder) writeSnapshot(mem *memstore.Store, now settings, number int) (size int64, err error) {
	path := f.path(snapshotName, number)
	out, err := os.OpenFile(path+unfinished, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = out.Close()
			_ = os.Remove(path + unfinished)
		}
	}()
	w := bufio.NewWriterSize(out, 1<<16)
	_, _ = w.WriteString(snapshotMagic) // an error of w comes again with Flush
	frame := func(content []byte) error {
		b := append(appendHead(make([]byte, 0, frameHead+len(content))), content...)
		seal(b)
		size += int64(len(b))
		_, err := w.Write(b)
		return errors.Join(err, f.stopped())
	}
	head, err := json.Marshal(header{By: program(), Settings: now, Schema: memstore.StateSchema()})
	if err != nil {
		return 0, err
	}
	if err := errors.Join(frame(head), memstore.StateOf(mem).Write(frame), frame(binary.LittleEndian.AppendUint32(nil, memstore.StateOf(mem).Fingerprint())), w.Flush()); err != nil {
		return 0, err
	}
	if err := f.at("snapshot written"); err != nil {
		return 0, err
	}
	if err := errors.Join(out.Sync(), out.Close()); err != nil {
		return 0, err
	}
	if err := f.at("snapshot synced"); err != nil {
		return 0, err
	}
	if err := os.Rename(path+unfinished, path); err != nil {
		return 0, err
	}
	if err := f.at("snapshot renamed"); err != nil {
		return 0, err
	}
	// The old ones go only once the new one is there for good.
	if err := f.sync(); err != nil {
		return 0, err
	}
	f.forget(number)
	return size, nil
}

// forget removes what a snapshot has made superfluous. What is left of it is removed the next time.
func (f *folder) forget(below int) {
	for _, prefix := range []string{segmentName, snapshotName} {
		all, _ := f.files(prefix)
		for _, old := range all {
			if old.number < below {
				_ = os.Remove(old.path)
				_ = f.at("old removed")
			}
		}
	}
	all, _ := filepath.Glob(filepath.Join(f.dir, snapshotName+"*"+unfinished))
	for _, left := range all {
		_ = os.Remove(left)
	}
}

// sync makes the names of files last.
func (f *folder) sync() error {
	d, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// errStopped ends work in the background of a store that is closed.
var errStopped = errors.New("the store is closed")

func (f *folder) stopped() error {
	select {
	case <-f.stop:
		return errStopped
	default:
		return nil
	}
}

// at is a failpoint.
func (f *folder) at(name string) error {
	if f.point == nil {
		return nil
	}
	return f.point(name)
}

// tornError reports that a file ends within a frame, from an offset on.
type tornError struct{ at, size int64 }

func (e *tornError) Error() string { return fmt.Sprintf("it ends within the frame at byte %d", e.at) }

// ending is how reading a file went.
type ending struct {
	size   int64
	mended bool // a bit was flipped back
}

// read calls each with the content of each frame and its offset.
func (f *folder) read(s file, magic string, each func(content []byte, at int64) error) (ending, error) {
	in, err := os.Open(s.path)
	if err != nil {
		return ending{}, err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return ending{}, err
	}
	end := ending{size: info.Size()}
	r := bufio.NewReaderSize(in, 1<<16)
	first := make([]byte, min(int64(len(magic)), end.size))
	if _, err := io.ReadFull(r, first); err != nil {
		return end, err
	}
	if string(first) != magic[:len(first)] {
		return end, f.notOurs(s, magic, first)
	}
	if len(first) < len(magic) {
		return end, &tornError{at: 0, size: end.size}
	}
	for at := int64(len(magic)); at < end.size; {
		frame, mended, err := readFrame(in, r, at, end.size)
		if err != nil {
			return end, f.orDamaged(err, s)
		}
		if mended {
			f.logger.Warn("a bit had flipped, and was flipped back", slog.String("file", s.path), slog.Int64("offset", at))
			end.mended = true
		}
		if err := errors.Join(each(frame[frameHead:], at), f.stopped()); err != nil {
			return end, err
		}
		at += int64(len(frame))
	}
	return end, nil
}

// notOurs is the error for a file that begins with something else: a version to come, or damage.
func (f *folder) notOurs(s file, magic string, first []byte) error {
	ours := magic[:strings.LastIndexByte(magic, ' ')]
	if version, ok := strings.CutPrefix(string(first), ours+" "); ok {
		return &NewerError{File: s.path, By: "of a later time", Err: &image.UnknownError{What: "its form " + strings.TrimSpace(version)}}
	}
	return &DamagedError{File: s.path, What: "it does not begin as it should"}
}

// orDamaged names the file of a frame that is wrong and was on the disk for certain.
func (f *folder) orDamaged(err error, s file) error {
	if d := (*DamagedError)(nil); errors.As(err, &d) {
		d.File = s.path
	}
	return err
}

// readFrame reads the frame at an offset.
func readFrame(in *os.File, r *bufio.Reader, at, size int64) (frame []byte, mended bool, err error) {
	head, err := r.Peek(frameHead)
	if err == nil && string(head[:len(mark)]) == mark {
		if n := int64(frameHead) + int64(binary.LittleEndian.Uint32(head[len(mark):])); at+n <= size && n <= maxContent {
			frame = make([]byte, n)
			if _, err := io.ReadFull(r, frame); err != nil {
				return nil, false, err
			}
			if f := whole(frame); f != nil {
				return f, false, nil
			}
		}
	}
	// Something is wrong: the rest is looked at as a whole.
	rest := make([]byte, size-at)
	if _, err := in.ReadAt(rest, at); err != nil {
		return nil, false, err
	}
	if f := mend(rest); f != nil {
		_, err := in.Seek(at+int64(len(f)), io.SeekStart)
		r.Reset(in)
		return f, true, err
	}
	// What was on the disk for good before a later frame was written is damaged; all else was never answered.
	for from := 1; ; from++ {
		if from = next(rest, from); from < 0 {
			return nil, false, &tornError{at: at, size: size}
		}
		if syncedBefore(whole(rest[from:])[frameHead:]) > at {
			return nil, false, &DamagedError{Offset: at, What: "more than one bit"}
		}
	}
}
