package cli_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// A daemon runs what a producer of MemOS writes to its streams, and the tracker of MemOS says so.
func TestTheDaemonReadsMemOSStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.redis.Client(t)
	const name = "scheduler:messages:stream:v2.0:ann:cube:note"
	require.NoError(t, c.XAdd(t.Context(), &redis.XAddArgs{Stream: name, Values: []any{
		"item_id", "i1", "user_id", "ann", "cube_id", "cube", "label", "note", "content", "hello", "info", "{}", "task_id", "",
	}}).Err())
	d := w.start(t, "daemon", "-c", file(t, handlersFile+"memos: { stream: {} }\n"))
	settled(t, w.scheduler(t), "ann", "i1", core.StatusCompleted)
	// What is taken over leaves the stream behind the task that it has become.
	require.Eventually(t, func() bool { return c.XLen(t.Context(), name).Val() == 0 }, 10*time.Second, 10*time.Millisecond)
	code, _ := d.stop(t, syscall.SIGTERM)
	assert.Zero(t, code)
	record, err := c.HGet(t.Context(), "memos:task_meta:ann", "i1").Result()
	require.NoError(t, err)
	assert.Contains(t, record, `"status":"completed"`)

	oneLine(t, noRedis().duly(t, "daemon", "-c", file(t, "memos: { stream: {} }\n")), 2, "memos.stream: needs url")
	oneLine(t, w.duly(t, "daemon", "-c", file(t, "memos: { stream: { url: 'redis+cluster://:hunter2@a' } }\n")), 2, "memos.stream: url must be that of a single server")
}
