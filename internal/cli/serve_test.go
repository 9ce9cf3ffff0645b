package cli_test

import (
	"bufio"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// duly serve runs nothing by itself: a request does, and so does a cron service that has the secret.
func TestServeRunsOnRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "DULY_TOKEN=root", "CRON_SECRET= tick\n") // as a file has it
	d := w.start(t, "serve", "-c", file(t, handlersFile), "--http", "127.0.0.1:0")
	url := d.url(t)
	post := func(path, body string) (int, string) { return call(t, http.MethodPost, url+path, "root", body) }

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/events?kind=note", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer root")
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)

	status, _ := post("/v1/tasks", `{"tasks":[{"agent_id":"a","id":"1","kind":"note"},{"agent_id":"b","id":"1","kind":"note"}]}`)
	assert.Equal(t, http.StatusCreated, status)
	_, body := post("/v1/run-due", `{"agent_ids":["a"]}`)
	assert.Contains(t, body, `"completed":1`)
	_, body = call(t, http.MethodGet, url+"/v1/agents/b/tasks/1", "root", "")
	assert.Contains(t, body, `"status":"waiting"`, "nothing ticks")
	status, _ = call(t, http.MethodGet, url+"/v1/cron", "root", "")
	assert.Equal(t, http.StatusUnauthorized, status)
	_, body = call(t, http.MethodGet, url+"/v1/cron", "tick", "")
	assert.Contains(t, body, `"completed":1`)

	finished := 0
	for lines := bufio.NewScanner(res.Body); finished < 2 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "event: finish") {
			finished++
		}
	}
	assert.Equal(t, 2, finished, "those who listen are told")
	status, _ = call(t, http.MethodGet, url+"/readyz", "", "")
	assert.Equal(t, http.StatusOK, status)
	stopped := time.Now()
	code, _ := d.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code)
	assert.Less(t, time.Since(stopped), 10*time.Second, "whoever listens does not hold it up for the whole grace")
}

// After SIGTERM duly serve begins no task any more, and what runs ends in its grace.
func TestServeBeginsNothingOnceItIsToStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.start(t, "serve", "-c", exec1(t, "sleep 1", ""), "--http", "127.0.0.1:0", "--concurrency", "1")
	url := d.url(t)
	_, body := call(t, http.MethodPost, url+"/v1/tasks", "", `{"tasks":[`+strings.Repeat(`{"agent_id":"a","kind":"x"},`, 19)+`{"agent_id":"a","kind":"x"}]}`)
	require.Contains(t, body, `"created":true`)
	report := make(chan string, 1)
	go func() {
		_, body := call(t, http.MethodPost, url+"/v1/run-due", "", `{"all":true}`)
		report <- body
	}()
	d.line(t, "done", "kind=x") // the next one has begun, or is about to
	code, took := d.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code)
	assert.Less(t, took, 8*time.Second, "twenty take twenty seconds")
	got := parse[map[string]any](t, <-report)
	assert.Equal(t, true, got["more"])
	assert.LessOrEqual(t, got["completed"], 3.0)
	assert.EqualValues(t, 0, got["failed"])
	stats, err := w.scheduler(t).Stats(t.Context())
	require.NoError(t, err)
	assert.Zero(t, stats.InProgress, "nothing is left under lease")
	assert.EqualValues(t, got["completed"], stats.Completed)
}
