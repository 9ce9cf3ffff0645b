package image

// Reading: bytes to values, also of another version.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// ErrDamaged reports bytes that no format has written.
var ErrDamaged = errors.New("the bytes are damaged")

// UnknownError reports what another version has written and this one cannot read.
type UnknownError struct{ What string }

// Error says what it is.
func (e *UnknownError) Error() string {
	return "a newer version of duly has written " + e.What + ", which this one does not know"
}

// Reader reads values that were written by a format with a certain schema.
type Reader struct {
	format *Format
	named  map[string][]string // fields as they were written, by struct
	reads  map[reflect.Type]*reading
	err    error // of the schema
}

// reading is how values of one type are read.
type reading struct {
	read func(r *source, at unsafe.Pointer)
}

// Reader reads values of the format that were written with a schema. It fails with an *[UnknownError] if that has anything that this
// format has not.
func (f *Format) Reader(schema string) (*Reader, error) {
	r := &Reader{format: f, named: map[string][]string{}, reads: map[reflect.Type]*reading{}}
	root, structs, _ := strings.Cut(schema, "\n")
	if root != signature(f.root.of) {
		return nil, &UnknownError{root}
	}
	for line := range strings.Lines(structs) {
		name, fields, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		r.named[name] = nil
		if fields != "" {
			r.named[name] = strings.Split(fields, "\t")
		}
	}
	r.of(f.root)
	return r, r.err
}

// source is what is still to be read, and what was met on the way.
type source struct {
	b      []byte
	failed bool
	// values are the shared ones, by number, and done is how many of them are read.
	values []unsafe.Pointer
	reads  []*reading
	done   int
}

// fail notes that the bytes are damaged. What is read from then on is zero.
func (s *source) fail() {
	s.failed, s.b = true, nil
}

func (s *source) number() uint64 {
	n, k := binary.Uvarint(s.b)
	if k <= 0 {
		s.fail()
		return 0
	}
	s.b = s.b[k:]
	return n
}

func (s *source) signed() int64 {
	n, k := binary.Varint(s.b)
	if k <= 0 {
		s.fail()
		return 0
	}
	s.b = s.b[k:]
	return n
}

// next are the next n bytes, which stay the source's.
func (s *source) next(n uint64) []byte {
	if n > uint64(len(s.b)) {
		s.fail()
		return nil
	}
	out := s.b[:n]
	s.b = s.b[n:]
	return out
}

// length is how long something is, each item of which has at least some bytes. It reports whether it is nil.
func (s *source) length(least int) (n int, isNil bool) {
	k := s.number()
	if k == 0 {
		return 0, true
	}
	// Nothing is made that the bytes cannot fill.
	if k--; least > 0 && k > uint64(len(s.b)/least) { //nolint:gosec // a length
		s.fail()
		return 0, true
	}
	return int(k), false //nolint:gosec // no more than there are bytes
}

// of is how values of a type are read, worked out once.
func (r *Reader) of(l *layout) *reading {
	if g := r.reads[l.of]; g != nil {
		return g
	}
	g := &reading{}
	r.reads[l.of] = g
	switch l.of.Kind() {
	case reflect.Struct:
		r.structure(l, g)
	case reflect.Pointer:
		r.pointer(l, g)
	case reflect.Slice:
		r.slice(l, g)
	case reflect.Array:
		item, n, size := r.of(r.format.layoutOf(l.of.Elem())), l.of.Len(), l.of.Elem().Size()
		g.read = func(s *source, at unsafe.Pointer) {
			for i := range n {
				item.read(s, unsafe.Add(at, uintptr(i)*size))
			}
		}
	case reflect.Map:
		r.mapping(l, g)
	case reflect.String:
		g.read = func(s *source, at unsafe.Pointer) { *(*string)(at) = string(s.next(s.number())) }
	default:
		readNumber(l, g)
	}
	return g
}

// structure reads the fields that were written, where they are now.
func (r *Reader) structure(l *layout, g *reading) {
	written, ok := r.named[nameOf(l.of)]
	if !ok {
		// It is reached by a field that was not written either, or the schema is incomplete.
		g.read = func(s *source, _ unsafe.Pointer) { s.fail() }
		return
	}
	places := make([]place, len(written))
	for i, w := range written {
		places[i] = r.place(l, w)
	}
	g.read = func(s *source, at unsafe.Pointer) {
		bits := s.next(uint64(len(places)+7) / 8)
		for i := range places {
			if !s.failed && bits[i/8]&(1<<(i%8)) != 0 {
				places[i].read(s, unsafe.Add(at, places[i].offset))
			}
		}
	}
}

// place is where a field is read to.
type place struct {
	offset uintptr
	*reading
}

// place finds a field as it was written: its name and what it is.
func (r *Reader) place(l *layout, written string) place {
	name, what, _ := strings.Cut(written, " ")
	for _, f := range l.fields {
		if f.name == name && signature(f.layout.of) == what {
			return place{f.offset, r.of(f.layout)}
		}
	}
	if r.err == nil {
		r.err = &UnknownError{fmt.Sprintf("%s.%s", l.of, name)}
	}
	return place{}
}

func (r *Reader) pointer(l *layout, g *reading) {
	elem := l.of.Elem()
	to := r.of(r.format.layoutOf(elem))
	if !r.format.shared[elem] {
		g.read = func(s *source, at unsafe.Pointer) {
			if there := s.next(1); len(there) == 1 && there[0] != 0 {
				p := reflect.New(elem).UnsafePointer()
				*(*unsafe.Pointer)(at) = p
				to.read(s, p)
			}
		}
		return
	}
	g.read = func(s *source, at unsafe.Pointer) {
		n := s.number()
		switch {
		case n == 0:
		case n <= uint64(len(s.values)) && s.reads[n-1] == to:
			*(*unsafe.Pointer)(at) = s.values[n-1]
		case n == uint64(len(s.values))+1:
			p := reflect.New(elem).UnsafePointer()
			*(*unsafe.Pointer)(at) = p
			s.values, s.reads = append(s.values, p), append(s.reads, to)
		default:
			s.fail()
		}
	}
}

func (r *Reader) slice(l *layout, g *reading) {
	elem := l.of.Elem()
	if elem.Kind() == reflect.Uint8 {
		g.read = func(s *source, at unsafe.Pointer) {
			if n, isNil := s.length(1); !isNil {
				*(*[]byte)(at) = append(make([]byte, 0, n), s.next(uint64(n))...) //nolint:gosec // a length
			}
		}
		return
	}
	item := r.of(r.format.layoutOf(elem))
	g.read = func(s *source, at unsafe.Pointer) {
		n, isNil := s.length(least(elem))
		if isNil {
			return
		}
		v := reflect.MakeSlice(l.of, n, n)
		reflect.NewAt(l.of, at).Elem().Set(v)
		for i := range n {
			item.read(s, unsafe.Add(v.UnsafePointer(), uintptr(i)*elem.Size()))
		}
	}
}

func (r *Reader) mapping(l *layout, g *reading) {
	keys, values := r.of(r.format.layoutOf(l.of.Key())), r.of(r.format.layoutOf(l.of.Elem()))
	g.read = func(s *source, at unsafe.Pointer) {
		n, isNil := s.length(max(1, least(l.of.Key())))
		if isNil {
			return
		}
		m := reflect.MakeMapWithSize(l.of, n)
		reflect.NewAt(l.of, at).Elem().Set(m)
		key, value := reflect.New(l.of.Key()), reflect.New(l.of.Elem())
		for range n {
			key.Elem().SetZero()
			value.Elem().SetZero()
			keys.read(s, key.UnsafePointer())
			values.read(s, value.UnsafePointer())
			if s.failed {
				return
			}
			m.SetMapIndex(key.Elem(), value.Elem())
		}
	}
}

// least is how many bytes a value of a type has at least.
func least(t reflect.Type) int {
	switch t.Kind() {
	case reflect.Struct:
		return min(t.NumField(), 1)
	case reflect.Array:
		return t.Len() * least(t.Elem())
	default:
		return 1
	}
}

func readNumber(l *layout, g *reading) {
	size := l.of.Size()
	switch {
	case l.of.Kind() == reflect.Bool:
		g.read = func(s *source, at unsafe.Pointer) {
			if b := s.next(1); len(b) == 1 {
				*(*bool)(at) = b[0] != 0
			}
		}
	case isSigned(l.of.Kind()):
		g.read = func(s *source, at unsafe.Pointer) { setInteger(at, size, uint64(s.signed())) } //nolint:gosec // its bits are what counts
	case isUnsigned(l.of.Kind()):
		g.read = func(s *source, at unsafe.Pointer) { setInteger(at, size, s.number()) }
	default: // a float64
		g.read = func(s *source, at unsafe.Pointer) {
			if b := s.next(8); len(b) == 8 {
				*(*uint64)(at) = binary.LittleEndian.Uint64(b)
			}
		}
	}
}

// setInteger writes an integer of any size by its bits.
func setInteger(at unsafe.Pointer, size uintptr, n uint64) {
	switch size {
	case 1:
		*(*uint8)(at) = uint8(n) //nolint:gosec // it was written from as many bits
	case 2:
		*(*uint16)(at) = uint16(n) //nolint:gosec // as above
	case 4:
		*(*uint32)(at) = uint32(n) //nolint:gosec // as above
	default:
		*(*uint64)(at) = n
	}
}

// Next reads a value to where root points, which has to be zero, and returns the bytes behind it. It fails with [ErrDamaged].
// It is for values without shared ones, of which several stand in a row.
func (r *Reader) Next(b []byte, root any) (rest []byte, err error) {
	s := source{b: b}
	r.of(r.format.root).read(&s, reflect.ValueOf(root).UnsafePointer())
	if s.failed || len(s.values) > 0 {
		return nil, ErrDamaged
	}
	return s.b, nil
}

// Read reads a value to where root points, which has to be zero, from the pieces of [Format.Write]. More is the next piece, and none after the last one.
func (r *Reader) Read(root any, more func() ([]byte, error)) error {
	s := source{}
	if err := s.refill(more); err != nil {
		return err
	}
	r.of(r.format.root).read(&s, reflect.ValueOf(root).UnsafePointer())
	for ; !s.failed && s.done < len(s.values); s.done++ {
		if len(s.b) == 0 {
			if err := s.refill(more); err != nil {
				return err
			}
		}
		s.reads[s.done].read(&s, s.values[s.done])
	}
	if s.failed || len(s.b) > 0 {
		return ErrDamaged
	}
	return nil
}

// refill takes the next piece.
func (s *source) refill(more func() ([]byte, error)) (err error) {
	s.b, err = more()
	return err
}
