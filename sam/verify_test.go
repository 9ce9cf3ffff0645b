package main_test

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/verify"
)

// tried tries the function with tasks of a kind, which are counted by marks.
func tried(t *testing.T, kind string, tasks, kills int, within time.Duration) verify.Report {
	t.Helper()
	w := newWorld(t)
	self, err := os.Executable()
	require.NoError(t, err)
	f, err := verify.NewFunction(20*time.Second, func(address string) *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env = append([]string{"AWS_LAMBDA_RUNTIME_API=" + address, "GORACE=atexit_sleep_ms=0"}, w.vars...)
		cmd.Stdout, cmd.Stderr = w.logs, w.logs
		return cmd
	})
	require.NoError(t, err)
	t.Cleanup(f.Close)
	o, err := redis.ParseURL(w.redis.URL)
	require.NoError(t, err)
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	report, err := verify.Run(ctx, verify.Config{
		Scheduler: w.scheduler, Subject: f, Agent: "verify", Kind: kind, Tasks: tasks, Kills: kills, Seed: 7,
		Marks: func(ctx context.Context) (map[string]int, error) {
			all, err := c.HGetAll(ctx, "ran").Result()
			marks := map[string]int{}
			for id, n := range all {
				marks[id], _ = strconv.Atoi(n)
			}
			return marks, err
		},
	})
	if err != nil {
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	t.Logf("%s after %d kills: %s; started again: %d; %d ms", kind, len(report.Kills), report.Last(), report.Again, report.Duration)
	return report
}

// A function whose effect happens once has it once for each of 50 tasks, though each event comes twice and it is killed up to four times: beside a busy
// neighbour a kill may find nothing left to interrupt.
func TestTheKitPassesAFunctionThatIsRight(t *testing.T) {
	t.Parallel()
	report := tried(t, "once", 50, 4, time.Minute)
	assert.True(t, report.Passed(), "%+v", report)
	assert.Equal(t, "ran once: 50 of 50", report.Last())
	assert.NotEmpty(t, report.Kills)
	assert.LessOrEqual(t, len(report.Kills), 4)
	assert.Empty(t, report.More)
	assert.Empty(t, report.Never)
	assert.Zero(t, report.Exits)
}

// One that ends its process before its task is settled never completes any, and the kit says so.
func TestTheKitFindsAFunctionThatEndsBeforeTheSettle(t *testing.T) {
	t.Parallel()
	report := tried(t, "leaves", 3, 0, 3*time.Second)
	assert.False(t, report.Passed())
	assert.Equal(t, "ran once: 0 of 3", report.Last())
	require.Len(t, report.Never, 3)
	assert.Contains(t, report.Never[0].Why, "crashes of its process")
	assert.Positive(t, report.Exits)
}
