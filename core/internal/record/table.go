package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe" // only for the places of fields: see field
)

// How fields are written and read, in every record.

// wire is a record while it is written.
// Its methods write nothing for a zero value, which is what keeps small tasks small.
type wire []byte

// int writes a number, as a varint in zigzag: small ones take one byte.
func (w *wire) int(number uint64, v int64) {
	if v != 0 {
		*w = binary.AppendUvarint(*w, number<<1)
		*w = binary.AppendVarint(*w, v)
	}
}

// str writes a string.
func (w *wire) str(number uint64, s string) {
	if s != "" {
		*w = binary.AppendUvarint(*w, number<<1|1)
		*w = binary.AppendUvarint(*w, uint64(len(s)))
		*w = append(*w, s...)
	}
}

// bytes writes bytes, as str does.
func (w *wire) bytes(number uint64, b []byte) {
	if len(b) > 0 {
		*w = binary.AppendUvarint(*w, number<<1|1)
		*w = binary.AppendUvarint(*w, uint64(len(b)))
		*w = append(*w, b...)
	}
}

// nested writes bytes that write appends, without a copy of them if they are short.
func (w *wire) nested(number uint64, write func()) {
	begin := len(*w)
	*w = binary.AppendUvarint(*w, number<<1|1)
	size := len(*w)
	*w = append(*w, 0) // the length of up to 127 bytes is one
	from := len(*w)
	write()
	n := len(*w) - from
	switch {
	case n == 0:
		*w = (*w)[:begin]
	case n < 0x80:
		(*w)[size] = byte(n) //nolint:gosec // it is below 128
	default:
		b := append([]byte(nil), (*w)[from:]...)
		*w = (*w)[:begin]
		w.bytes(number, b)
	}
}

// It never says more, as the bytes may be private.
var errWire = errors.New("malformed record")

// readWire calls visit for each field: v for a number, b for bytes, and whole for the field with its tag and length. Both alias
// data.
func readWire(data []byte, visit func(number uint64, v int64, b, whole []byte)) error {
	for len(data) > 0 {
		begin := data
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
			data = data[n:]
			visit(tag>>1, v, nil, begin[:len(begin)-len(data)])
			continue
		}
		size, n := binary.Uvarint(data)
		// Every length is checked against what is left, so that no input
		// can make it read beyond the end.
		if n <= 0 || size > uint64(len(data)-n) { //nolint:gosec // n is at most len(data)
			return errWire
		}
		data = data[n:]
		b := data[:size:size]
		data = data[size:]
		visit(tag>>1, 0, b, begin[:len(begin)-len(data)])
	}
	return nil
}

// form is how a field is kept in Go, which says how it is stored.
type form byte

// Each form has one case in put and one in take.
const (
	formInt   form = iota // int, or a type that is one
	formCount             // int64, or a type that is one
	formSpan              // time.Duration, stored in milliseconds
	formFlag              // bool: what is false is not written
	formText              // string
	formRaw               // []byte, which is read without a copy
	formTexts             // []string: one entry for each
	formRuns              // History
	formOwn               // anything else: the row says how
)

// field is one row of a table: the number of a field, its form, and where it is in the record. Rows are data, as code for each of
// them would be a third of core in a function's binary; a test compares them with the fields that they are about.
type field struct {
	number uint64
	form   form
	at     uintptr

	write func(w *wire, number uint64, at unsafe.Pointer) // formOwn
	read  func(at unsafe.Pointer, v int64, b []byte)      // formOwn
}

// rows are in the order in which fields are written.
type rows []field

// table is the fields of a record, in the order in which they are written.
type table struct {
	rows rows
	by   []*field // number
}

// tableOf panics on a number that is used twice, which would read one field into another.
// Tables are made once, when the package is loaded, so the panic shows in every test.
func tableOf(all rows) *table {
	t := &table{rows: all}
	for i := range all {
		for uint64(len(t.by)) <= all[i].number {
			t.by = append(t.by, nil)
		}
		if t.by[all[i].number] != nil {
			panic(fmt.Sprintf("record: the number %d is used twice", all[i].number))
		}
		t.by[all[i].number] = &all[i]
	}
	return t
}

// encode writes the record at a place.
func (t *table) encode(from unsafe.Pointer, room int) []byte {
	w := make(wire, 0, room)
	for i := range t.rows {
		t.rows[i].put(&w, unsafe.Add(from, t.rows[i].at))
	}
	return w
}

// put writes one field, if it is not zero.
func (f *field) put(w *wire, at unsafe.Pointer) {
	switch f.form {
	case formInt:
		w.int(f.number, int64(*(*int)(at)))
	case formCount:
		w.int(f.number, *(*int64)(at))
	case formSpan:
		w.int(f.number, (*(*time.Duration)(at)).Milliseconds())
	case formFlag:
		if *(*bool)(at) {
			w.int(f.number, 1)
		}
	case formText:
		w.str(f.number, *(*string)(at))
	case formRaw:
		w.bytes(f.number, *(*[]byte)(at))
	case formTexts:
		for _, s := range *(*[]string)(at) {
			w.str(f.number, s)
		}
	case formRuns:
		(*History)(at).write(w, f.number)
	default:
		f.write(w, f.number, at)
	}
}

// decode reads the fields that it knows into the record at into. On an error, what was read before stays.
// An unknown field is skipped: it was written by a newer binary.
func (t *table) decode(data []byte, into unsafe.Pointer) error {
	return readWire(data, func(number uint64, v int64, b, whole []byte) {
		// guard: unknown-field
		if number < uint64(len(t.by)) && t.by[number] != nil {
			f := t.by[number]
			f.take(unsafe.Add(into, f.at), v, b, whole)
		}
	})
}

// take reads one field. The form decides, and not the tag: a number where
// bytes are expected reads as empty.
func (f *field) take(at unsafe.Pointer, v int64, b, whole []byte) {
	switch f.form {
	case formInt:
		*(*int)(at) = int(v)
	case formCount:
		*(*int64)(at) = v
	case formSpan:
		*(*time.Duration)(at) = time.Duration(v) * time.Millisecond
	case formFlag:
		*(*bool)(at) = true
	case formText:
		*(*string)(at) = string(b)
	case formRaw:
		*(*[]byte)(at) = b
	case formTexts:
		all := (*[]string)(at)
		*all = append(*all, string(b))
	case formRuns:
		(*History)(at).take(b, whole)
	default:
		f.read(at, v, b)
	}
}
