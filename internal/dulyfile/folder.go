package dulyfile

// Where tasks are kept without a Redis.

import (
	"strings"
	"time"
)

// readFsync reads how often what is written is made to last: before each answer, or so often.
func readFsync(into *time.Duration) reader {
	return func(p place) error {
		var word string
		if err := text(&word)(p); err == nil && word == "always" {
			return nil
		}
		if err := duration(into)(p); err != nil {
			return p.fail("must be always or a duration such as 100ms")
		}
		return nil
	}
}

// checkStore refuses what names no store, and settings of two.
func (f *File) checkStore(root place) error {
	switch {
	case f.Store != "" && f.Store != "memory" && !strings.HasPrefix(f.Store, "file:"):
		return root.of("store").fail("must be memory, or file: and a folder, not %q", f.Store)
	case f.Store != "" && f.Redis.URL != "":
		return root.of("store").fail("must be left out where there is redis: tasks are kept in one of them")
	case f.Fsync != 0 && f.Redis.URL != "":
		return root.of("fsync").fail("is for a store in a folder, and not for a Redis: leave it out")
	}
	return nil
}
