package image

// Formats: what is known of a type once, for all its values.

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// Format writes values of a type, and those that they point to. It is safe for concurrent use.
type Format struct {
	root   *layout
	shared map[reflect.Type]bool
	// layouts has each type once; order has the structs among them, as the schema lists them.
	layouts map[reflect.Type]*layout
	order   []*layout
}

// layout is how the values of one type are written, read, and known to be zero.
type layout struct {
	of     reflect.Type
	write  func(w *writer, at unsafe.Pointer)
	zero   func(at unsafe.Pointer) bool
	fields []field // of a struct
}

// field is a field of a struct.
type field struct {
	name   string
	offset uintptr
	layout *layout
}

// Of is the format of the values that root points to. Pointers to the types that shared point to keep their identity.
func Of(root any, shared ...any) *Format {
	f := &Format{shared: map[reflect.Type]bool{}, layouts: map[reflect.Type]*layout{}}
	for _, s := range shared {
		f.shared[reflect.TypeOf(s).Elem()] = true
	}
	f.root = f.layoutOf(reflect.TypeOf(root).Elem())
	return f
}

// layoutOf is the layout of a type, worked out once.
func (f *Format) layoutOf(t reflect.Type) *layout {
	if l := f.layouts[t]; l != nil {
		return l
	}
	l := &layout{of: t}
	f.layouts[t] = l // before its parts, which may lead back to it
	switch t.Kind() {
	case reflect.Struct:
		f.order = append(f.order, l)
		f.structure(l)
	case reflect.Pointer:
		f.pointer(l)
	case reflect.Slice:
		f.slice(l)
	case reflect.Array:
		f.array(l)
	case reflect.Map:
		f.mapping(l)
	case reflect.String:
		l.zero = func(at unsafe.Pointer) bool { return *(*string)(at) == "" }
		l.write = func(w *writer, at unsafe.Pointer) { w.text(*(*string)(at)) }
	default:
		number(l)
	}
	return l
}

// structure lays a struct out: a bit for each field that is not zero, then those fields.
func (f *Format) structure(l *layout) {
	for s := range l.of.Fields() {
		if s.Name != "_" && s.Tag.Get("image") != "-" {
			l.fields = append(l.fields, field{name: s.Name, offset: s.Offset, layout: f.layoutOf(s.Type)})
		}
	}
	fields := l.fields
	l.zero = func(at unsafe.Pointer) bool {
		for i := range fields {
			if !fields[i].layout.zero(unsafe.Add(at, fields[i].offset)) {
				return false
			}
		}
		return true
	}
	l.write = func(w *writer, at unsafe.Pointer) {
		bits := len(w.b)
		w.b = append(w.b, make([]byte, (len(fields)+7)/8)...)
		for i := range fields {
			p := unsafe.Add(at, fields[i].offset)
			if !fields[i].layout.zero(p) {
				w.b[bits+i/8] |= 1 << (i % 8)
				fields[i].layout.write(w, p)
			}
		}
	}
}

// pointer lays a pointer out: the number of a shared value, or whether there is a value, and that.
func (f *Format) pointer(l *layout) {
	to := f.layoutOf(l.of.Elem())
	l.zero = func(at unsafe.Pointer) bool { return *(*unsafe.Pointer)(at) == nil }
	if f.shared[l.of.Elem()] {
		l.write = func(w *writer, at unsafe.Pointer) { w.number(w.numberOf(to, *(*unsafe.Pointer)(at))) }
		return
	}
	l.write = func(w *writer, at unsafe.Pointer) {
		p := *(*unsafe.Pointer)(at)
		if p == nil {
			w.b = append(w.b, 0)
			return
		}
		w.b = append(w.b, 1)
		to.write(w, p)
	}
}

// sliceHeader is a slice as the compiler lays it out, which the documentation of reflect.SliceHeader promises.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// slice lays a slice out: zero for nil, else its length and one, and its items.
func (f *Format) slice(l *layout) {
	item := f.layoutOf(l.of.Elem())
	size := l.of.Elem().Size()
	l.zero = func(at unsafe.Pointer) bool { return (*sliceHeader)(at).data == nil }
	if l.of.Elem().Kind() == reflect.Uint8 {
		l.write = func(w *writer, at unsafe.Pointer) {
			b := *(*[]byte)(at)
			w.length(b == nil, len(b))
			w.b = append(w.b, b...)
		}
		return
	}
	l.write = func(w *writer, at unsafe.Pointer) {
		s := (*sliceHeader)(at)
		w.length(s.data == nil, s.len)
		for i := range s.len {
			item.write(w, unsafe.Add(s.data, uintptr(i)*size))
		}
	}
}

// array lays an array out: its items.
func (f *Format) array(l *layout) {
	item, n, size := f.layoutOf(l.of.Elem()), l.of.Len(), l.of.Elem().Size()
	l.zero = func(at unsafe.Pointer) bool {
		for i := range n {
			if !item.zero(unsafe.Add(at, uintptr(i)*size)) {
				return false
			}
		}
		return true
	}
	l.write = func(w *writer, at unsafe.Pointer) {
		for i := range n {
			item.write(w, unsafe.Add(at, uintptr(i)*size))
		}
	}
}

// number lays a plain number or a truth value out.
func number(l *layout) {
	size := l.of.Size()
	switch {
	case l.of.Kind() == reflect.Bool:
		l.zero = func(at unsafe.Pointer) bool { return !*(*bool)(at) }
		l.write = func(w *writer, at unsafe.Pointer) { w.b = append(w.b, *(*byte)(at)) }
	case isSigned(l.of.Kind()):
		l.zero = func(at unsafe.Pointer) bool { return signed(at, size) == 0 }
		l.write = func(w *writer, at unsafe.Pointer) { w.signed(signed(at, size)) }
	case isUnsigned(l.of.Kind()):
		l.zero = func(at unsafe.Pointer) bool { return unsigned(at, size) == 0 }
		l.write = func(w *writer, at unsafe.Pointer) { w.number(unsigned(at, size)) }
	case l.of.Kind() == reflect.Float64:
		// By its bits: -0 and 0 differ, as a store may tell them apart.
		l.zero = func(at unsafe.Pointer) bool { return *(*uint64)(at) == 0 }
		l.write = func(w *writer, at unsafe.Pointer) { w.fixed(*(*uint64)(at)) }
	default:
		panic(fmt.Sprintf("image: a %s cannot be written: tag the field that has it", l.of))
	}
}

func isSigned(k reflect.Kind) bool   { return k >= reflect.Int && k <= reflect.Int64 }
func isUnsigned(k reflect.Kind) bool { return k >= reflect.Uint && k <= reflect.Uint64 }

// signed and unsigned read an integer of any size.
func signed(at unsafe.Pointer, size uintptr) int64 {
	switch size {
	case 1:
		return int64(*(*int8)(at))
	case 2:
		return int64(*(*int16)(at))
	case 4:
		return int64(*(*int32)(at))
	default:
		return *(*int64)(at)
	}
}

func unsigned(at unsafe.Pointer, size uintptr) uint64 {
	switch size {
	case 1:
		return uint64(*(*uint8)(at))
	case 2:
		return uint64(*(*uint16)(at))
	case 4:
		return uint64(*(*uint32)(at))
	default:
		return *(*uint64)(at)
	}
}

// written are the names by which structs are written that have moved to another package since: what one version has written the others read.
var written = map[string]string{
	"moment.When":        "store.When",
	"alarm.Booking":      "store.Booking",
	"bound.LimitTarget":  "store.LimitTarget",
	"bound.Limit":        "store.Limit",
	"bound.LimitChange":  "store.LimitChange",
	"bound.LimitUse":     "store.LimitUse",
	"bound.Learned":      "store.Learned",
	"bound.BudgetTarget": "store.BudgetTarget",
	"bound.Budget":       "store.Budget",
	"bound.BudgetChange": "store.BudgetChange",
	"bound.BudgetUse":    "store.BudgetUse",
	"bound.BudgetShare":  "store.BudgetShare",
	"bound.Ahead":        "store.Ahead",
	"bound.Used":         "store.Used",
	"bound.Expected":     "store.Expected",
	"window.Tally":       "store.Tally",
	"window.Kind":        "store.KindWindow",
	"window.Levels":      "store.Levels",
	"window.Slot":        "store.Slot",
	"message.Receipt":    "store.Receipt",
	"breaker.Root":       "store.Root",
	"count.Counters":     "store.Counters",
	"count.Stats":        "store.Stats",
	"count.KindCounters": "store.KindCounters",
	"count.KindStats":    "store.KindStats",
	"count.Failure":      "store.Failure",
}

// nameOf is the name by which a struct is written.
func nameOf(t reflect.Type) string {
	if name, moved := written[t.String()]; moved {
		return name
	}
	return t.String()
}

// signature says what is written for a type; structs are named, and described by the schema.
func signature(t reflect.Type) string {
	switch k := t.Kind(); {
	case k == reflect.Struct:
		return nameOf(t)
	case k == reflect.Pointer:
		return "*" + signature(t.Elem())
	case k == reflect.Slice:
		return "[]" + signature(t.Elem())
	case k == reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), signature(t.Elem()))
	case k == reflect.Map:
		return "map[" + signature(t.Key()) + "]" + signature(t.Elem())
	case isSigned(k):
		return "int"
	case isUnsigned(k):
		return "uint"
	default:
		return k.String()
	}
}

// Schema describes what the format writes: a line for each struct, with the names of its fields and what they are.
func (f *Format) Schema() string {
	var out strings.Builder
	out.WriteString(signature(f.root.of) + "\n")
	for _, l := range f.order {
		out.WriteString(nameOf(l.of))
		for _, s := range l.fields {
			fmt.Fprintf(&out, "\t%s %s", s.name, signature(s.layout.of))
		}
		out.WriteString("\n")
	}
	return out.String()
}
