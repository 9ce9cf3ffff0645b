package torture_test

// Stories of five steps, while the processes that tell them are killed.

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
	"github.com/seed-6f6f2c11/duly/steps"
)

// kindStory plans, has three parts written by tasks of kindPart, sleeps, waits for an approval, and sums up.
const (
	kindStory = "story"
	kindPart  = "part"
)

// storiesEnv is how many stories are told: a hundred unless it says more.
const storiesEnv = "DULY_TORTURE_STORIES"

// handleStories registers both kinds. Each step writes down that it is done before it is stored.
func handleStories(s *core.Scheduler, log *os.File) {
	done := func(t *core.RunInfo, step string) error {
		_, err := fmt.Fprintf(log, "step %s %s %s %d\n", t.Agent, t.ID, step, os.Getpid())
		time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
		return err
	}
	core.Handle(s, kindPart, func(_ context.Context, t *core.Task[int]) error {
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		return t.SetResult(t.Payload * t.Payload)
	})
	core.Handle(s, kindStory, func(ctx context.Context, t *core.Task[any]) error {
		run := steps.Begin(s, t.RunInfo)
		plan, err := steps.Do(ctx, run, "plan", func(context.Context) ([]int, error) { return []int{1, 2, 3}, done(t.RunInfo, "plan") })
		if err != nil {
			return err
		}
		parts, err := steps.Each[int](ctx, run, "parts", kindPart, 3, plan)
		if err != nil {
			return err
		}
		if err := run.Sleep("rest", 50*time.Millisecond); err != nil {
			return err
		}
		approved, err := steps.Wait[bool](run, "approval", time.Hour)
		if err != nil {
			return err
		}
		sum, err := steps.Do(ctx, run, "sum", func(context.Context) (string, error) { return fmt.Sprint(parts, approved), done(t.RunInfo, "sum") })
		if err != nil {
			return err
		}
		return t.SetResult(sum)
	})
}

// Each story is told to its end, and a step is done a second time only if the process has died between doing and storing it.
func TestStoriesSurvive(t *testing.T) {
	stories := 100
	if n, err := strconv.Atoi(os.Getenv(storiesEnv)); err == nil {
		stories = n
	}
	server := redistest.StartTCP(t)
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, nil, 0o600))
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: "redis://" + server.Addr})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	client, err := core.New(st, core.Config{})
	require.NoError(t, err)
	for i := range stories {
		agent := fmt.Sprintf("agent%d", i%20)
		id := fmt.Sprintf("story%d", i)
		_, err := client.Submit(t.Context(), core.NewTask{Agent: agent, ID: id, Kind: kindStory})
		require.NoError(t, err)
		_, err = client.Signal(t.Context(), agent, id+"/approval", []byte("true"))
		require.NoError(t, err)
	}
	t.Setenv(crashesEnv, "50") // no story is to be given up, however often the processes are killed
	workers := supervise(t, 3, "redis://"+server.Addr, log, 0)
	killed := map[int]bool{}
	kill := time.NewTicker(200 * time.Millisecond)
	defer kill.Stop()
	over := time.Now().Add(2*time.Minute + time.Duration(stories)*100*time.Millisecond)
	left := stories
	for left > 0 {
		require.True(t, time.Now().Before(over), "%d stories are not told to their end", left)
		<-kill.C
		killed[workers.signal(rand.IntN(3), syscall.SIGKILL)] = true
		n, err := client.Stats(t.Context())
		require.NoError(t, err)
		left = int(n.Waiting + n.InProgress + n.Parked)
		require.Zero(t, n.Failed)
	}
	workers.stop()
	for i := range stories {
		info, err := client.Task(t.Context(), fmt.Sprintf("agent%d", i%20), fmt.Sprintf("story%d", i))
		require.NoError(t, err)
		assert.Equal(t, core.StatusCompleted, info.Status, info.LastError)
		assert.JSONEq(t, `"[1 4 9] true"`, string(info.Result))
	}
	repeated := stepsRepeated(t, log, killed)
	t.Logf("%d stories, %d kills, %d steps done a second time", stories, len(killed)-1, repeated)
}

// stepsRepeated counts the steps that were done again, each of which must have been done by a process that was killed.
func stepsRepeated(t *testing.T, log string, killed map[int]bool) (repeated int) {
	t.Helper()
	file, err := os.Open(log)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	by := map[string]int{} // the process that did a step last
	for lines := bufio.NewScanner(file); lines.Scan(); {
		at := strings.LastIndexByte(lines.Text(), ' ')
		step := lines.Text()[:at]
		pid, err := strconv.Atoi(lines.Text()[at+1:])
		require.NoError(t, err)
		if before, again := by[step]; again {
			repeated++
			assert.True(t, killed[before], "%s was done again, though process %d lives", step, before)
		}
		by[step] = pid
	}
	return repeated
}
