package filestore_test

// Processes that are killed at each step of writing: all that was answered is there.

import (
	"bufio"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/filestore"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// points are where a process is killed.
var points = []string{
	"segment written", "segment synced", "reserve", "write", "written", "synced", "snapshot written", "snapshot synced", "snapshot renamed", "old removed",
}

// Environment of a child.
const (
	envDir   = "DULY_FILE_CHILD"
	envPoint = "DULY_FILE_POINT"
	envAfter = "DULY_FILE_AFTER"
	envSeed  = "DULY_FILE_SEED"
)

// child submits and ends tasks with several goroutines until it is killed. It says on its output what it is about to do and what was answered.
func child(dir string) {
	point, seed := os.Getenv(envPoint), os.Getenv(envSeed)
	after, _ := strconv.ParseInt(os.Getenv(envAfter), 10, 64)
	var hits atomic.Int64
	die := func() {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			_ = self.Kill()
		}
		select {}
	}
	c := filestore.Config{Dir: dir, Reserve: 4096, SnapshotAfter: 8 << 10, Logger: slog.New(slog.DiscardHandler)}
	s, err := filestore.Open(filestore.WithPoint(c, func(name string) error {
		if name == point && hits.Add(1) == after {
			die()
		}
		return nil
	}))
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	var mu sync.Mutex
	say := func(what, id string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(what, id)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 60 {
				id := fmt.Sprintf("%s-%d-%d", seed, w, i)
				agent := fmt.Sprint("w", w)
				say("try", id)
				// An error is a store that was closed by a kill that is under way.
				if _, err := s.Submit(ctx, []store.Submission{named(agent, id)}); err != nil {
					return
				}
				say("submitted", id)
				claimed, err := s.Claim(ctx, []store.ClaimRequest{{
					Nonce: fmt.Sprintf("%016s", id)[:16], Kinds: []string{"k"}, Agents: []string{agent}, Limit: 50, Lease: 10 * time.Minute,
				}})
				if err != nil {
					return
				}
				for _, t := range claimed[0].Tasks {
					if out, err := s.Settle(ctx, []store.Settlement{{Run: t.Run, Verb: store.VerbComplete, Kind: "k"}}); err == nil && out[0].Err == nil {
						say("ended", t.ID)
					}
				}
			}
		})
	}
	wg.Wait()
	if point == "close" {
		die()
	}
	_ = s.Close()
	die() // it was not killed before: that is fine too
}

// A process that is killed at any step leaves what it has answered, and nothing that it has not tried.
func TestKillsLoseNothing(t *testing.T) {
	t.Parallel()
	kills := faults(t, 60)
	var dir string
	tried, submitted, ended := map[string]bool{}, map[string]bool{}, map[string]bool{}
	r := rand.New(rand.NewPCG(3, 3))
	at := map[string]int{}
	total := 0
	for k := range kills {
		if k%200 == 0 { // an agent keeps 10,000 finished tasks
			total += len(submitted)
			dir = t.TempDir()
			clear(tried)
			clear(submitted)
			clear(ended)
		}
		point := points[k%len(points)]
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		after := 1
		if point == "write" || point == "written" || point == "synced" {
			after += r.IntN(150)
		}
		cmd.Env = append(os.Environ(), envDir+"="+dir, envPoint+"="+point, fmt.Sprint(envAfter, "=", after), fmt.Sprint(envSeed, "=", k))
		if point == "reserve" {
			_ = os.Remove(dir + "/reserve")
		}
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		for in := bufio.NewScanner(out); in.Scan(); {
			what, id, _ := strings.Cut(in.Text(), " ")
			switch what {
			case "try":
				tried[id] = true
			case "submitted":
				submitted[id] = true
			case "ended":
				ended[id] = true
			default:
				t.Fatal(in.Text())
			}
		}
		require.Error(t, cmd.Wait(), "it was killed")
		at[point]++
		if k%5 != 4 && k < kills-1 && k%200 != 199 {
			continue // several kills in a row, with no start that leaves a snapshot
		}
		s, err := filestore.Open(config(dir))
		require.NoError(t, err, "after a kill at %s", point)
		found := map[string]store.Status{}
		for w := range 4 {
			maps.Copy(found, ids(t, s, fmt.Sprint("w", w)))
		}
		audited(t, s)
		filestore.Abandon(s)
		var wrong []string
		for id := range submitted {
			if found[id] == "" {
				wrong = append(wrong, id+" was submitted and is missing")
			}
		}
		for id := range ended {
			if found[id] != store.StatusCompleted {
				wrong = append(wrong, id+" had ended")
			}
		}
		for id := range found {
			if !tried[id] {
				wrong = append(wrong, id+" was never submitted")
			}
		}
		require.Empty(t, wrong, "after a kill at %s", point)
	}
	assert.Len(t, at, min(len(points), kills))
	t.Logf("figure: %d kills at %v: %d tasks submitted, none missing", kills, slices.Sorted(maps.Keys(at)), total+len(submitted))
}
