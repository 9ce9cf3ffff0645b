package store

// What processes say of themselves.

import (
	"context"
	"time"
)

// Presence is implemented by stores that remember for a while what processes say of themselves. Nothing depends on it but
// what people are told.
type Presence interface {
	// Announce keeps what a process says of itself, under a tag of its own, until ttl has passed or it says more.
	Announce(ctx context.Context, tag string, info []byte, ttl time.Duration) error
	// Processes returns what was said and has not passed, by tag: of at most MaxProcesses.
	Processes(ctx context.Context) (map[string][]byte, error)
}

// MaxProcesses is the most processes that a store remembers.
const MaxProcesses = 1000
