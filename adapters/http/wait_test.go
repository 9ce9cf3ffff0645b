package http_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
)

// A request waits for the end of a task, for the next run of one that recurs, or for as long as it says.
func TestWaitForATask(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	f := setup(t, httpadapter.Config{MaxWaits: 1, Stopping: stopping})
	begun := make(chan struct{}, 1)
	core.Handle(f.scheduler, "slow", func(ctx context.Context, _ *core.Task[json.RawMessage]) error {
		begun <- struct{}{}
		select {
		case <-time.After(150 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil
	})
	for id, schedule := range map[string]string{"once": `"delay":"0s"`, "again": `"every":"1h"`} {
		f.call(t, "POST", "/v1/tasks", `{"agent_id":"`+id+`","id":"`+id+`","kind":"slow",`+schedule+`}`)
		go f.call(t, "POST", "/v1/run-due", `{"agent_ids":["`+id+`"]}`)
		<-begun
		res, body := f.call(t, "GET", "/v1/agents/"+id+"/tasks/"+id+"?wait=10s", "")
		require.Equal(t, http.StatusOK, res.StatusCode, body)
		got := get[map[string]any](t, body)
		assert.EqualValues(t, 1, got["run_count"], id)
		assert.Equal(t, map[string]string{"once": "completed", "again": "waiting"}[id], got["status"])
	}
	for _, bad := range []string{"soon", "-1s", "99h", ""} {
		res, body := f.call(t, "GET", "/v1/agents/once/tasks/once?wait="+bad, "")
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, body)
	}
	res, _ := f.call(t, "GET", "/v1/agents/once/tasks/once?wait=10s", "")
	assert.Equal(t, http.StatusOK, res.StatusCode, "it has ended")
	res, body := f.call(t, "GET", "/v1/agents/again/tasks/again?wait=10ms", "")
	assert.Equal(t, "waiting", get[map[string]any](t, body)["status"], "it is answered as it is when the time is over")
	assert.Equal(t, http.StatusOK, res.StatusCode)
	res, _ = f.call(t, "GET", "/v1/agents/again/tasks/no?wait=10s", "")
	assert.Equal(t, http.StatusNotFound, res.StatusCode)

	// One credential has so many waits, and those of a server that shuts down are answered.
	answered := make(chan int)
	go func() {
		status := http.StatusTooManyRequests // while the others ask
		for status == http.StatusTooManyRequests {
			res, _ := f.call(t, "GET", "/v1/agents/again/tasks/again?wait=1m", "")
			status = res.StatusCode
		}
		answered <- status
	}()
	require.Eventually(t, func() bool {
		res, _ := f.call(t, "GET", "/v1/agents/again/tasks/again?wait=1ms", "")
		return res.StatusCode == http.StatusTooManyRequests
	}, 10*time.Second, time.Millisecond)
	close(stopping)
	assert.Equal(t, http.StatusOK, <-answered)
}
