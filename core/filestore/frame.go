package filestore

// Frames: what is written at once, so that it is read whole or not at all.

import (
	"bytes"
	"encoding/binary"
	"hash/crc64"
	"math/bits"
)

// A frame is a mark, the length of its content, a checksum of both, and the content.
const (
	mark        = "\xd0\x1fdu"
	frameHead   = len(mark) + 4 + 8
	mostContent = 512 << 20
)

var table = crc64.MakeTable(crc64.ECMA)

// appendHead makes room for the head of a frame, which seal fills in.
func appendHead(b []byte) []byte { return append(b, make([]byte, frameHead)...) }

// seal fills the head in of the frame that is the whole of b.
func seal(b []byte) {
	copy(b, mark)
	binary.LittleEndian.PutUint32(b[len(mark):], uint32(len(b)-frameHead)) //nolint:gosec // at most mostContent
	binary.LittleEndian.PutUint64(b[len(mark)+4:], checksum(b))
}

// checksum is that of a frame: over all of it but the checksum itself.
func checksum(frame []byte) uint64 {
	return crc64.Update(crc64.Update(0, table, frame[:len(mark)+4]), table, frame[frameHead:])
}

// length is how long the frame at the beginning of b says that it is, with its head; 0 if b has not all of it.
func length(b []byte) int {
	if len(b) < frameHead {
		return 0
	}
	n := int(binary.LittleEndian.Uint32(b[len(mark):]))
	if n > mostContent || n > len(b)-frameHead {
		return 0
	}
	return frameHead + n
}

// whole is the frame at the beginning of b; nil if there is none, or not as it was written.
func whole(b []byte) []byte {
	n := length(b)
	if n == 0 || !bytes.HasPrefix(b, []byte(mark)) || binary.LittleEndian.Uint64(b[len(mark)+4:]) != checksum(b[:n]) {
		return nil
	}
	return b[:n]
}

// mend is the frame at the beginning of b after one bit of it was flipped back, in b itself; nil if one bit does not do.
func mend(b []byte) []byte {
	if n := length(b); n > 0 {
		if flipped(b[:n]) {
			return whole(b)
		}
	}
	// The length itself: of each other length that differs in one bit, the checksum tells.
	for bit := range 32 {
		at := len(mark) + bit/8
		if at >= len(b) {
			return nil
		}
		b[at] ^= 1 << (bit % 8)
		if f := whole(b); f != nil {
			return f
		}
		b[at] ^= 1 << (bit % 8)
	}
	return nil
}

// flipped flips the one bit back that explains why a checksum is wrong, if one does. A checksum is linear: what is wrong with it depends on the
// place of the bit alone, not on the content. The chance that more damage looks like one bit is one in 10^12 for a frame of a megabyte.
func flipped(frame []byte) bool {
	stored := binary.LittleEndian.Uint64(frame[len(mark)+4:])
	wrong := stored ^ checksum(frame)
	if bits.OnesCount64(wrong) == 1 {
		binary.LittleEndian.PutUint64(frame[len(mark)+4:], stored^wrong)
		return true
	}
	var by [8]uint64 // how each bit of a byte changes the checksum, so many bytes before the end
	for bit := range by {
		by[bit] = table[1<<bit]
	}
	for i := len(frame) - 1; i >= 0; i-- {
		if i >= len(mark)+4 && i < frameHead {
			continue // the checksum is no part of what it sums up
		}
		for bit, v := range by {
			if v == wrong {
				frame[i] ^= 1 << bit
				return true
			}
			by[bit] = table[v&0xff] ^ (v >> 8)
		}
	}
	return false
}

// next is where the first whole frame begins at or behind an offset of b; -1 if there is none.
func next(b []byte, from int) int {
	for from < len(b) {
		i := bytes.Index(b[from:], []byte(mark))
		if i < 0 {
			return -1
		}
		if whole(b[from+i:]) != nil {
			return from + i
		}
		from += i + 1
	}
	return -1
}
