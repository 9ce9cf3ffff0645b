package world

// The story of a history, in lines that a person reads.

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// trace adds a line to the story, if the story is wanted.
// The arguments are formatted only then: most histories are played without a story.
func (w *World) trace(format string, args ...any) {
	if w.story == nil {
		return
	}
	at := w.elapsed()
	line := strings.Map(printable, fmt.Sprintf(format, args...))    // bodies of tasks are bytes
	_, _ = fmt.Fprintf(w.story, "%9.3fs  %s\n", at.Seconds(), line) // to memory
}

// printable drops what a terminal would not show.
func printable(r rune) rune {
	if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
		return -1
	}
	return r
}

// fence numbers fences in the order in which they are seen: their own numbers say nothing to a reader.
func (w *World) fence(f store.Fence) fmt.Stringer { return shortFence{w, f} }

type shortFence struct {
	w *World
	f store.Fence
}

func (s shortFence) String() string {
	if s.w.fences[s.f] == 0 {
		s.w.fences[s.f] = len(s.w.fences) + 1
	}
	return fmt.Sprint("#", s.w.fences[s.f])
}
