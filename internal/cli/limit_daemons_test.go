package cli_test

// A limit over several daemons, one of which is killed.

import (
	"fmt"
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
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// The test of limits: daemons on one Redis that may run so many tasks of a kind together.
const (
	limitDaemons = 4
	limitRuns    = 3
	limitTasks   = 100
	limitLease   = 2 * time.Second
	limitMargin  = 2 * time.Second // on top of the lease
)

// However many daemons there are, no more runs than the limit allows are under way at any moment, and all tasks run. What a killed
// daemon had in use is the others' after its lease.
func TestALimitHoldsOverDaemons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.scheduler(t)
	log := filepath.Join(t.TempDir(), "runs")
	config := file(t, fmt.Sprintf(`
lease: %s
concurrency: 10  # of each: more than the limit allows
max_crashes: 20
limits: [{ kind: work, concurrency: %d }]
handlers:
  work: { exec: ["sh", "-c", 'echo "begin $DULY_TASK_ID $DAEMON $(date +%%s%%N)" >>"$0"; sleep 0.25; echo "end $DULY_TASK_ID $DAEMON $(date +%%s%%N)" >>"$0"', %s] }
`, limitLease, limitRuns, log))
	submitWork(t, s, 0, limitTasks)
	daemons := make([]*running, limitDaemons)
	for i := range daemons { // each has a number, which its handlers find in their environment
		numbered := world{redis: w.redis, env: append(slices.Clone(w.env), "DAEMON="+strconv.Itoa(i))}
		daemons[i] = numbered.start(t, "daemon", "-c", config)
	}
	for _, d := range daemons {
		d.line(t, "duly is running")
	}
	victim := -1
	require.Eventually(t, func() bool { // one with a run that has just begun
		if all := noted(t, log); len(all) > 4*limitRuns && all[len(all)-1].begin {
			victim = all[len(all)-1].daemon
		}
		return victim >= 0
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, daemons[victim].cmd.Process.Signal(syscall.SIGKILL))
	<-daemons[victim].ended
	killed := time.Now()
	require.Eventually(t, func() bool {
		stats, err := s.Stats(t.Context())
		return err == nil && stats.Completed == limitTasks
	}, 60*time.Second, 20*time.Millisecond)
	for i, d := range daemons {
		if i != victim {
			code, _ := d.stop(t, syscall.SIGTERM)
			assert.Equal(t, 0, code)
		}
	}
	limits, err := s.Limits(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []bound.LimitUse{{Limit: core.Limit{About: core.LimitTarget{Kind: "work"}, Concurrency: limitRuns}}}, limits, "all is given back")
	atOnce(t, noted(t, log), victim, killed)
}

// atOnce checks how many runs were under way at each moment, also after a kill: the programs of a daemon die with it.
func atOnce(t *testing.T, all []note, victim int, killed time.Time) {
	t.Helper()
	open, most, mostAfter := map[string]note{}, 0, 0
	lost := 0
	for _, n := range all {
		if n.at.After(killed) {
			for id, other := range open {
				if other.daemon == victim {
					delete(open, id)
					lost++
				}
			}
		}
		if n.begin {
			assert.NotContains(t, open, n.id, "one run of a task at a time")
			open[n.id] = n
		} else {
			delete(open, n.id)
		}
		most = max(most, len(open))
		if n.at.After(killed.Add(limitLease + limitMargin)) {
			mostAfter = max(mostAfter, len(open))
		}
	}
	assert.Empty(t, open, "what began has ended")
	assert.Equal(t, limitRuns, most, "as many at once as the limit allows, and never more")
	assert.Positive(t, lost, "the kill hit a run")
	assert.Equal(t, limitRuns, mostAfter, "the room of the dead daemon is used again after its lease")
}

// note is the begin or the end of a run, as its handler wrote it down.
type note struct {
	begin  bool
	id     string
	daemon int
	at     time.Time
}

// noted are the notes of all runs, in order of time.
func noted(t *testing.T, log string) []note {
	t.Helper()
	data, err := os.ReadFile(log)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	var all []note
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		require.Len(t, f, 4, line)
		daemon, err := strconv.Atoi(f[2])
		require.NoError(t, err)
		ns, err := strconv.ParseInt(f[3], 10, 64)
		require.NoError(t, err)
		all = append(all, note{begin: f[0] == "begin", id: f[1], daemon: daemon, at: time.Unix(0, ns)})
	}
	slices.SortStableFunc(all, func(a, b note) int { return a.at.Compare(b.at) })
	return all
}
