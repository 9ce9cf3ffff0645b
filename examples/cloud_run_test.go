package examples_test

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

var cloudRun = sync.OnceValues(func() (string, error) { return compile("cloud-run", "./cloud-run") })

func serveCloudRun(t *testing.T, env ...string) *service {
	t.Helper()
	program, err := cloudRun()
	require.NoError(t, err)
	return launch(t, program, append([]string{"HOST=127.0.0.1"}, env...)...)
}

// tick is a request of Cloud Scheduler that somebody waits for: its answer comes later.
func (s *service) tick() <-chan string {
	answer := make(chan string, 1)
	go func() {
		status, body, err := s.post("/", "", "X-CloudScheduler", "true")
		answer <- fmt.Sprint(status, " ", body, err)
	}()
	return answer
}

func (s *service) leased() int64 {
	s.Helper()
	stats, err := s.scheduler.Stats(s.Context())
	require.NoError(s, err)
	return stats.InProgress
}

// The service is ready while Redis answers. What is due runs once, by however many ticks at once, and no other request ticks.
func TestTheServiceRunsWhatIsDueOnce(t *testing.T) {
	t.Parallel()
	s := serveCloudRun(t)
	status, body, err := s.send("GET", "/readyz", "")
	require.NoError(t, err)
	assert.Equal(t, 200, status, body)
	s.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "hello"}, core.NewTask{Agent: "ada", ID: "later", Kind: "note", Delay: time.Hour})
	status, _, err = s.post("/", "{}", "Content-Type", "application/json")
	require.NoError(t, err)
	assert.Equal(t, 404, status, "not from Cloud Scheduler")
	assert.Equal(t, core.StatusWaiting, s.task("1").Status)
	for range 3 {
		ticks := []<-chan string{s.tick(), s.tick(), s.tick()}
		for _, answer := range ticks {
			assert.Contains(t, <-answer, "200 ")
		}
	}
	task := s.task("1")
	assert.Equal(t, core.StatusCompleted, task.Status)
	assert.Len(t, task.Runs, 1)
	assert.EqualValues(t, 1, task.RunCount)
	assert.Equal(t, core.StatusWaiting, s.task("later").Status)

	s.redis.Kill()
	status, _, err = s.send("GET", "/readyz", "")
	require.NoError(t, err)
	assert.Equal(t, 503, status)
	s.redis.Restart(t)
	require.Eventually(t, func() bool {
		status, _, err := s.send("GET", "/readyz", "")
		return err == nil && status == 200
	}, 20*time.Second, 10*time.Millisecond, "it comes back by itself")
}

// A deployment for people lets in nobody else: what Google would keep out of a private one finds no way in.
func TestThePublicServiceIsForPeople(t *testing.T) {
	t.Parallel()
	s := serveCloudRun(t, "DULY_PUBLIC=true")
	s.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "hello"})
	assert.Contains(t, <-s.tick(), "401 ")
	status, _, err := s.post("/", wrapped("m1", `{"agent_id":"ada","id":"2","kind":"hello"}`), "Content-Type", "application/json")
	require.NoError(t, err)
	assert.NotEqual(t, 200, status)
	assert.Equal(t, core.StatusWaiting, s.task("1").Status)
}

// SIGTERM lets the run under way end: its answer arrives, nothing stays under lease, and nothing has failed.
func TestTheServiceDrains(t *testing.T) {
	t.Parallel()
	s := serveCloudRun(t)
	s.submit(core.NewTask{Agent: "ada", ID: "w", Kind: "wait", Payload: "1500ms"}) // longer than the server waits by itself
	answer := s.tick()
	s.logged("waiting")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.logged("draining")
	assert.Contains(t, <-answer, `"completed":1`)
	require.NoError(t, s.end(), "exit code 0")
	task := s.task("w")
	assert.Equal(t, core.StatusCompleted, task.Status)
	assert.EqualValues(t, 1, task.RunCount)
	assert.Zero(t, task.ErrorCount)
	assert.Zero(t, s.leased())
}

// What does not end in time, or by the second SIGTERM, is given back and charged nothing.
func TestTheServiceGivesBackWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drain string
		again os.Signal
	}{
		"time is over":         {"50ms", nil},
		"another SIGTERM":      {"1h", syscall.SIGTERM},
		"SIGTERM, then CTRL+C": {"1h", os.Interrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveCloudRun(t, "DULY_DRAIN="+c.drain)
			s.submit(core.NewTask{Agent: "ada", ID: "w", Kind: "wait", Payload: "1h"})
			answer := s.tick()
			s.logged("waiting")
			assert.EqualValues(t, 1, s.leased())
			require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
			s.logged("draining")
			if c.again != nil {
				require.NoError(t, s.cmd.Process.Signal(c.again))
			}
			assert.Contains(t, <-answer, `"released":1`)
			require.NoError(t, s.end(), "exit code 0")
			task := s.task("w")
			assert.Equal(t, core.StatusWaiting, task.Status)
			assert.Equal(t, 1, task.Attempt, "no attempt was charged")
			assert.Zero(t, task.Crashes, "charged nothing")
			assert.Zero(t, s.leased())
		})
	}
}
