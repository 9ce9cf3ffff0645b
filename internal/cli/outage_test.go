package cli_test

// Deaths, outages and orderly ends beside runs that last longer than a lease, with real processes and a real Redis.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// fleet is some daemons whose runs last longer than their leases. Tasks write down when they start, those of the kind work also by which process.
type fleet struct {
	*world

	s       *core.Scheduler
	daemons []*running
	log     string
	config  string
}

const (
	fleetLease = 2 * time.Second
	fleetRun   = 5 * time.Second
)

// newFleet starts n daemons of ten slots.
func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	w := newWorld(t)
	f := &fleet{world: w, s: w.scheduler(t), log: filepath.Join(t.TempDir(), "starts")}
	f.config = file(t, fmt.Sprintf(`
lease: %s
concurrency: 10
handlers:
  work:    { exec: ["sh", "-c", 'echo "work $DULY_TASK_ID $(date +%%s%%N) $PPID" >>"$0"; exec sleep %s', %[3]s] }
  quick:   { exec: ["sh", "-c", 'echo "quick $DULY_TASK_ID $(date +%%s%%N)" >>"$0"', %[3]s] }
  endless: { exec: ["sh", "-c", 'echo "endless $DULY_TASK_ID $(date +%%s%%N)" >>"$0"; exec sleep 1000', %[3]s], timeout: 1h }
`, fleetLease, strconv.FormatFloat(fleetRun.Seconds(), 'f', -1, 64), f.log))
	for range n {
		f.join(t)
	}
	return f
}

// join starts another daemon.
func (f *fleet) join(t *testing.T) {
	t.Helper()
	d := f.start(t, "daemon", "-c", f.config, "--grace", "30s")
	d.line(t, "duly is running")
	f.daemons = append(f.daemons, d)
}

// submit submits tasks, each of an agent of its own.
func (f *fleet) submit(t *testing.T, kind string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		_, err := f.s.Submit(t.Context(), core.NewTask{Agent: fmt.Sprint(kind, i), ID: strconv.Itoa(i), Kind: kind})
		require.NoError(t, err)
	}
}

// starts are when tasks of a kind have started, by id.
func (f *fleet) starts(kind string) map[string][]time.Time {
	data, _ := os.ReadFile(f.log)
	starts := map[string][]time.Time{}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) >= 3 && fields[0] == kind {
			ns, _ := strconv.ParseInt(fields[2], 10, 64)
			starts[fields[1]] = append(starts[fields[1]], time.Unix(0, ns))
		}
	}
	return starts
}

// killAtWork kills one of the daemons that run tasks of the kind work: any of them may have taken all.
func (f *fleet) killAtWork(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(f.log)
	require.NoError(t, err)
	at := slices.IndexFunc(f.daemons, func(d *running) bool { return strings.Contains(string(data), fmt.Sprintf(" %d\n", d.cmd.Process.Pid)) })
	require.GreaterOrEqual(t, at, 0, "no daemon has started a run")
	require.NoError(t, f.daemons[at].cmd.Process.Signal(syscall.SIGKILL))
	<-f.daemons[at].ended
}

// running waits until so many tasks of a kind have started.
func (f *fleet) running(t *testing.T, kind string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(f.starts(kind)) == n }, 30*time.Second, 10*time.Millisecond)
}

// ended waits until the tasks of a kind have completed.
func (f *fleet) ended(t *testing.T, kind string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for i := range n {
			info, err := f.s.Task(t.Context(), fmt.Sprint(kind, i), strconv.Itoa(i))
			if err != nil || info.Status != core.StatusCompleted {
				return false
			}
		}
		return true
	}, 60*time.Second, 50*time.Millisecond)
}

// One process dies beside runs that last longer than a lease: others wait for nobody, and what was lost starts again at once where there
// are free slots, also beside a run that never ends.
func TestKillsStopNobody(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.submit(t, "endless", 0, 1)
	f.submit(t, "work", 0, 12)
	f.running(t, "work", 12)
	killed := time.Now()
	f.killAtWork(t)
	var submitted []time.Time
	for i := range 30 {
		submitted = append(submitted, time.Now())
		f.submit(t, "quick", i, i+1)
		pause(100 * time.Millisecond)
	}
	f.ended(t, "work", 12)
	f.ended(t, "quick", 30)
	took := time.Since(killed)
	var waits []time.Duration
	for id, at := range f.starts("quick") {
		i, _ := strconv.Atoi(id)
		waits = append(waits, at[0].Sub(submitted[i]))
	}
	slices.Sort(waits)
	var again []time.Duration
	for _, at := range f.starts("work") {
		require.LessOrEqual(t, len(at), 2)
		if len(at) == 2 {
			again = append(again, at[1].Sub(killed))
		}
	}
	slices.Sort(again)
	require.NotEmpty(t, again, "the process that was killed had runs")
	t.Logf("figure: beside the kill of a process others started within %s; its %d runs started again within %s, and were done after %s",
		waits[len(waits)-1].Round(time.Millisecond), len(again), again[len(again)-1].Round(time.Millisecond), took.Round(time.Millisecond))
	slack := lateness(t)
	assert.LessOrEqual(t, waits[len(waits)-1], time.Second+slack)
	assert.LessOrEqual(t, again[len(again)-1], fleetLease+time.Second+slack)
	assert.LessOrEqual(t, took, fleetLease+fleetRun+time.Second+slack+time.Second)
}

// lateness is how late this machine is now: the bounds of these tests are about duly.
func lateness(t *testing.T) time.Duration {
	t.Helper()
	begun := time.Now()
	for range 20 {
		pause(10 * time.Millisecond)
	}
	return 10 * (time.Since(begun) - 200*time.Millisecond)
}

// Redis answers nothing for longer than a lease, or again and again, and no run is lost, repeated or suspected.
func TestAnOutageEndsNoRun(t *testing.T) {
	t.Parallel()
	for name, away := range map[string][]time.Duration{"once": {3 * fleetLease}, "flapping": {2 * fleetLease, 2 * fleetLease}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 2)
			f.submit(t, "work", 0, 12)
			f.running(t, "work", 12)
			for _, d := range away {
				require.NoError(t, syscall.Kill(f.redis.Pid(), syscall.SIGSTOP))
				pause(d)
				require.NoError(t, syscall.Kill(f.redis.Pid(), syscall.SIGCONT))
				pause(fleetLease)
			}
			f.ended(t, "work", 12)
			for id, at := range f.starts("work") {
				assert.Len(t, at, 1, "task %s", id)
				info, err := f.s.Task(t.Context(), "work"+id, id)
				require.NoError(t, err)
				assert.Equal(t, [2]int64{1, 0}, [2]int64{info.RunCount, int64(info.Crashes)}, "task %s", id)
			}
		})
	}
}

// A process is told to end, and killed long before its grace is over, as docker stop does: nobody suspects what it leaves behind.
func TestAStopThatIsCutShortLeavesNoSuspects(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	f.submit(t, "endless", 0, 4)
	stats := func() inspect.Stats {
		s, err := f.s.Stats(t.Context())
		require.NoError(t, err)
		return s
	}
	f.running(t, "endless", 4) // what was claimed and has not begun is given back
	require.NoError(t, f.daemons[0].cmd.Process.Signal(syscall.SIGTERM))
	pause(time.Second)
	require.NoError(t, f.daemons[0].cmd.Process.Signal(syscall.SIGKILL))
	<-f.daemons[0].ended
	f.join(t)
	require.Eventually(t, func() bool { return stats().Recovered == 4 && stats().InProgress == 4 }, 20*time.Second, 20*time.Millisecond)
	for i := range 4 {
		info, err := f.s.Task(t.Context(), fmt.Sprint("endless", i), strconv.Itoa(i))
		require.NoError(t, err)
		assert.Zero(t, info.Crashes)
	}
}

// While Redis hangs a command answers within five seconds and says what is away, on the store and through a server; one that only reads does not say that
// anything may have been stored.
func TestAFrozenRedisIsNamedSoon(t *testing.T) {
	t.Parallel()
	for _, process := range []string{"serve", "daemon"} {
		t.Run(process, func(t *testing.T) {
			t.Parallel()
			local := newWorld(t)
			url := local.start(t, process, "--http", "127.0.0.1:0", "-c", file(t, handlersFile)).url(t)
			far := noRedis()
			far.env = append(far.env, "DULY_SERVER="+url)
			local.ok(t, "submit", "--agent", "a", "--id", "x", "--kind", "note", "--delay", "1h")
			far.ok(t, "status", "a", "x")
			require.NoError(t, syscall.Kill(local.redis.Pid(), syscall.SIGSTOP))
			defer func() { require.NoError(t, syscall.Kill(local.redis.Pid(), syscall.SIGCONT)) }()
			reads := [][]string{{"stats"}, {"status", "a", "x"}, {"list"}, {"agents"}, {"explain", "a", "x"}, {"limit", "list"}, {"kinds"}, {"agent", "show", "a"}}
			writes := [][]string{{"submit", "--agent", "a", "--id", "y", "--kind", "note"}, {"pause", "a", "x"}, {"limit", "set", "--kind", "note", "--concurrency", "1"}}
			var all sync.WaitGroup
			atOnce := make(chan struct{}, 8) // as each is a process that has to start
			for i, args := range slices.Concat(reads, writes) {
				for w, what := range map[*world]string{local: "cannot reach Redis at ", far: "Redis is unavailable; "} {
					all.Go(func() {
						atOnce <- struct{}{}
						defer func() { <-atOnce }()
						begun := time.Now()
						r := w.duly(t, args...)
						took := time.Since(begun)
						assert.Equal(t, 5, r.code, "%q: %s", args, r.stderr)
						assert.Contains(t, r.stderr, what, "%q", args)
						if i < len(reads) {
							assert.NotContains(t, r.stderr, "stored", "%q", args)
						} else if w == far {
							assert.Contains(t, r.stderr, "may have been stored", "%q", args)
						}
						assert.Less(t, took, 6*time.Second+2*lateness(t), "%q: five seconds, and what eight processes take to start side by side", args)
					})
				}
			}
			all.Wait()
		})
	}
}
