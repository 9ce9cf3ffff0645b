package cli_test

// The alarm of the file, by the real binary: nobody ticks, and a server is asked to call back.

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Clock is a server that is asked to call back: it posts to the URL of duly, if there is one, at each time.
type Clock struct {
	*httptest.Server

	url    atomic.Pointer[string]
	mu     sync.Mutex
	asked  []time.Time
	calls  int // back
	timers []*time.Timer
}

func newClock(t *testing.T) *Clock {
	t.Helper()
	c := &Clock{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(func() {
		c.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, timer := range c.timers {
			timer.Stop()
		}
	})
	return c
}

func (c *Clock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var at struct{ At time.Time }
	if json.NewDecoder(r.Body).Decode(&at) != nil || at.At.IsZero() {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, at.At)
	c.timers = append(c.timers, time.AfterFunc(time.Until(at.At), c.ring))
}

// ring is POST /v1/run-due.
func (c *Clock) ring() {
	url := c.url.Load()
	if url == nil {
		return
	}
	c.mu.Lock()
	c.calls++
	c.mu.Unlock()
	if res, err := http.Post(*url+"/v1/run-due", "application/json", strings.NewReader(`{"all":true}`)); err == nil {
		_ = res.Body.Close()
	}
}

// counts are how often it was asked, and has called back.
func (c *Clock) counts() (asked, calls int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked), c.calls
}

// rung waits until all that it was asked for so far has rung.
func (c *Clock) rung(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	last := slices.MaxFunc(c.asked, time.Time.Compare)
	c.mu.Unlock()
	require.Eventually(t, func() bool { return time.Now().After(last) }, 10*time.Second, 10*time.Millisecond)
}

// A server that nobody ticks runs what a command has submitted, at its second, and is left alone after that.
func TestServeIsCalledWhenSomethingIsDue(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t), newClock(t)
	config := file(t, handlersFile+"alarm: { webhook: { url: "+c.URL+" } }\n")
	d := w.start(t, "serve", "-c", config, "--http", "127.0.0.1:0")
	url := d.url(t)
	c.url.Store(&url)
	// Both in one second, and so far ahead that the alarm of the first is a sure one when the second is submitted.
	at := time.Now().Add(5 * time.Second).Truncate(time.Second).Format(time.RFC3339)
	w.ok(t, "submit", "-c", config, "--agent", "ada", "--id", "1", "--kind", "note", "--at", at)
	w.ok(t, "submit", "-c", config, "--agent", "ada", "--id", "2", "--kind", "note", "--at", at, "--json")
	s := w.scheduler(t)
	info, err := s.Task(t.Context(), "ada", "2")
	require.NoError(t, err)
	d.line(t, "run kind=note agent=ada task=1")
	d.line(t, "run kind=note agent=ada task=2")
	late := time.Since(info.Due)
	assert.GreaterOrEqual(t, late, time.Duration(0))
	assert.Less(t, late, 6*time.Second, "two at rest: the rest is for a machine that is busy")
	t.Logf("ran %s after it was due", late)
	asked, calls := c.counts()
	assert.LessOrEqual(t, asked, 3, "one for both, the guard of their runs, and one where a busy machine was late to submit the second")
	assert.LessOrEqual(t, calls, 2)
	c.rung(t) // what is booked for a moment ahead would do for what is submitted below
	asked, _ = c.counts()

	// It books for what the API makes due, and doctor knows.
	_, body := call(t, http.MethodPost, url+"/v1/tasks", "", `{"agent_id":"ada","kind":"note","delay":"1h"}`)
	assert.Contains(t, body, `"created":true`)
	require.Eventually(t, func() bool { now, _ := c.counts(); return now == asked+1 }, 10*time.Second, 10*time.Millisecond)
	r := w.duly(t, "doctor", "-c", config)
	assert.Regexp(t, `ok +alarm +the next is booked for 20`, r.stdout)
	_, _ = d.stop(t, syscall.SIGTERM)
	_, calls = c.counts()
	r = w.duly(t, "submit", "--agent", "ada", "--kind", "note", "--delay", "30m") // by somebody without an alarm
	assert.Contains(t, r.stderr, "warning: ")
	r = w.duly(t, "doctor", "-c", config)
	assert.Regexp(t, `warning +alarm +the next is booked for .*, and one for .* is owed, .*, and something is due at`, r.stdout)
	_, after := c.counts()
	assert.Equal(t, calls, after, "nothing is due, and nobody calls")
}

// A submit whose alarm cannot be set is carried out, and says that nobody is going to come. A daemon does not book.
func TestAlarmsThatAreNotSet(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t), newClock(t)
	config := file(t, handlersFile+"alarm: { webhook: { url: "+c.URL+", secret_env: ALARM_SECRET } }\n")
	assert.Equal(t, 0, w.duly(t, "stats", "-c", config).code, "what books nothing needs no secret")
	r := w.duly(t, "submit", "-c", config, "--agent", "ada", "--kind", "note", "--delay", "1h")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stderr, "warning: hosts are called by alarms here, and none could be booked")
	assert.Contains(t, r.stderr, "the environment variable ALARM_SECRET, named by secret_env, is not set or empty")
	oneLine(t, w.duly(t, "run-due", "--all", "-c", config), 2, "ALARM_SECRET")
	d := w.start(t, "daemon", "-c", config)
	d.line(t, "alarm is not used: a daemon is there when something falls due")
	asked, _ := c.counts()
	assert.Zero(t, asked)
}
