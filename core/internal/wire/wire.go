// Package wire copies between the structs of core and structs with JSON tags, in both directions, field by field of
// the same name. It also has the JSON forms of times, spans and milliseconds.
package wire

import (
	"encoding/json"
	"reflect"
	"sync"
	"time"
)

// Stamp is a time in JSON.
type Stamp time.Time

// IsZero lets JSON leave out a zero time.
func (s Stamp) IsZero() bool { return time.Time(s).IsZero() }

// MarshalText writes it as the store keeps it: to the millisecond.
func (s Stamp) MarshalText() ([]byte, error) {
	return time.Time(s).UTC().AppendFormat(nil, "2006-01-02T15:04:05.000Z07:00"), nil
}

// UnmarshalText reads one, in any zone.
func (s *Stamp) UnmarshalText(text []byte) error { return (*time.Time)(s).UnmarshalText(text) }

// StampOf is a time that is null if it is zero.
func StampOf(t time.Time) *Stamp {
	if t.IsZero() {
		return nil
	}
	s := Stamp(t)
	return &s
}

// TimeOf is the time of a Stamp; zero for null.
func TimeOf(s *Stamp) time.Time {
	if s == nil {
		return time.Time{}
	}
	return time.Time(*s)
}

// None is the duration that means none, where zero means the default.
const None = -time.Millisecond

// Span is a duration in JSON.
type Span time.Duration

// MarshalText writes a negative span, which means none, as 0s, as in a submit.
func (s Span) MarshalText() ([]byte, error) { return []byte(max(time.Duration(s), 0).String()), nil }

// UnmarshalText reads one as Go writes it. Zero means none, as a field that has the default is left out.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if d == 0 {
		d = None
	}
	*s = Span(d)
	return err
}

// Milliseconds are a duration in JSON where many are compared.
type Milliseconds time.Duration

// MarshalJSON writes whole milliseconds.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(m).Milliseconds())
}

// UnmarshalJSON reads them.
func (m *Milliseconds) UnmarshalJSON(data []byte) error {
	var n int64
	err := json.Unmarshal(data, &n)
	*m = Milliseconds(time.Duration(n) * time.Millisecond)
	return err
}

// fieldPair are the indexes of two fields with one name.
type fieldPair struct{ to, from []int }

// pairs keeps the fields that two types of structs have in common.
var pairs sync.Map // [2]reflect.Type -> []fieldPair

// Copy copies the fields that two structs have in common, by name, those of embedded structs as well: fields of different types have the same form, such
// as a time and a Stamp, and are converted. to and from are pointers.
func Copy(to, from any) {
	t, f := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for _, p := range pairsOf(t.Type(), f.Type()) {
		into := t.FieldByIndex(p.to)
		into.Set(f.FieldByIndex(p.from).Convert(into.Type()))
	}
}

// pairsOf are the fields that Copy copies.
func pairsOf(to, from reflect.Type) []fieldPair {
	key := [2]reflect.Type{to, from}
	if known, ok := pairs.Load(key); ok {
		all, _ := known.([]fieldPair)
		return all
	}
	var out []fieldPair
	for _, into := range reflect.VisibleFields(to) {
		of, ok := from.FieldByName(into.Name)
		if !ok || !into.IsExported() || into.Anonymous || into.Type.Kind() != of.Type.Kind() || !of.Type.ConvertibleTo(into.Type) {
			continue
		}
		out = append(out, fieldPair{into.Index, of.Index})
	}
	pairs.Store(key, out)
	return out
}
