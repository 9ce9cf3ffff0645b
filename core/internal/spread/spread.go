// Package spread puts off the occurrences of tasks by times that are the same in every process, so that not all of them start at once.
package spread

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Jitter is by how much an occurrence of a task is put off: below most, and the same in every process.
func Jitter(most time.Duration, agent, id string, occurrence moment.Millis) time.Duration {
	return time.Duration(Among(most.Milliseconds(), agent, id, occurrence)) * time.Millisecond
}

// Among spreads the occurrences of tasks evenly over 0 to below n.
func Among(n int64, agent, id string, occurrence moment.Millis) int64 {
	if n <= 0 {
		return 0
	}
	h := fnv.New64a()
	for _, s := range []string{agent, id, strconv.FormatInt(int64(occurrence), 10)} {
		_, _ = h.Write([]byte(s)) // a hash never fails
		_, _ = h.Write([]byte{0})
	}
	x := h.Sum64()
	x ^= x >> 32                // the low bits of FNV alone are not even
	return int64(x % uint64(n)) //nolint:gosec // below n
}
