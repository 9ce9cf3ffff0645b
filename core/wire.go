package core

import (
	"encoding/binary"
	"errors"
)

// What core stores inside a record is a list of fields: a tag, which is the field's number times two plus one if it
// holds bytes, then a varint, or a length and bytes. A reader skips fields that it does not know, so that binaries of
// two versions can share a store. Zero values are not written.

type wire []byte

func (w *wire) int(field uint64, v int64) {
	if v != 0 {
		*w = binary.AppendUvarint(*w, field<<1)
		*w = binary.AppendVarint(*w, v)
	}
}

func (w *wire) str(field uint64, s string) {
	if s != "" {
		*w = binary.AppendUvarint(*w, field<<1|1)
		*w = binary.AppendUvarint(*w, uint64(len(s)))
		*w = append(*w, s...)
	}
}

func (w *wire) bytes(field uint64, b []byte) {
	if len(b) > 0 {
		*w = binary.AppendUvarint(*w, field<<1|1)
		*w = binary.AppendUvarint(*w, uint64(len(b)))
		*w = append(*w, b...)
	}
}

var errWire = errors.New("malformed record")

// readWire calls visit for each field: v for a number, b for bytes, which alias data.
func readWire(data []byte, visit func(field uint64, v int64, b []byte)) error {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return errWire
		}
		data = data[n:]
		if tag&1 == 0 {
			v, n := binary.Varint(data)
			if n <= 0 {
				return errWire
			}
			visit(tag>>1, v, nil)
			data = data[n:]
			continue
		}
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) { //nolint:gosec // n is at most len(data)
			return errWire
		}
		data = data[n:]
		visit(tag>>1, 0, data[:size:size])
		data = data[size:]
	}
	return nil
}
