package torture_test

// The tests: what is done to the workers and to Redis, and what has to hold in the end.

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/proof"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

const (
	workers  = 4
	perRound = 20  // tasks that are submitted for each blow
	failOne  = 400 // calls of the store, of which one kills its worker
)

// Whatever is killed or frozen, every acknowledged task ends as it has to: none is lost, none is stuck, none that does no harm is
// dead, each second start has its reason, and what a stale run says is not taken.
func TestTorture(t *testing.T) {
	t.Parallel()
	for _, fsync := range []string{"always", "everysec"} {
		t.Run(fsync, func(t *testing.T) {
			t.Parallel()
			newRack(t, fsync).torture(proof.Size(14, 1000))
		})
	}
}

// rack is a Redis, its workers, and a client that submits.
type rack struct {
	t       *testing.T
	redis   *redistest.Server
	log     string
	workers *supervisor
	s       *core.Scheduler
	random  *rand.Rand

	tasks       map[string]string // the kinds of all acknowledged tasks, by id
	redisKills  int
	redisFrozen int
	frozen      int
}

func newRack(t *testing.T, fsync string) *rack {
	t.Helper()
	r := &rack{t: t, log: filepath.Join(t.TempDir(), "starts"), tasks: map[string]string{}}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r.random = rand.New(rand.NewPCG(seed, 0))
	require.NoError(t, os.WriteFile(r.log, nil, 0o600))
	r.redis = redistest.Start(t, "--appendonly", "yes", "--appendfsync", fsync)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: r.redis.URL})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, st.Close()) })
	r.s, err = core.New(st, core.Config{})
	require.NoError(t, err)
	r.workers = supervise(t, workers, r.redis.URL, r.log, failOne)
	return r
}

// torture deals at least so many deadly blows while work comes in, and then looks at what is left.
// Workers live for a second or two, which is as long as a run of the long kind takes: four deaths in a row would be no sign of a poisonous
// task if the last ones did not die of the poisonous ones alone.
func (r *rack) torture(kills int) {
	begun := time.Now()
	for int(r.workers.kills.Load())+r.redisKills < kills {
		r.submit(perRound, r.anyKind)
		r.blow()
		pause(time.Duration(r.random.IntN(500)) * time.Millisecond)
	}
	require.NoError(r.t, spare(r.log))
	r.submit(10, func() string { return kindLong })
	r.submit(5, func() string { return kindPoison })
	r.settled()
	lived := time.Since(begun)
	r.workers.stop()
	r.account()
	proof.Figure(r.t, "%d kills of workers, %d of Redis, %d and %d freezes, %d tasks in %s: 0 lost, 0 stuck, 0 innocent dead",
		r.workers.kills.Load(), r.redisKills, r.frozen, r.redisFrozen, len(r.tasks), lived.Round(time.Second))
}

// pause waits for a while: the moment of a blow has to be a random one.
func pause(d time.Duration) { <-time.After(d) }

func (r *rack) anyKind() string {
	return []string{kindQuick, kindQuick, kindQuick, kindFails, kindExec}[r.random.IntN(5)]
}

// submit submits tasks until they are acknowledged: an error means that the outcome is unknown, and the same submit again is safe.
func (r *rack) submit(n int, kind func() string) {
	tasks := make([]core.NewTask, n)
	for i := range tasks {
		id := strconv.Itoa(len(r.tasks))
		tasks[i] = core.NewTask{Agent: agentOf(id), ID: id, Kind: kind()}
		r.tasks[id] = tasks[i].Kind
	}
	require.Eventually(r.t, func() bool {
		_, err := r.s.Submit(r.t.Context(), tasks...)
		return err == nil
	}, 30*time.Second, 5*time.Millisecond)
}

// agentOf spreads the tasks: half of the agents have one, some have many.
func agentOf(id string) string {
	n, _ := strconv.Atoi(id)
	if n%2 == 0 {
		return "agent" + id
	}
	return "busy" + strconv.Itoa(n%30)
}

// blow kills or freezes somebody.
func (r *rack) blow() {
	at := r.random.IntN(workers)
	switch n := r.random.IntN(100); {
	case n < 80:
		r.workers.signal(at, syscall.SIGKILL)
	case n < 90:
		if r.workers.signal(at, syscall.SIGSTOP) != 0 {
			r.frozen++
		}
		thaw := time.Duration(r.random.IntN(1600)) * time.Millisecond
		time.AfterFunc(thaw, func() { r.workers.signal(at, syscall.SIGCONT) })
	case n < 95:
		r.redis.Kill()
		r.redisKills++
		pause(time.Duration(r.random.IntN(200)) * time.Millisecond)
		r.redis.Restart(r.t)
	default:
		require.NoError(r.t, syscall.Kill(r.redis.Pid(), syscall.SIGSTOP))
		pause(time.Duration(r.random.IntN(400)) * time.Millisecond)
		require.NoError(r.t, syscall.Kill(r.redis.Pid(), syscall.SIGCONT))
		r.redisFrozen++
	}
}

// settled waits until nothing waits or runs any more.
func (r *rack) settled() {
	var stats inspect.Stats
	require.Eventually(r.t, func() bool {
		for i := range workers { // whoever was frozen last
			r.workers.signal(i, syscall.SIGCONT)
		}
		var err error
		stats, err = r.s.Stats(r.t.Context())
		return err == nil && stats.Waiting+stats.InProgress == 0
	}, 2*time.Minute, 50*time.Millisecond, "something is stuck: %+v", &stats)
}

// account holds what the handlers have written down against what the tracker says.
func (r *rack) account() {
	t := r.t
	starts := r.starts()
	again := 0
	for id, kind := range r.tasks {
		task, err := r.s.Task(t.Context(), agentOf(id), id)
		require.NoError(t, err, "%s is lost", id)
		begun := starts[id]
		again += max(len(begun)-1, 0)
		if kind == kindPoison {
			require.Equal(t, core.StatusFailed, task.Status)
			require.Contains(t, task.LastError, "crashed")
			require.LessOrEqual(t, len(begun), 4, "a poisonous task is dead after four runs")
			continue
		}
		require.Equal(t, core.StatusCompleted, task.Status, "%s: %s: %+v", id, task.LastError, task.Runs)
		require.NotEmpty(t, begun, "%s is completed and has never started", id)
		require.LessOrEqual(t, len(begun), len(task.Runs), "%s has started %d times, and the tracker gives reasons for %+v", id, len(begun), task.Runs)
		if kind != kindExec {
			last := begun[len(begun)-1]
			require.Equal(t, fmt.Sprint(last.fence), string(task.Result), "%s: the result is that of the newest fence", id)
		}
	}
	report, err := r.s.Audit(t.Context(), inspect.AuditOptions{})
	require.NoError(t, err)
	assert.Empty(t, report.Faults)
	t.Logf("figure: %d second starts, each with its reason", again)
}

// started is one start that a handler has written down.
type started struct{ fence, attempt, pid int }

// starts are those of each task, in order. The fences of a task grow; only a process that was frozen between its last look at its
// lease and its handler's first line may write late.
func (r *rack) starts() map[string][]started {
	f, err := os.Open(r.log)
	require.NoError(r.t, err)
	defer f.Close()
	all := map[string][]started{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var agent, id string
		var s started
		_, err := fmt.Sscanf(lines.Text(), "start %s %s %d %d %d", &agent, &id, &s.fence, &s.attempt, &s.pid)
		require.NoError(r.t, err, lines.Text())
		before := all[id]
		if len(before) > 0 && before[len(before)-1].fence >= s.fence {
			require.True(r.t, r.workers.wasFrozen(s.pid), "%s has started under fence %d after %+v", id, s.fence, before)
			continue
		}
		all[id] = append(before, s)
	}
	return all
}
