package torture

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is a worker in the processes that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		os.Exit(work())
	}
	goleak.VerifyTestMain(m)
}
