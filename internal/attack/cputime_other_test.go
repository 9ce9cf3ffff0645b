//go:build !linux

package attack_test

// What a call takes where no system call tells what it costs.

import (
	"testing"
	"time"
)

// processorTime is how long a call takes.
func processorTime(_ *testing.T, call func()) time.Duration {
	begun := time.Now()
	call()
	return time.Since(begun)
}
