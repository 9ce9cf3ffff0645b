package filestore

// Records: one call each, as they are written and made again.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store/image"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// verb is a call that changes the store.
type verb[A, R any] struct {
	name   string
	number uint64
	format *image.Format
	do     func(ctx context.Context, m *memstore.Store, args A) (R, error)
}

// replayer makes calls of a verb again.
type replayer interface {
	called() string
	schema() string
	// reader reads arguments of a schema from the beginning of b, makes the call, and returns what is behind them.
	reader(schema string) (func(m *memstore.Store, b []byte) ([]byte, error), error)
}

// verbs are all of them, by number.
var verbs []replayer

// journalled makes a verb.
func journalled[A, R any](name string, do func(ctx context.Context, m *memstore.Store, args A) (R, error)) *verb[A, R] {
	v := &verb[A, R]{name: name, number: uint64(len(verbs)), format: image.Of((*A)(nil)), do: do}
	verbs = append(verbs, v)
	return v
}

func (v *verb[A, R]) called() string { return v.name }
func (v *verb[A, R]) schema() string { return v.format.Schema() }

func (v *verb[A, R]) reader(schema string) (func(m *memstore.Store, b []byte) ([]byte, error), error) {
	r, err := v.format.Reader(schema)
	if err != nil {
		return nil, err
	}
	return func(m *memstore.Store, b []byte) ([]byte, error) {
		var args A
		rest, err := r.Next(b, &args)
		if err == nil {
			_, _ = v.do(context.Background(), m, args) //nolint:forbidigo // its caller has gone long since; an error was the answer then, too
		}
		return rest, err
	}, nil
}

// appendRecord writes a call: its verb, how much later it was than the one before, and its arguments.
func appendRecord[A, R any](b []byte, v *verb[A, R], later moment.Millis, args *A) []byte {
	b = binary.AppendUvarint(b, v.number)
	b = binary.AppendVarint(b, int64(later))
	return v.format.Append(b, args)
}

// recorded are the calls of a segment, which another version may have written.
type recorded struct {
	by    string
	verbs []func(m *memstore.Store, b []byte) ([]byte, error)
}

// recordedBy reads calls by the header of their segment.
func recordedBy(h *header) (*recorded, error) {
	out := &recorded{by: h.By}
	for i, name := range h.Verbs {
		known := false
		for _, v := range verbs {
			if v.called() == name && i < len(h.Schemas) {
				read, err := v.reader(h.Schemas[i])
				if err != nil {
					return nil, err
				}
				out.verbs, known = append(out.verbs, read), true
			}
		}
		if !known {
			return nil, &image.UnknownError{What: "calls of " + name}
		}
	}
	return out, nil
}

// appendCheck begins the content of a frame: room for the fingerprint of the state after it, and how much of the file had been synced before it.
func appendCheck(b []byte, synced int64) []byte {
	return binary.AppendUvarint(append(b, 0, 0, 0, 0), uint64(synced)) //nolint:gosec // an offset
}

// setCheck sets the fingerprint.
func setCheck(frame []byte, fingerprint uint32) {
	binary.LittleEndian.PutUint32(frame[frameHead:], fingerprint)
}

// syncedBefore is how much of the file had been synced before a frame with this content was written.
func syncedBefore(content []byte) int64 {
	if len(content) < 4 {
		return 0
	}
	n, _ := binary.Uvarint(content[4:])
	return int64(n) //nolint:gosec // an offset
}

// replay makes the calls of a frame again. The state has to be as it was then: a version that answers one of them differently would go on from
// something that has never been.
func (r *recorded) replay(l *loaded, content []byte, path string, at int64) error {
	damaged := &DamagedError{File: path, Offset: at, What: "it is no record"}
	if len(content) < 4 {
		return damaged
	}
	want := binary.LittleEndian.Uint32(content)
	_, n := binary.Uvarint(content[4:])
	if n <= 0 {
		return damaged
	}
	b := content[4+n:]
	for now := moment.Millis(0); len(b) > 0; {
		number, k := binary.Uvarint(b)
		if k <= 0 || number >= uint64(len(r.verbs)) {
			return damaged
		}
		later, j := binary.Varint(b[k:])
		if j <= 0 {
			return damaged
		}
		now += moment.Millis(later)
		l.clock.set(now)
		var err error
		if b, err = r.verbs[number](l.mem, b[k+j:]); err != nil {
			return damaged
		}
	}
	// guard: file-fingerprint
	if memstore.StateOf(l.mem).Fingerprint() != want {
		if r.by == program() {
			return &DamagedError{File: path, Offset: at, What: "its calls give another state than before"}
		}
		return &NewerError{File: path, By: r.by, Err: errors.New("this one answers the calls in it differently; it leaves a snapshot when it ends, which any later one reads")}
	}
	return nil
}

// program is the version of this program, as the build knows it.
var program = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			version = fmt.Sprintf("%s (%.12s)", version, s.Value)
		}
	}
	return version
})
