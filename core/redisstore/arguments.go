package redisstore

// The arguments of the scripts that most calls take, without an allocation for each.

import (
	"strconv"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// arguments are those of a script, as texts.
type arguments []string

// number appends a number.
func (a arguments) number(n int64) arguments { return append(a, strconv.FormatInt(n, 10)) }

// stamped appends a fence and the stamp after it, which the scripts distinguish by the length of both.
func (a arguments) stamped(fence store.Fence, stamp string) arguments {
	return append(a, strconv.FormatInt(int64(fence), 10)+stamp)
}

// pointers are the arguments as go-redis takes them: it sends the value behind a pointer, and a text that is put into an interface
// by itself is an allocation.
func (a arguments) pointers() []any {
	all := make([]any, len(a))
	for i := range a {
		all[i] = &a[i]
	}
	return all
}

// texts are many short texts in one piece of memory.
type texts struct {
	bytes []byte
	ends  []int
}

// end ends the text that was appended to bytes.
func (t *texts) end() { t.ends = append(t.ends, len(t.bytes)) }

// reader returns the texts, one for each call.
func (t *texts) reader() func() string {
	all, n, from := string(t.bytes), 0, 0
	return func() string {
		text := all[from:t.ends[n]]
		from, n = t.ends[n], n+1
		return text
	}
}
