package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// A record that is not what was written is shown as far as it can be: it must not hide others.
func FuzzInform(f *testing.F) {
	f.Add([]byte{0x80})
	f.Fuzz(func(t *testing.T, data []byte) {
		info := codec.Inform(&store.Stored{Agent: "a", ID: "1", Status: StatusFailed, Record: data})
		require.Equal(t, "a", info.Agent)
	})
}

func FuzzIDs(f *testing.F) {
	for _, s := range []string{"a", "", "a:b", "\x00", "\xff", "\u202e", "日本"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if err := check.ValidID("id", id); err == nil {
			require.NotEmpty(t, id)
			require.LessOrEqual(t, len(id), MaxIDLen)
			require.NotContains(t, id, "\n")
		}
		if check.ValidKind("kind", id) == nil {
			require.NotContains(t, id, "|")
		}
	})
}

func TestBackoffIsBounded(t *testing.T) {
	t.Parallel()
	k := KindConfig{Backoff: time.Second, MaxBackoff: time.Minute}
	for attempt := 1; attempt < 100; attempt++ {
		most := time.Minute
		if attempt < 7 {
			most = time.Second << (attempt - 1)
		}
		for range 20 {
			got := randomPause(k.LongestPause(attempt))
			require.Positive(t, got)
			require.LessOrEqual(t, got, most+time.Millisecond)
		}
	}
	assert.Zero(t, KindConfig{}.LongestPause(3), "no pause, if that is what was asked for")
}

func TestPartitionOfIsStable(t *testing.T) {
	t.Parallel()
	counts := make([]int, 8)
	for i := range 10_000 {
		counts[store.PartitionOf(time.Duration(i).String(), 8)]++
	}
	for _, n := range counts {
		assert.InDelta(t, 1250, n, 150, "agents spread evenly")
	}
	assert.Equal(t, []int{1, 0, 2, 4}, []int{store.PartitionOf("", 8), store.PartitionOf("a", 8), store.PartitionOf("agent-1", 8), store.PartitionOf("日本", 8)},
		"a change would lose all tasks")
}

func TestCronsAreComputedOnceForEachTimeTheyFire(t *testing.T) {
	t.Parallel()
	var c plan.Crons
	spec := codec.CronSpec{Expr: "0 * * * *"}
	hour := moment.Of(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC))
	first, err := c.Next(spec, hour)
	require.NoError(t, err)
	kept := *c.Kept[spec]
	for ms := range moment.Millis(3600) {
		next, err := c.Next(spec, hour+ms*1000)
		require.NoError(t, err)
		require.Equal(t, first, next)
	}
	assert.Equal(t, kept, *c.Kept[spec], "none of these was computed anew")
	next, err := c.Next(spec, first)
	require.NoError(t, err)
	assert.Equal(t, first.Add(time.Hour), next)
	earlier, err := c.Next(spec, hour-1)
	require.NoError(t, err)
	assert.Equal(t, hour, earlier)
	for i := range 2 * plan.MostCrons {
		_, err := c.Next(codec.CronSpec{Expr: fmt.Sprintf("%d %d %d * *", i%60, i/60%24, 1+i/1440)}, hour)
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, len(c.Kept), plan.MostCrons)
}

func TestMadeUpIDsAreUUIDsInOrder(t *testing.T) {
	t.Parallel()
	before := ""
	for range 10_000 {
		id := check.NewID()
		require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
		require.Greater(t, id, before)
		before = id
	}
}
