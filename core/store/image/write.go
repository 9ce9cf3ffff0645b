package image

// Writing: values to bytes.

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"unsafe"
)

// writer is one value on its way to bytes.
type writer struct {
	b []byte
	// numbers are those of the shared values that were met, and queue has those that are still to be written, in that order.
	numbers map[unsafe.Pointer]uint64
	queue   []met
}

// met is a shared value.
type met struct {
	layout *layout
	at     unsafe.Pointer
}

func (w *writer) number(n uint64) { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) signed(n int64)  { w.b = binary.AppendVarint(w.b, n) }
func (w *writer) fixed(n uint64)  { w.b = binary.LittleEndian.AppendUint64(w.b, n) }

func (w *writer) text(s string) {
	w.number(uint64(len(s)))
	w.b = append(w.b, s...)
}

// length writes how long something is that may also be nil.
func (w *writer) length(isNil bool, n int) {
	if isNil {
		w.number(0)
	} else {
		w.number(uint64(n) + 1) //nolint:gosec // a length
	}
}

// numberOf is the number of a shared value, from 1 on; 0 for none.
func (w *writer) numberOf(l *layout, at unsafe.Pointer) uint64 {
	if at == nil {
		return 0
	}
	n, ok := w.numbers[at]
	if !ok {
		n = uint64(len(w.numbers)) + 1
		w.numbers[at] = n
		w.queue = append(w.queue, met{l, at})
	}
	return n
}

// mapping lays a map out: zero for nil, else its length and one, and its entries in the order of their keys as they are written.
func (f *Format) mapping(l *layout) {
	keys, values := f.layoutOf(l.of.Key()), f.layoutOf(l.of.Elem())
	if f.shared[pointee(l.of.Key())] {
		panic("image: a " + l.of.String() + " has no order to write it in: name its keys")
	}
	l.zero = func(at unsafe.Pointer) bool { return *(*unsafe.Pointer)(at) == nil }
	l.write = func(w *writer, at unsafe.Pointer) {
		m := reflect.NewAt(l.of, at).Elem()
		w.length(m.IsNil(), m.Len())
		if m.Len() == 0 {
			return
		}
		// Keys and values are copied to a place of their own, as a map has no places that last.
		type entry struct{ key, value reflect.Value }
		all := make([]entry, 0, m.Len())
		written := writer{}
		ends := make([]int, 0, m.Len()+1)
		ends = append(ends, 0)
		for it := m.MapRange(); it.Next(); {
			e := entry{reflect.New(l.of.Key()), reflect.New(l.of.Elem())}
			e.key.Elem().SetIterKey(it)
			e.value.Elem().SetIterValue(it)
			keys.write(&written, e.key.UnsafePointer())
			all, ends = append(all, e), append(ends, len(written.b))
		}
		order := make([]int, len(all))
		for i := range order {
			order[i] = i
		}
		key := func(i int) []byte { return written.b[ends[i]:ends[i+1]] }
		slices.SortFunc(order, func(a, b int) int { return bytes.Compare(key(a), key(b)) })
		for _, i := range order {
			w.b = append(w.b, key(i)...)
			values.write(w, all[i].value.UnsafePointer())
		}
	}
}

// pointee is what a type points to; nil for any other.
func pointee(t reflect.Type) reflect.Type {
	if t.Kind() != reflect.Pointer {
		return nil
	}
	return t.Elem()
}

// piece is about how many bytes are handed over at once.
const piece = 1 << 20

// Append writes the value that root points to behind b. It must not change meanwhile.
func (f *Format) Append(b []byte, root any) []byte {
	_ = f.write(writer{b: b}, root, func(w *writer, last bool) error {
		b = w.b
		return nil
	})
	return b
}

// Write hands the value that root points to over in pieces, each of whole values. It must not change meanwhile. A piece is only valid during its call.
func (f *Format) Write(root any, give func(piece []byte) error) error {
	return f.write(writer{}, root, func(w *writer, last bool) error {
		if len(w.b) < piece && !last {
			return nil
		}
		err := give(w.b)
		w.b = w.b[:0]
		return err
	})
}

// write writes a value, and the shared ones that it leads to.
func (f *Format) write(w writer, root any, after func(w *writer, last bool) error) error {
	if len(f.shared) > 0 {
		w.numbers = map[unsafe.Pointer]uint64{}
	}
	f.root.write(&w, reflect.ValueOf(root).UnsafePointer())
	for i := 0; i < len(w.queue); i++ {
		if err := after(&w, false); err != nil {
			return err
		}
		next := w.queue[i]
		next.layout.write(&w, next.at)
	}
	return after(&w, true)
}
