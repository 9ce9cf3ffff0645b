package cli_test

// Alarms with real processes: each call of the clock is one, which may be killed at any step, and the clock may hang, refuse or be wrong.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// lateAtMost is how late a task may start, with what a busy machine takes to start a few processes.
const lateAtMost = 3*time.Second + 2*time.Second

// outside is a clock outside whose calls are processes. It calls again, a second later, where one has died.
type outside struct {
	*httptest.Server

	w      *world
	config string

	mu     sync.Mutex
	fails  string // "" to work, "hang", "refuse" and "lie"
	skew   time.Duration
	back   chan struct{} // closed when it works again
	calls  []*exec.Cmd   // under way
	begun  int           // calls
	sets   int           // by them
	killAt int           // the set at which the one that asks is killed; after it is set if it is negative
	over   bool
	timers []*time.Timer
	all    sync.WaitGroup
}

func newOutside(t *testing.T, w *world) *outside {
	t.Helper()
	c := &outside{w: w, back: make(chan struct{})}
	c.Server = httptest.NewServer(c)
	c.config = file(t, handlersFile+"alarm: { webhook: { url: "+c.URL+" } }\n")
	t.Cleanup(func() {
		c.mu.Lock()
		c.over = true
		for _, timer := range c.timers {
			timer.Stop()
		}
		c.mu.Unlock()
		c.all.Wait()
		c.is("")
		c.Close()
	})
	return c
}

// is makes it work, hang, refuse or lie.
func (c *outside) is(fails string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.back)
	c.fails, c.back = fails, make(chan struct{})
}

func (c *outside) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var at struct{ At time.Time }
	if json.NewDecoder(r.Body).Decode(&at) != nil || at.At.IsZero() {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	switch back := c.back; c.fails {
	case "hang":
		c.mu.Unlock()
		select {
		case <-back:
			w.WriteHeader(http.StatusServiceUnavailable) // one that said yes now would have lied, which another test is about
		case <-r.Context().Done():
		}
		return
	case "refuse":
		c.mu.Unlock()
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer c.mu.Unlock()
	if len(c.calls) > 0 {
		c.sets++
		if c.sets == c.killAt || c.sets == -c.killAt {
			_ = c.calls[0].Process.Kill()
			if c.killAt > 0 {
				return
			}
		}
	}
	if c.fails != "lie" {
		c.in(time.Until(at.At) + c.skew)
	}
}

// in calls after a while. The mutex is held.
func (c *outside) in(d time.Duration) {
	c.timers = append(c.timers, time.AfterFunc(d, c.call))
}

// call is a process that runs what is due.
func (c *outside) call() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	cmd := exec.Command(binary, "run-due", "--all", "-c", c.config)
	cmd.Env = c.w.env
	if cmd.Start() != nil {
		return
	}
	c.begun++
	c.calls = append(c.calls, cmd)
	c.all.Go(func() {
		err := cmd.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		for i := range c.calls {
			if c.calls[i] == cmd {
				c.calls = append(c.calls[:i:i], c.calls[i+1:]...)
				break
			}
		}
		if err != nil && !c.over {
			c.in(time.Second)
		}
	})
}

// late is how late a task has started, once it has.
func late(t *testing.T, s *core.Scheduler, id string) time.Duration {
	t.Helper()
	task := settled(t, s, "ada", id, core.StatusCompleted)
	return task.Runs[len(task.Runs)-1].Started.Sub(task.Due)
}

// Whichever step of its alarms a process is killed at, what is due next starts in time.
func TestAlarmsOfProcessesThatAreKilled(t *testing.T) {
	t.Parallel()
	kills := []int{1, -1, 2, -2, 3, -3}
	if testing.Short() { // make check has all
		kills = kills[:2]
	}
	for _, at := range kills {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := newOutside(t, w)
			c.killAt = at
			for i := range 3 {
				w.ok(t, "submit", "-c", c.config, "--agent", "ada", "--id", fmt.Sprint(i), "--kind", "note", "--delay", fmt.Sprint(2+6*i, "s")) // further apart than a call waits
			}
			s, worst := w.scheduler(t), time.Duration(0)
			for i := range 3 {
				worst = max(worst, late(t, s, fmt.Sprint(i)))
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			t.Logf("figure: killed at %d of %d: late at most %s, %d calls", at, c.sets, worst, c.begun)
			assert.GreaterOrEqual(t, c.sets, max(at, -at))
			assert.Less(t, worst, lateAtMost)
		})
	}
}

// A clock that hangs or refuses keeps a submit for a second at most, which says so; what is due starts once the clock has returned, as a server that lives books it.
func TestClocksThatFail(t *testing.T) {
	t.Parallel()
	for _, fails := range []string{"hang", "refuse"} {
		t.Run(fails, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := newOutside(t, w)
			d := w.start(t, "serve", "-c", c.config, "--http", "127.0.0.1:0")
			url := d.url(t)
			c.is(fails)
			begun := time.Now()
			_, body := call(t, http.MethodPost, url+"/v1/tasks", "", `{"agent_id":"ada","id":"1","kind":"note","delay":"1s"}`)
			took := time.Since(begun)
			assert.Contains(t, body, `"alarm":"not booked"`)
			assert.Less(t, took, 1500*time.Millisecond, "a second, and what a busy machine takes")
			r := w.duly(t, "submit", "-c", c.config, "--agent", "ada", "--id", "2", "--kind", "note", "--delay", "1s")
			assert.Equal(t, 0, r.code)
			assert.Contains(t, r.stderr, "warning: ")
			s := w.scheduler(t)
			task, err := s.Task(t.Context(), "ada", "2")
			require.NoError(t, err)
			time.Sleep(time.Until(task.Due.Add(time.Second)))
			c.is("")
			back := time.Now()
			for _, id := range []string{"1", "2"} {
				task := settled(t, s, "ada", id, core.StatusCompleted)
				after := task.Runs[len(task.Runs)-1].Started.Sub(back)
				t.Logf("figure: %s: the submit took %s, task %s started %s after its return", fails, took, id, after)
				assert.Less(t, after, lateAtMost+2*lateness(t))
			}
			_, _ = d.stop(t, syscall.SIGTERM)
		})
	}
}

// A clock that takes an alarm and never rings is found out by a server that lives: it books again once what it was for has not begun.
func TestAClockThatLies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newOutside(t, w)
	d := w.start(t, "serve", "-c", c.config, "--http", "127.0.0.1:0")
	d.url(t)
	c.is("lie")
	w.ok(t, "submit", "-c", c.config, "--agent", "ada", "--id", "1", "--kind", "note", "--delay", "1s")
	s := w.scheduler(t)
	task, err := s.Task(t.Context(), "ada", "1")
	require.NoError(t, err)
	time.Sleep(time.Until(task.Due.Add(time.Second)))
	c.is("")
	back := time.Now()
	task = settled(t, s, "ada", "1", core.StatusCompleted)
	after := task.Runs[len(task.Runs)-1].Started.Sub(back)
	t.Logf("figure: lie: started %s after its return", after)
	assert.Less(t, after, lateAtMost)
	_, _ = d.stop(t, syscall.SIGTERM)
}

// What a command without the file makes due is booked by a server that lives, and said by the command.
func TestASubmitWithoutAClockIsBookedByAServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newOutside(t, w)
	w.ok(t, "submit", "-c", c.config, "--agent", "ada", "--id", "later", "--kind", "note", "--delay", "2h") // the hosts are called by alarms
	d := w.start(t, "serve", "-c", c.config, "--http", "127.0.0.1:0")
	d.url(t)
	r := w.duly(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note", "--delay", "3s")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stderr, "warning: hosts are called by alarms here")
	w.ok(t, "explain", "ada", "1")
	worst := late(t, w.scheduler(t), "1")
	t.Logf("figure: late by %s", worst)
	assert.Less(t, worst, lateAtMost)
	_, _ = d.stop(t, syscall.SIGTERM)
}

// A clock that is ahead or behind by seconds calls too early or too late: what is due starts when its time has come, and as late as the clock is.
func TestClocksThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-3 * time.Second, 2 * time.Second} {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := newOutside(t, w)
			c.mu.Lock()
			c.skew = skew
			c.mu.Unlock()
			w.ok(t, "submit", "-c", c.config, "--agent", "ada", "--id", "1", "--kind", "note", "--delay", "6s")
			worst := late(t, w.scheduler(t), "1")
			t.Logf("figure: a clock wrong by %s: late by %s", skew, worst)
			assert.Less(t, worst, lateAtMost+max(skew, 0))
		})
	}
}
