package torture_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

// TestMain is a worker in the processes that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		os.Exit(work())
	}
	logging.Disable()
	goleak.VerifyTestMain(m)
}
