package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAMonthAtOnce(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	var out bytes.Buffer
	for range 2 { // again changes nothing
		out.Reset()
		require.NoError(t, run(t.Context(), srv.URL, false, &out))
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.GreaterOrEqual(t, len(lines), 5, out.String())
	assert.Regexp(t, `^segment +(29|30|31)$`, lines[0], "what is older than 30 days is compacted")
	assert.Regexp(t, `^day +(39|40)$`, lines[1])
	assert.Regexp(t, `^week +[56]$`, lines[2])
	assert.Regexp(t, `^month +[12]$`, lines[3])
	assert.Contains(t, lines[4], "Bob likes tea")
}

func TestRollUpTakesWholePeriodsOnce(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	options, err := redis.ParseURL(srv.URL)
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer client.Close()
	now := time.Date(2026, 3, 4, 0, 30, 0, 0, time.UTC)
	m := &Memory{Redis: client, Sum: Extractive{}, Now: func() time.Time { return now }}
	for _, at := range []time.Duration{-30 * time.Hour, -29 * time.Hour, -time.Hour} {
		require.NoError(t, m.Add(t.Context(), "a", Entry{At: now.Add(at), Text: "Something happened at " + at.String() + "."}))
	}
	n, err := m.RollUp(t.Context(), "a", segments, days, time.Hour)
	require.NoError(t, err)
	assert.Equal(t, 1, n, "yesterday is not an hour old yet")
	now = now.Add(time.Hour)
	for range 2 {
		n, err = m.RollUp(t.Context(), "a", segments, days, time.Hour)
		require.NoError(t, err)
		assert.Equal(t, 2, n)
	}
	got, err := m.Level(t.Context(), "a", days)
	require.NoError(t, err)
	require.Len(t, got, 2, "a day has one place")
	assert.Contains(t, got[0].Text, "-30h")
}

func TestExtractive(t *testing.T) {
	t.Parallel()
	got := Extractive{}.Summarise([]string{"Engines need oil. The weather is fine.", "Engines need petrol! Engines are loud."}, 2)
	assert.Equal(t, "Engines need oil. Engines need petrol.", got)
	assert.Empty(t, Extractive{}.Summarise(nil, 3))
}
