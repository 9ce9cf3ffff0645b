package filestore

// Reading a file frame by frame: what is wrong with it is mended, cut off or named.

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store/image"
)

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
		return end, notOurs(s, magic, first)
	}
	if len(first) < len(magic) {
		return end, &tornError{at: 0, size: end.size}
	}
	for at := int64(len(magic)); at < end.size; {
		frame, mended, err := readFrame(in, r, at, end.size)
		if err != nil {
			return end, orDamaged(err, s)
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
func notOurs(s file, magic string, first []byte) error {
	ours := magic[:strings.LastIndexByte(magic, ' ')]
	if version, ok := strings.CutPrefix(string(first), ours+" "); ok {
		return &NewerError{File: s.path, By: "of a later time", Err: &image.UnknownError{What: "its form " + strings.TrimSpace(version)}}
	}
	return &DamagedError{File: s.path, What: "it does not begin as it should"}
}

// orDamaged names the file of a frame that is wrong and was on the disk for certain.
func orDamaged(err error, s file) error {
	if d := (*DamagedError)(nil); errors.As(err, &d) {
		d.File = s.path
	}
	return err
}

// readFrame reads the frame at an offset.
func readFrame(in *os.File, r *bufio.Reader, at, size int64) (frame []byte, mended bool, err error) {
	if frame, err := nextFrame(r, size-at); frame != nil || err != nil {
		return frame, false, err
	}
	// Something is wrong: the rest is looked at as a whole.
	rest := make([]byte, size-at)
	if _, err := in.ReadAt(rest, at); err != nil {
		return nil, false, err
	}
	// guard: file-mended
	if f := mend(rest); f != nil {
		_, err := in.Seek(at+int64(len(f)), io.SeekStart)
		r.Reset(in)
		return f, true, err
	}
	// What was on the disk for good before a later frame was written is damaged; all else was never answered.
	for from := next(rest, 1); from >= 0; from = next(rest, from+1) {
		// guard: file-damaged
		if syncedBefore(whole(rest[from:])[frameHead:]) > at {
			return nil, false, &DamagedError{Offset: at, What: "more than one bit"}
		}
	}
	return nil, false, &tornError{at: at, size: size}
}

// nextFrame reads the next frame; nil if that is not there as it was written. At most left bytes are there.
func nextFrame(r *bufio.Reader, left int64) ([]byte, error) {
	head, err := r.Peek(frameHead)
	if err != nil || string(head[:len(mark)]) != mark {
		return nil, nil //nolint:nilerr // what is there instead is looked at next
	}
	n := int64(frameHead) + int64(binary.LittleEndian.Uint32(head[len(mark):]))
	if n > left || n > mostContent {
		return nil, nil
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	return whole(frame), nil
}
