package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// These tests are inside the package: what is stored is nobody else's business.

func TestStoredFormsRoundTrip(t *testing.T) {
	t.Parallel()
	b := body{
		Payload: []byte(`{"a":1}`), Every: time.Minute, From: FromStart, MaxAttempts: 3, Backoff: time.Second,
		Timeout: time.Hour, Lease: time.Minute, Group: "g", TraceID: "t", Traceparent: "p", SessionID: "s", UserID: "u",
		MemCubeID: "m", UserName: "n", Info: []byte("{}"), Tags: []string{"x", "y"},
		Cron: "@daily", Zone: "Europe/Berlin", DayMatch: schedule.DayMatchAll, Gap: schedule.GapSkip,
	}
	got, err := decodeBody(b.encode())
	require.NoError(t, err)
	assert.Equal(t, b, got)

	s := state{
		Attempt: 2, Nominal: 1772366400000, Interval: time.Hour, Failures: 3, RunCount: 4, SkipCount: 5, ErrorCount: 6,
		Checkpoint: []byte("1"), Progress: []byte("2"), Result: []byte("3"), RetryAfters: 7,
	}
	for i, o := range outcomes {
		s.Runs = append(s.Runs, TaskRun{Started: store.Millis(1772366400000 + i), Duration: time.Duration(i) * time.Second, Attempt: i, Outcome: o, Error: "e"})
	}
	gotState, err := decodeState(s.encode())
	require.NoError(t, err)
	assert.Equal(t, s, gotState)

	r := record{Kind: "k", Level: LevelHigh, Submitted: 1772366400000, Due: 1772366405000, Reason: "r", Group: "g", Body: []byte("b"), State: []byte("s")}
	gotRecord, err := decodeRecord(r.encode())
	require.NoError(t, err)
	assert.Equal(t, r, gotRecord)
}

// A binary of the next version may store fields that this one does not know.
func TestUnknownFieldsArePassedOver(t *testing.T) {
	t.Parallel()
	w := wire((&body{Group: "g"}).encode())
	w.int(200, 7)
	w.str(201, "later")
	got, err := decodeBody(w)
	require.NoError(t, err)
	assert.Equal(t, body{Group: "g"}, got)
	run := wire(nil)
	run.int(runOutcome, 99)
	r, err := decodeRun(run, "")
	require.NoError(t, err)
	assert.Equal(t, OutcomeSuccess, r.Outcome)
}

func TestMalformedFieldsAreErrors(t *testing.T) {
	t.Parallel()
	for _, data := range [][]byte{{0x80}, {0x02}, {0x03}, {0x03, 0x80}, {0x03, 5, 'a'}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		_, err := decodeBody(data)
		require.ErrorIs(t, err, errWire, "%x", data)
	}
	w := wire(nil)
	w.bytes(stateRun, []byte{0x80})
	_, err := decodeState(w)
	require.ErrorIs(t, err, errWire)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{bodyPayload<<1 | 1, 0}) // written by nobody of ours: the field, and nothing in it
	f.Add((&body{Payload: []byte("{}"), Every: time.Minute, Tags: []string{"a"}}).encode())
	f.Add((&state{Attempt: 1, Runs: []TaskRun{{Started: 1, Outcome: OutcomeFailed, Error: "x"}}}).encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if b, err := decodeBody(data); err == nil {
			again, err := decodeBody(b.encode())
			require.NoError(t, err)
			require.Equal(t, string(b.Payload), string(again.Payload)) // an empty field is none
		}
		_, _ = decodeState(data)
		_, _ = decodeRecord(data)
		info := inform(&store.Stored{Agent: "a", ID: "1", Status: StatusFailed, Record: data})
		require.Equal(t, "a", info.Agent)
	})
}

func FuzzIDs(f *testing.F) {
	for _, s := range []string{"a", "", "a:b", "\x00", "\xff", "\u202e", "日本"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if err := validID("id", id); err == nil {
			require.NotEmpty(t, id)
			require.LessOrEqual(t, len(id), MaxIDLen)
			require.NotContains(t, id, "\n")
		}
		if validKind("kind", id) == nil {
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
			got := k.backoff(attempt)
			require.Positive(t, got)
			require.LessOrEqual(t, got, most+time.Millisecond)
		}
	}
	assert.Zero(t, KindConfig{}.backoff(3), "no pause, if that is what was asked for")
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
	var c crons
	spec := cronSpec{expr: "0 * * * *"}
	hour := store.MillisOf(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC))
	first, err := c.next(spec, hour)
	require.NoError(t, err)
	kept := *c.kept[spec]
	for ms := range store.Millis(3600) {
		next, err := c.next(spec, hour+ms*1000)
		require.NoError(t, err)
		require.Equal(t, first, next)
	}
	assert.Equal(t, kept, *c.kept[spec], "none of these was computed anew")
	next, err := c.next(spec, first)
	require.NoError(t, err)
	assert.Equal(t, first.Add(time.Hour), next)
	earlier, err := c.next(spec, hour-1)
	require.NoError(t, err)
	assert.Equal(t, hour, earlier)
	for i := range 2 * mostCrons {
		_, err := c.next(cronSpec{expr: fmt.Sprintf("%d %d %d * *", i%60, i/60%24, 1+i/1440)}, hour)
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, len(c.kept), mostCrons)
}
