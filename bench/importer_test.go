package main

// duly import, tried on what a peer itself has written.

import (
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/cli/importer"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// What a scheduler of asynq registers is read from its Redis while it runs.
func TestTheEntriesOfAsynqAreImported(t *testing.T) {
	t.Parallel()
	s := redistest.StartTCP(t)
	scheduler := asynq.NewScheduler(asynq.RedisClientOpt{Addr: s.Addr}, &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel})
	_, err := scheduler.Register("0 7 * * 1-5", asynq.NewTask("email:digest", []byte(`{"topic":"engines"}`)), asynq.MaxRetry(4), asynq.Timeout(30*time.Second), asynq.Queue("low"))
	require.NoError(t, err)
	_, err = scheduler.Register("@every 30s", asynq.NewTask("poll", nil))
	require.NoError(t, err)
	require.NoError(t, scheduler.Start())
	t.Cleanup(scheduler.Shutdown)
	var found *importer.Found
	require.Eventually(t, func() bool { // it writes them every five seconds
		found, err = importer.ReadRedis(t.Context(), "asynq", s.URL, "ops")
		return err == nil
	}, 30*time.Second, 100*time.Millisecond)
	assert.ElementsMatch(t, []importer.Task{
		{Agent: "ops", ID: "email:digest", Kind: "email:digest", Cron: "0 7 * * 1-5", Payload: map[string]any{"topic": "engines"}},
		{Agent: "ops", ID: "poll", Kind: "poll", Every: "30s", From: "start"},
	}, found.Tasks)
	assert.Equal(t, importer.Handler{Worker: &struct{}{}, Attempts: 5, Timeout: "30s"}, found.Kinds["email:digest"])
}
