package store

// What processes report about themselves.

import (
	"context"
	"time"
)

// Presence is implemented by stores that remember for a while what processes report about themselves. Displays depend on it, and who comes first where
// several processes wait for the same tasks.
type Presence interface {
	// Announce keeps the report of a process, under a tag of its own, until ttl has passed or it reports again. A report whose tag begins with
	// a dash is of one that need not live any more. It returns how many others have reports that have not passed, without those.
	Announce(ctx context.Context, tag string, info []byte, ttl time.Duration) (others int, err error)
	// Processes returns the reports that have not passed, by tag: of at most MaxProcesses.
	Processes(ctx context.Context) (map[string][]byte, error)
}

// MaxProcesses is the most processes that a store remembers.
const MaxProcesses = 1000
