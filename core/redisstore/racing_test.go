package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// Eight schedulers, each with a connection of its own, race for 10,000 occurrences of cron tasks: each runs once.
func TestRacingSchedulersRunEachOccurrenceOnce(t *testing.T) {
	t.Parallel()
	const schedulers, tasks, seconds = 8, 100, 100
	srv := redistest.Start(t)
	clock := storetest.NewClock()
	first := still(t, redisstore.Config{URL: srv.URL}, clock, false, storetest.Options{})
	var mu sync.Mutex
	ran := map[string]int{}
	var racers []*core.Scheduler
	for range schedulers {
		st, _, err := redisstore.OpenAt(t.Context(), redisstore.Config{URL: srv.URL, Prefix: first.Prefix()}, false, true)
		require.NoError(t, err)
		t.Cleanup(func() { _ = st.Close() })
		s, err := core.New(st, core.Config{Concurrency: 30, Clock: clock})
		require.NoError(t, err)
		core.Handle(s, "tick", func(_ context.Context, t *core.Task[struct{}]) error {
			mu.Lock()
			defer mu.Unlock()
			ran[fmt.Sprintf("%s %d", t.Agent, t.Occurrence.UnixMilli())]++
			return nil
		})
		racers = append(racers, s)
	}
	agents := make([]string, tasks)
	for i := range tasks {
		agents[i] = fmt.Sprint(i)
	}
	for _, s := range racers { // a claim tells each the time that is held still
		_, err := s.RunDueTasks(t.Context(), agents)
		require.NoError(t, err)
	}
	for i, agent := range agents {
		_, err := racers[i%schedulers].Submit(t.Context(), core.NewTask{Agent: agent, ID: "every second", Kind: "tick", Cron: "* * * * * *"})
		require.NoError(t, err)
	}
	begun := clock.Now()
	for range seconds {
		clock.Advance(time.Second)
		var pulls sync.WaitGroup
		for _, s := range racers {
			pulls.Go(func() {
				_, err := s.RunDueTasks(t.Context(), agents)
				assert.NoError(t, err)
			})
		}
		pulls.Wait()
	}
	require.Len(t, ran, tasks*seconds)
	for i := range tasks {
		for s := 1; s <= seconds; s++ {
			name := fmt.Sprintf("%d %d", i, begun.Add(time.Duration(s)*time.Second).UnixMilli())
			require.Equal(t, 1, ran[name], name)
		}
	}
	t.Logf("figure: %d occurrences, each run once by one of %d schedulers", len(ran), schedulers)
}
