package layout

// The arguments of the scripts that most calls take, without an allocation for each.

import (
	"strconv"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Arguments are those of a script, as texts.
type Arguments []string

// Number appends a number.
func (a Arguments) Number(n int64) Arguments { return append(a, strconv.FormatInt(n, 10)) }

// Stamped appends a fence and the stamp after it, which the scripts distinguish by the length of both.
func (a Arguments) Stamped(fence store.Fence, stamp string) Arguments {
	return append(a, strconv.FormatInt(int64(fence), 10)+stamp)
}

// Pointers are the arguments as go-redis takes them: it sends the value behind a pointer, and a text that is put into an interface
// by itself is an allocation.
func (a Arguments) Pointers() []any {
	all := make([]any, len(a))
	for i := range a {
		all[i] = &a[i]
	}
	return all
}

// Texts are many short texts in one piece of memory.
type Texts struct {
	Bytes []byte
	Ends  []int
}

// End ends the text that was appended to bytes.
func (t *Texts) End() { t.Ends = append(t.Ends, len(t.Bytes)) }

// Reader returns the texts, one for each call.
func (t *Texts) Reader() func() string {
	all, n, from := string(t.Bytes), 0, 0
	return func() string {
		text := all[from:t.Ends[n]]
		from, n = t.Ends[n], n+1
		return text
	}
}
