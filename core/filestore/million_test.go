package filestore_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/filestore"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// How long a start with a million waiting tasks takes; DULY_FILE_MILLION has it measured.
func TestStartWithAMillion(t *testing.T) { //nolint:paralleltest // it measures
	if os.Getenv("DULY_FILE_MILLION") == "" {
		t.Skip("DULY_FILE_MILLION is not set")
	}
	c := config(t.TempDir())
	c.SyncEvery, c.SnapshotAfter = time.Second, 1<<40
	s, err := filestore.Open(c)
	require.NoError(t, err)
	const n, batch = 1_000_000, 1000
	from := time.Now()
	for i := 0; i < n; i += batch {
		tasks := make([]store.Submission, batch)
		for k := range tasks {
			tasks[k] = named(fmt.Sprint("agent-", (i+k)%10_000), fmt.Sprint("task-", i+k))
			tasks[k].Due.After = time.Hour
		}
		_, err := s.Submit(t.Context(), tasks)
		require.NoError(t, err)
	}
	t.Logf("submitted in %v", time.Since(from))
	from = time.Now()
	require.NoError(t, s.Close())
	t.Logf("closed in %v", time.Since(from))
	var before, after runtime.MemStats
	s = nil
	runtime.GC()
	runtime.ReadMemStats(&before)
	from = time.Now()
	s, err = filestore.Open(c)
	require.NoError(t, err)
	took := time.Since(from)
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("figure: started in %v, %d bytes of memory a task", took, (after.HeapAlloc-before.HeapAlloc)/n)
	all, _ := os.ReadDir(c.Dir)
	for _, e := range all {
		info, _ := e.Info()
		t.Logf("%s %d", e.Name(), info.Size())
	}
	filestore.Abandon(s)
}
