package main

import (
	"bytes"
	"strings"
	"testing"

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
	require.GreaterOrEqual(t, len(lines), 6, out.String())
	assert.Regexp(t, `^segment +(29|30|31)$`, lines[0], "what is older than 30 days is compacted")
	assert.Regexp(t, `^day +(39|40)$`, lines[1])
	assert.Regexp(t, `^week +[56]$`, lines[2])
	assert.Regexp(t, `^month +[12]$`, lines[3])
	assert.Contains(t, lines[4], "Bob likes tea", "the answer")
	assert.Contains(t, lines[5], "Bob likes tea", "what it was found in")
}
