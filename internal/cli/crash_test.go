package cli_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// The crash test: two daemons on one Redis, of which one after the other is killed at a random moment.
const (
	crashTasks  = 2000
	crashKills  = 24
	crashLease  = 2 * time.Second
	crashMargin = 2 * time.Second // on top of the lease and of what a daemon takes to begin, until lost work has to have started again
)

// Every task of killed daemons starts again within the lease and is completed; no start goes unexplained.
func TestCrashes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.scheduler(t)
	log := filepath.Join(t.TempDir(), "starts")
	config := file(t, fmt.Sprintf(`
lease: %s
concurrency: 5  # so few that the machine keeps up: what is measured is how soon lost work starts, not how long it queues
max_crashes: 20  # one kill in so few runs is no sign of a poisonous task
handlers:
  work: { exec: ["sh", "-c", 'echo "$DULY_TASK_ID $DULY_FENCE $DULY_ATTEMPT $DAEMON $(date +%%s%%N)" >>"$0"; sleep 0.02', %s] }
`, crashLease, log))
	tasks := submitWork(t, s, 0, crashTasks)

	started := 0
	begun := map[*running]time.Time{}
	start := func() *running { // each daemon has a number, which its handlers find in their environment
		started++
		numbered := world{redis: w.redis, env: append(slices.Clone(w.env), "DAEMON="+strconv.Itoa(started))}
		at := time.Now()
		d := numbered.start(t, "daemon", "-c", config)
		begun[d] = at
		return d
	}
	daemons, numbers := []*running{start(), start()}, []int{1, 2}
	killed := map[int]time.Time{} // by number
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	slack := lateness(t)
	for range crashKills {
		i := random.IntN(len(daemons))
		daemons[i].line(t, "duly is running")
		pause(time.Duration(random.IntN(400)) * time.Millisecond)
		stats, err := s.Stats(t.Context())
		require.NoError(t, err)
		if stats.Waiting < crashTasks/10 { // a fast machine: there has to be something to lose until the last kill
			tasks = submitWork(t, s, tasks, tasks+crashTasks/4)
		}
		killed[numbers[i]] = time.Now()
		require.NoError(t, daemons[i].cmd.Process.Signal(syscall.SIGKILL))
		<-daemons[i].ended
		daemons[i], numbers[i] = start(), started
	}
	var stats inspect.Stats
	require.Eventually(t, func() bool {
		var err error
		stats, err = s.Stats(t.Context())
		return err == nil && stats.Completed+stats.Failed+stats.Cancelled == int64(tasks)
	}, 60*time.Second, 20*time.Millisecond)
	assert.EqualValues(t, tasks, stats.Completed)
	assert.Zero(t, stats.Waiting+stats.InProgress)
	for _, d := range daemons {
		code, _ := d.stop(t, syscall.SIGTERM)
		assert.Equal(t, 0, code)
	}
	account(t, s, tasks, starts(t, log), killed, longestStart(t, begun), max(slack, lateness(t)))
}

// longestStart is the longest that a daemon took from its start until it claimed, by the time of its line in the log.
func longestStart(t *testing.T, begun map[*running]time.Time) time.Duration {
	t.Helper()
	var longest time.Duration
	for d, at := range begun {
		clock, _, _ := strings.Cut(d.line(t, "duly is running"), " ")
		runs, err := time.Parse("15:04:05.000", clock)
		require.NoError(t, err)
		const quarter = 15 * time.Minute // whatever the zone of the log, and whatever the day
		longest = max(longest, (runs.Sub(runs.Truncate(quarter))-at.Sub(at.Truncate(quarter))+quarter)%quarter)
	}
	return longest
}

// submitWork submits the tasks from one number up to another, which it returns.
func submitWork(t *testing.T, s *core.Scheduler, from, to int) int {
	t.Helper()
	for first := from; first < to; first += core.MaxSubmit {
		var tasks []core.NewTask
		for i := first; i < min(first+core.MaxSubmit, to); i++ {
			tasks = append(tasks, core.NewTask{Agent: agentOf(i), ID: strconv.Itoa(i), Kind: "work"})
		}
		_, err := s.Submit(t.Context(), tasks...)
		require.NoError(t, err)
	}
	return to
}

// agentOf spreads the tasks over agents: some have one, some many.
func agentOf(i int) string {
	if i%2 == 0 {
		return "agent" + strconv.Itoa(i)
	}
	return "busy" + strconv.Itoa(i%50)
}

// pause waits for a while: the moment of a kill has to be a random one.
func pause(d time.Duration) { <-time.After(d) }

// begun is one start of a task, as its handler wrote it down.
type begun struct {
	fence  string
	daemon int
	at     time.Time
}

func starts(t *testing.T, log string) map[string][]begun {
	t.Helper()
	data, err := os.ReadFile(log)
	require.NoError(t, err)
	all := map[string][]begun{}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		require.Len(t, f, 5, line)
		daemon, err := strconv.Atoi(f[3])
		require.NoError(t, err)
		ns, err := strconv.ParseInt(f[4], 10, 64)
		require.NoError(t, err)
		assert.Equal(t, "1", f[2], "a crash is not charged as an attempt")
		all[f[0]] = append(all[f[0]], begun{fence: f[1], daemon: daemon, at: time.Unix(0, ns)})
	}
	for id := range all {
		slices.SortFunc(all[id], func(a, b begun) int { return a.at.Compare(b.at) })
	}
	return all
}

// account explains every start: the first, and one for each lease that ran out. It measures how long lost work waited
// from the kill of its daemon to its next start.
func account(t *testing.T, s *core.Scheduler, tasks int, all map[string][]begun, killed map[int]time.Time, start, slack time.Duration) {
	t.Helper()
	again, crashes, unstarted, alive := 0, 0, 0, 0
	var waits, sinceLast []time.Duration
	kills := slices.SortedFunc(maps.Values(killed), time.Time.Compare)
	for i := range tasks {
		id := strconv.Itoa(i)
		task, err := s.Task(t.Context(), agentOf(i), id)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, task.Status, id)
		lost := 0
		for _, r := range task.Runs {
			if r.Outcome == model.OutcomeCrashed {
				lost++
			}
		}
		runs := all[id]
		crashes += lost
		require.NotEmpty(t, runs, "task %s is completed and has never started", id)
		require.LessOrEqual(t, len(runs), 1+lost, "task %s has started %d times, and lost %d leases", id, len(runs), lost)
		silent := 1 + lost - len(runs) // claims of daemons that were killed before the handler had written its line
		unstarted += silent
		for k := 1; k < len(runs); k++ {
			again++
			require.Greater(t, runs[k].fence, runs[k-1].fence, "fences grow")
			death, dead := killed[runs[k-1].daemon]
			if !dead || runs[k].at.Before(death) {
				alive++
				continue
			}
			// Each silent claim, whose kill is not known to be this task's, may have cost a lease more.
			waits = append(waits, runs[k].at.Sub(death)-time.Duration(silent)*crashLease)
			// What waited for other suspects may have lost its lease again to each further kill, which nothing tells.
			last, _ := slices.BinarySearchFunc(kills, runs[k].at, time.Time.Compare)
			sinceLast = append(sinceLast, runs[k].at.Sub(kills[last-1]))
		}
	}
	slices.Sort(waits)
	require.NotEmpty(t, waits, "no kill has hit a running task")
	t.Logf("%d tasks, %d kills: %d leases ran out, %d second starts (%d of daemons that lived), %d claimed and never started",
		tasks, len(killed), crashes, again, alive, unstarted)
	t.Logf("figure: %d kills; from a kill to the next start: p50 %s, max %s (lease %s, a daemon begins within %s)",
		len(killed), waits[len(waits)/2].Round(time.Millisecond), waits[len(waits)-1].Round(time.Millisecond), crashLease, start.Round(time.Millisecond))
	assert.LessOrEqual(t, waits[len(waits)/2], crashLease+crashMargin/2+slack)
	// The last kill may have hit the only daemon that had begun, so that the next to begin takes the work over.
	assert.LessOrEqual(t, slices.Max(sinceLast), crashLease+crashMargin+start+slack)
	assert.LessOrEqual(t, alive, tasks/100, "a daemon that lives keeps its leases")
}
