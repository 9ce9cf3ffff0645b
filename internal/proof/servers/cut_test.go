package servers_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/proof"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// acked is a task that was acknowledged when the log had some size.
type acked struct {
	agent, id string
	size      int64
}

// Wherever a power failure cuts off the log of Redis, duly opens what is left, finds nothing that it cannot repair, runs it to its
// end, and has lost nothing that was acknowledged before the cut.
func TestTheLogIsCutOff(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", "no", "--auto-aof-rewrite-percentage", "0")
	folder := filepath.Join(filepath.Dir(srv.Addr), "appendonlydir")
	logs, err := filepath.Glob(filepath.Join(folder, "*.incr.aof"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	tasks := fill(t, srv.URL, logs[0])
	srv.Kill()
	whole, err := os.Stat(logs[0])
	require.NoError(t, err)

	cuts := proof.Size(15, 1000)
	var mu sync.Mutex
	repaired, kept := 0, 0
	var workers sync.WaitGroup
	next := make(chan int64)
	for range 2 {
		workers.Go(func() {
			for at := range next {
				if t.Failed() {
					continue
				}
				r, k := cut(t, folder, at, tasks)
				mu.Lock()
				repaired, kept = repaired+r, kept+k
				mu.Unlock()
			}
		})
	}
	for range cuts {
		next <- rand.Int64N(whole.Size()) + 1
	}
	close(next)
	workers.Wait()
	proof.Figure(t, "a log of %d bytes cut off at %d places: each opens, %d acknowledged tasks were looked for and found, %d faults were repaired", whole.Size(), cuts, kept, repaired)
}

// fill makes work of every sort and returns the tasks that were acknowledged, with the size of the log then.
func fill(t *testing.T, url, log string) []acked {
	t.Helper()
	s, done := open(t, url)
	defer done()
	var tasks []acked
	for i := range 150 {
		agent := fmt.Sprint("a", i%20)
		id := fmt.Sprint(i)
		_, err := s.Submit(t.Context(), core.NewTask{Agent: agent, ID: id, Kind: "ok", Group: "g" + id[:1], Level: core.Level(i%3 + 1)})
		require.NoError(t, err)
		info, err := os.Stat(log)
		require.NoError(t, err)
		tasks = append(tasks, acked{agent, id, info.Size()})
		switch i % 10 {
		case 3:
			require.NoError(t, s.Pause(t.Context(), core.Target{Agent: agent}, core.Pause{}))
			require.NoError(t, s.Resume(t.Context(), core.Target{Agent: agent}))
		case 5, 8:
			_, err := s.RunDue(t.Context(), core.Scope{MaxTasks: 7})
			require.NoError(t, err)
		case 7:
			_, err := s.Submit(t.Context(), core.NewTask{Agent: agent, ID: id, Kind: "ok", Payload: "new", OnConflict: core.OnConflictReplace})
			require.NoError(t, err)
		case 9:
			_, err := s.Cancel(t.Context(), agent, id, core.Order{})
			if core.CodeOf(err) != core.CodeConflict {
				require.NoError(t, err)
			}
		}
	}
	return tasks
}

// cut starts a Redis on the first bytes of a log. It returns how many faults were repaired, and how many tasks looked for.
func cut(t *testing.T, folder string, at int64, tasks []acked) (repaired, kept int) {
	t.Helper()
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	srv := redistest.Prepare(t, "--appendonly", "yes", "--aof-load-truncated", "yes", "--aof-use-rdb-preamble", "no")
	defer srv.Kill()
	to := filepath.Join(filepath.Dir(srv.Addr), "appendonlydir")
	require.NoError(t, os.Mkdir(to, 0o700))
	for _, f := range files {
		limit := int64(1 << 62)
		if filepath.Ext(f.Name()) == ".aof" && filepath.Ext(f.Name()[:len(f.Name())-4]) == ".incr" {
			limit = at
		}
		copyFile(t, filepath.Join(folder, f.Name()), filepath.Join(to, f.Name()), limit)
	}
	srv.Restart(t)
	s, done := open(t, srv.URL)
	defer done()
	repaired = settle(t, s)
	for _, task := range tasks {
		if task.size > at {
			break
		}
		_, err := s.Task(t.Context(), task.agent, task.id)
		if !assert.NoError(t, err, "cut at %d: %s of %s was acknowledged at %d", at, task.id, task.agent, task.size) {
			break
		}
		kept++
	}
	return repaired, kept
}

func copyFile(t *testing.T, from, to string, limit int64) {
	t.Helper()
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.Create(to)
	require.NoError(t, err)
	_, err = io.Copy(out, io.LimitReader(in, limit))
	require.NoError(t, err)
	require.NoError(t, out.Close())
}
