package attack_test

// What a call costs, by the clock of the thread that makes it: other work of a busy machine is not in it.

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rusageThread asks for the calling thread alone; package syscall has no name for it.
const rusageThread = 1

// processorTime is how long a processor worked at a call.
func processorTime(t *testing.T, call func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(rusageThread, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	call()
	return used() - before
}
