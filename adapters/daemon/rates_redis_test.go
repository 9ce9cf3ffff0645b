package daemon_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// What a stream of recurring tasks costs a real Redis, and how late it is. The bounds are wide, as a test shares its machine with
// others; the figures are in the log.

// starts gathers how late tasks start by the clock of this machine, which is Redis' too.
type starts struct {
	mu   sync.Mutex
	late []time.Duration
	runs chan struct{}
}

func (l *starts) ran(due time.Time) {
	late := time.Since(due)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = append(l.late, late)
	select {
	case l.runs <- struct{}{}:
	default:
	}
}

// sorted are those since the last call.
func (l *starts) sorted() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.late
	l.late = nil
	slices.Sort(out)
	return out
}

// commandsOf is how many commands a server has carried out, those of its scripts included.
func commandsOf(t *testing.T, client *redis.Client) int {
	t.Helper()
	info, err := client.Info(t.Context(), "stats").Result()
	require.NoError(t, err)
	_, rest, _ := strings.Cut(info, "total_commands_processed:")
	digits, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.Atoi(digits)
	require.NoError(t, err)
	return n
}

// stream runs a daemon for agents each of which has a task once a second, one after the other. It returns a client of its Redis, and
// what is known of the starts.
func stream(t *testing.T, agents int) (*redis.Client, *starts) {
	t.Helper()
	srv := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL, Partitions: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	s, err := core.New(st, core.Config{Concurrency: 50})
	require.NoError(t, err)
	l := &starts{runs: make(chan struct{}, 1<<16)}
	core.Handle(s, "note", func(_ context.Context, task *core.Task[any]) error {
		l.ran(task.Due)
		return nil
	})
	var tasks []core.NewTask
	for i := range agents {
		delay := time.Second + time.Duration(i)*time.Second/time.Duration(agents)
		tasks = append(tasks, core.NewTask{Agent: fmt.Sprint("a", i), ID: "t", Kind: "note", Every: time.Second, From: core.FromStart, Delay: delay})
	}
	_, err = s.Submit(t.Context(), tasks...)
	require.NoError(t, err)
	d, err := daemon.New(s, daemon.Config{Waker: st, Patrol: -1})
	require.NoError(t, err)
	require.NoError(t, d.Start())
	t.Cleanup(func() { assert.NoError(t, d.Stop(context.Background())) })
	return srv.Client(t), l
}

func TestWhatAStreamCostsRedis(t *testing.T) { //nolint:paralleltest // it measures
	for name, c := range map[string]struct { //nolint:paralleltest // as above
		agents   int           // each of them has a task that runs once a second
		commands float64       // a run, at most
		late     time.Duration // half of them start within this
	}{
		"1,000 runs a second": {1000, 27, 100 * time.Millisecond},
		"50 runs a second":    {50, 60, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			client, l := stream(t, c.agents)
			wait := func(n int) {
				for range n {
					<-l.runs
				}
			}
			wait(c.agents)
			before := commandsOf(t, client)
			l.sorted()
			wait(3 * c.agents)
			late, commands := l.sorted(), commandsOf(t, client)-before
			each := float64(commands) / float64(len(late))
			t.Logf("%.1f commands a run; late: p50 %s, p90 %s, p99 %s", each, late[len(late)/2], late[len(late)*9/10], late[len(late)*99/100])
			assert.Positive(t, late[0], "early")
			assert.LessOrEqual(t, late[len(late)/2], c.late)
			assert.LessOrEqual(t, each, c.commands)
		})
	}
}
