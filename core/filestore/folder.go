package filestore

// The folder: its files, and reading them all into a store in memory.

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
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
func (c *still) Now() time.Time        { return time.UnixMilli(c.at.Load()) }
func (c *still) set(now moment.Millis) { c.at.Store(int64(now)) }

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
			calls, err = begin(s, l, content)
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
func begin(s file, l *loaded, content []byte) (*recorded, error) {
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
