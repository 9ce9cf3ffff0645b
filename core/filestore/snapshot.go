package filestore

// Snapshots: the state of the store in one file, so that the journal stays short.

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store/image"
)

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
	out, err := os.OpenFile(path+unfinished, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // in the folder
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
