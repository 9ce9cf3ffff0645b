package output

// What runs elsewhere say that they have printed.

import (
	"fmt"
	"unicode/utf8"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Sent is a piece of the output of a run that another process makes, which may come twice, and from anywhere: so its place says all.
type Sent struct {
	At   int64  `json:"at"`   // how many bytes of the output are in front of it
	Text string `json:"text"` // at most Most bytes: the last ones, if there are more
}

// Part is how long a piece is at most that is kept beside those before it: a longer one takes the place of all. Otherwise pieces that overlap, as
// a hostile worker would send them, would be kept in place of the last Most bytes many times over.
const Part = 4 << 10

// mostPrinted is more than a run prints.
const mostPrinted = 1 << 50

// Check refuses a piece that makes no sense; nil is none.
func (s *Sent) Check() error {
	switch {
	case s == nil:
	case s.At < 0 || s.At > mostPrinted:
		return &store.InvalidError{Field: "output", Reason: fmt.Sprintf("begins at %d: it must be how many bytes were printed before", s.At)}
	case len(s.Text) > Most:
		return &store.InvalidError{Field: "output", Reason: fmt.Sprintf("is %d bytes long: the limit is %d, send the last ones", len(s.Text), Most)}
	case !utf8.ValidString(s.Text):
		return &store.InvalidError{Field: "output", Reason: "must be valid UTF-8"}
	}
	return nil
}

// Chunk is the piece as a chunk of a run. Its end is its number: a piece that comes twice, or behind a later one, changes nothing. The last of a run
// has one more, as nothing may have been printed since.
func (s *Sent) Chunk(of Chunk, last bool) Chunk {
	of.At, of.Data, of.Last, of.Bound = s.At, []byte(s.Text), last, true
	of.Number = s.At + int64(len(s.Text))
	of.Keep = max(of.Number-Most, 1)
	if last {
		of.Number++
	}
	// guard: output-part
	if s.At == 0 || len(s.Text) > Part {
		of.Keep = of.Number
	}
	return of
}
