package filestore_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/filestore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

var golden = flag.Bool("golden", false, "write testdata/first, the folder of the first version: never again, once a version is out")

// The folder that the first version has left is read by this one. A field that is renamed or gone makes this fail: users' folders would not open.
func TestTheFolderOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	const kept = "testdata/first"
	if *golden {
		require.NoError(t, os.RemoveAll(kept))
		c := configOf(t.TempDir(), storetest.NewClock(), storetest.Options{Partitions: 2})
		s, err := filestore.Open(c)
		require.NoError(t, err)
		fill(t, s)
		require.NoError(t, s.Close())
		require.NoError(t, os.MkdirAll(kept, 0o750))
		b, err := os.ReadFile(only(t, c.Dir, "snapshot-"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(kept, "snapshot-000002"), b, 0o600))
	}
	s := open(t, configOf(copied(t, kept), storetest.NewClock(), storetest.Options{}))
	assert.Equal(t, 2, s.Partitions())
	audited(t, s)
	assert.Equal(t, map[string]store.Status{"waits": store.StatusWaiting, "ended": store.StatusCompleted, "runs": store.StatusInProgress, "later": store.StatusWaiting}, ids(t, s, "ada"))
	found, err := s.Get(t.Context(), store.Get{Agent: "ada", IDs: []string{"later"}})
	require.NoError(t, err)
	assert.JSONEq(t, `"body of later"`, string(found.Tasks[0].Body))
	limits, err := s.Limits(t.Context())
	require.NoError(t, err)
	assert.Len(t, limits, 1)
	profile, err := s.ProfileOf(t.Context(), "ada")
	require.NoError(t, err)
	assert.Equal(t, "profile", string(profile))
	holds, err := s.Holds(t.Context(), store.PageOf{Limit: 10})
	require.NoError(t, err)
	assert.Len(t, holds.Holds, 1)
	told, err := s.Signal(t.Context(), []store.Signal{{Agent: "ada", Key: "go", Keep: time.Hour}})
	require.NoError(t, err)
	assert.Equal(t, 1, told[0].Resumed)
}

// A struct is written by the name that it had first, wherever it moves to: neither would an older folder open otherwise, nor would an older version
// read what this one writes.
func TestStructsKeepTheirNames(t *testing.T) {
	t.Parallel()
	for _, schema := range filestore.Schemas() {
		_, structs, _ := strings.Cut(schema, "\n")
		for line := range strings.Lines(structs) {
			of, _, _ := strings.Cut(line, ".")
			assert.Contains(t, []string{"store", "memstore", "filestore", "output", "struct {}\n"}, of, line)
		}
	}
}

// fill has a store know something of each sort.
func fill(t *testing.T, s *filestore.Store) {
	t.Helper()
	claim := func(nonce string) store.Claimed {
		claimed, err := s.Claim(t.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf("ada", 2), Nonce: nonce, Kinds: []string{"k"}, Limit: 1, Lease: time.Hour,
		}})
		require.NoError(t, err)
		require.Len(t, claimed[0].Tasks, 1)
		return claimed[0].Tasks[0]
	}
	submit(t, s, "ada", "waits")
	_, err := s.Settle(t.Context(), []store.Settlement{{
		Run: claim("0000000000000001").Run, Verb: store.VerbAgain, Due: moment.When{After: time.Hour}, State: []byte("state"), Kind: "k", Await: &store.Await{Key: "go"},
	}})
	require.NoError(t, err)
	submit(t, s, "ada", "ended")
	_, err = s.Settle(t.Context(), []store.Settlement{{Run: claim("0000000000000002").Run, Verb: store.VerbComplete, Record: []byte("record"), Kind: "k"}})
	require.NoError(t, err)
	submit(t, s, "ada", "runs")
	claim("0000000000000003")
	later := named("ada", "later")
	later.Due.After, later.Group = time.Hour, "group"
	_, err = s.Submit(t.Context(), []store.Submission{later})
	require.NoError(t, err)
	_, err = s.Limit(t.Context(), []bound.LimitChange{{Limit: bound.Limit{About: bound.LimitTarget{Kind: "k", Each: bound.EachAgent}, Concurrency: 9}}})
	require.NoError(t, err)
	_, err = s.Profile(t.Context(), []store.ProfileChange{{Agent: "ada", Now: []byte("profile")}})
	require.NoError(t, err)
	_, err = s.Hold(t.Context(), []store.Hold{{Target: store.Target{Kind: "other"}, Note: []byte("note")}})
	require.NoError(t, err)
}
