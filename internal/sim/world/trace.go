package world

// The story of a history, in lines that a person reads.

import (
	"fmt"

	"github.com/seed-6f6f2c11/duly/core"
)

// trace adds a line to the story, if somebody wants it.
func (w *World) trace(format string, args ...any) {
	if w.story == nil {
		return
	}
	at := w.elapsed()
	_, _ = fmt.Fprintf(w.story, "%9.3fs  %s\n", at.Seconds(), fmt.Sprintf(format, args...)) // to memory
}

// fence numbers fences in the order in which they are seen: their own numbers say nothing to a reader.
func (w *World) fence(f core.Fence) fmt.Stringer { return shortFence{w, f} }

type shortFence struct {
	w *World
	f core.Fence
}

func (s shortFence) String() string {
	if s.w.fences[s.f] == 0 {
		s.w.fences[s.f] = len(s.w.fences) + 1
	}
	return fmt.Sprint("#", s.w.fences[s.f])
}
