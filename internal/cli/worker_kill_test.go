package cli_test

// Workers of other languages, and the servers that lend them runs, are killed again and again.

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// troupe are the workers: each has one of two servers, and a number that no other process has had.
type troupe struct {
	t        *testing.T
	servers  []string
	starts   string
	programs [][]string
	number   int
	killed   map[int]bool
}

// start starts a worker in the language whose turn it is.
func (w *troupe) start() *exec.Cmd {
	w.number++
	program := w.programs[w.number%len(w.programs)]
	cmd := exec.CommandContext(w.t.Context(), program[0], program[1])
	cmd.Env = append(os.Environ(), "DULY_SERVER=http://"+w.servers[w.number%2], "NUMBER="+strconv.Itoa(w.number), "STARTS="+w.starts, "PYTHONDONTWRITEBYTECODE=1")
	require.NoError(w.t, cmd.Start())
	return cmd
}

// kill kills a worker. Its number is that of its order.
func (w *troupe) kill(cmd *exec.Cmd, number int) {
	w.killed[number] = true
	require.NoError(w.t, cmd.Process.Kill())
	_ = cmd.Wait()
}

// All tasks of workers that are killed, and whose servers are, are completed. A first step is done again only where its worker was killed before it was
// saved, and no two runs have one fence.
func TestKilledWorkers(t *testing.T) {
	t.Parallel()
	kills := 12
	if n, err := strconv.Atoi(os.Getenv("DULY_WORKER_KILLS")); err == nil {
		kills = n
	}
	crew := &troupe{t: t, starts: filepath.Join(t.TempDir(), "starts"), killed: map[int]bool{}}
	for _, program := range [][]string{{"python3", "../../clients/python/kills.py"}, {"node", "../../clients/typescript/kills.js"}} {
		if _, err := exec.LookPath(program[0]); err == nil {
			crew.programs = append(crew.programs, program)
		}
	}
	if crew.programs == nil {
		t.Skip("there is neither python3 nor node here")
	}
	w := newWorld(t)
	s := w.scheduler(t)
	config := file(t, "max_crashes: 100 # so many kills in so few runs are no sign of a poisonous task\n")
	serve := func(address string) *running {
		d := w.start(t, "serve", "-c", config, "--http", address)
		d.line(t, "listening")
		return d
	}
	var servers []*running
	for range 2 {
		crew.servers = append(crew.servers, redistest.FreeAddr(t))
		servers = append(servers, serve(crew.servers[len(servers)]))
	}
	workers, numbers := make([]*exec.Cmd, 4), make([]int, 4)
	for i := range workers {
		workers[i] = crew.start()
		numbers[i] = crew.number
	}
	tasks := 0
	for kill := range kills {
		tasks = submitWork(t, s, tasks, tasks+40)
		pause(time.Duration(rand.IntN(500)) * time.Millisecond)
		if kill%6 == 5 {
			i := rand.IntN(2)
			require.NoError(t, servers[i].cmd.Process.Kill())
			<-servers[i].ended
			servers[i] = serve(crew.servers[i])
			continue
		}
		i := rand.IntN(len(workers))
		crew.kill(workers[i], numbers[i])
		workers[i] = crew.start()
		numbers[i] = crew.number
	}
	for done, grown := int64(-1), time.Now(); done < int64(tasks); pause(50 * time.Millisecond) { // a busy machine has a backlog
		stats, err := s.Stats(t.Context())
		require.NoError(t, err)
		if stats.Completed > done {
			done, grown = stats.Completed, time.Now()
		}
		require.Less(t, time.Since(grown), 90*time.Second, "%d of %d tasks are completed, and no further one", done, tasks)
	}
	for i := range workers {
		require.NoError(t, workers[i].Process.Signal(syscall.SIGTERM))
		require.NoError(t, workers[i].Wait(), "worker %d", numbers[i])
	}
	crew.account(s, tasks)
}

// account holds each start against the kills.
func (w *troupe) account(s *core.Scheduler, tasks int) {
	data, err := os.ReadFile(w.starts)
	require.NoError(w.t, err)
	again, last, fences := 0, map[string]int{}, map[string]bool{}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		require.Len(w.t, f, 3, line)
		by, err := strconv.Atoi(f[2])
		require.NoError(w.t, err)
		assert.False(w.t, fences[f[0]+" "+f[1]], "two runs of %s have the fence %s", f[0], f[1])
		fences[f[0]+" "+f[1]] = true
		if before, started := last[f[0]]; started {
			again++
			assert.True(w.t, w.killed[before], "%s began again though worker %d had not been killed", f[0], before)
		}
		last[f[0]] = by
	}
	assert.Len(w.t, last, tasks, "each task was begun")
	audit, err := s.Audit(w.t.Context(), inspect.AuditOptions{})
	require.NoError(w.t, err)
	assert.Empty(w.t, audit.Faults)
	w.t.Logf("figure: %d kills of workers, %d tasks completed, %d first steps done again, each by a killed worker", len(w.killed), tasks, again)
}
