package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the tables of docs/scale.md instead of comparing them")

// The document and the figures that its tables are computed from.
const (
	scaleDocument = "../docs/scale.md"
	scaleFigures  = "scale.json"
)

// docs/scale.md has what follows from bench/scale.json and the prices.
func TestTheDocumentFollowsFromTheFigures(t *testing.T) {
	t.Parallel()
	found, err := readScale(scaleFigures)
	require.NoError(t, err)
	data, err := os.ReadFile(scaleDocument)
	require.NoError(t, err)
	text := string(data)
	for name, want := range found.tables() {
		begins, ends := fmt.Sprintf("<!-- %s: written by make generate -->\n", name), fmt.Sprintf("<!-- end of %s -->\n", name)
		before, rest, ok := strings.Cut(text, begins)
		require.True(t, ok, "%s has no place for %s", scaleDocument, name)
		is, after, ok := strings.Cut(rest, ends)
		require.True(t, ok, "%s has no end of %s", scaleDocument, name)
		if *update {
			text = before + begins + want + ends + after
			continue
		}
		assert.Equal(t, want, is, "the figures or the prices have changed: run make generate")
	}
	if *update {
		require.NoError(t, os.WriteFile(scaleDocument, []byte(text), 0o600))
	}
}

// An invented fleet, whose costs can be computed by hand.
func invented() *scaleFound {
	s := &scaleFound{Agents: 1_000_000, Single: workFound{Commands: 10, RedisMS: 0.1}, Poll: workFound{RedisMS: 0.01}, Asynq: workFound{RedisMS: 0.1}}
	for _, k := range newSorts(20) {
		s.Sorts = append(s.Sorts, sortFound{Name: k.name, PerMille: k.perMille, Bytes: 500})
	}
	s.Sorts[1].Bytes = 1000
	for _, night := range []bool{false, true} {
		s.Windows = append(s.Windows, winFound{Night: night, Factor: 1, Commands: 20, Sent: 2, Bytes: 1000, RedisUS: 200})
	}
	return s
}

func TestNeedOfAFleet(t *testing.T) {
	t.Parallel()
	s := invented()
	assert.InDelta(t, 1000*0.92+500*0.08, s.steadyBytes(), 1e-9)
	n := s.need(10_000_000)
	assert.InDelta(t, 9.6e9, n.bytes, 1)
	runs := 10 * (920_000 + 60_000 + 20_000*86_400*0.00183102) // a day
	assert.InEpsilon(t, runs, n.runsDay, 1e-5)
	assert.InEpsilon(t, 20*runs+10*600_000, n.commands, 1e-5)
	assert.InEpsilon(t, 2*runs+600_000, n.sent, 1e-5)
	assert.InEpsilon(t, 1000*runs, n.traffic, 1e-5)
	assert.InEpsilon(t, n.peakRuns*200e-6+600_000./86_400*100e-6, n.cores, 1e-5)
	p := s.polled(10_000_000)
	assert.InDelta(t, 14.4e9, p.commands, 1)
	assert.InDelta(t, 10e6/60*10e-6, p.cores, 1e-9)
}

func TestThePriceOfAFleet(t *testing.T) {
	t.Parallel()
	// 12 GB have room on two nodes of 13.07 GiB, of which three quarters of three quarters are used.
	n := need{agents: 12e6, bytes: 12e9, commands: 1e9, peak: 5000, cores: 0.4}
	c := n.cheapest()
	assert.Equal(t, cluster{nodes[1], 1, 0.4}, c, "one large node costs no more than two small ones")
	assert.InDelta(t, 2*0.3496*730, c.month(), 1e-9)
	assert.Equal(t, 16, n.partitions(c))
	n.cores = 0.8
	assert.Equal(t, cluster{nodes[0], 2, 0.4}, n.cheapest(), "one core is not enough")
	assert.Equal(t, 8, need{agents: 1e6}.partitions(cluster{masters: 2}))
	assert.Equal(t, 1, need{agents: 1e6}.partitions(cluster{masters: 1}))
	assert.Equal(t, 32, need{agents: 1e6}.partitions(cluster{masters: 32}))

	assert.InDelta(t, 12*0.084*730+30416.67*0.0023, n.serverless(), 0.1)
	dollars, ok := n.payAsYouGo()
	assert.True(t, ok)
	assert.InDelta(t, 304_166.67*0.2+11*0.25, dollars, 0.1)
	p, ok := n.fixed()
	assert.True(t, ok)
	assert.Equal(t, plan{50, 400}, p)
	n.peak = 10_001
	_, ok = n.payAsYouGo()
	assert.False(t, ok, "so many commands a second are not allowed")
	_, ok = n.fixed()
	assert.False(t, ok)
	n.bytes = 1e12
	p, _ = n.fixed()
	assert.Equal(t, "no plan", priced(p.dollars, false))
}

func TestNumbersInWords(t *testing.T) {
	t.Parallel()
	for n, want := range map[float64]string{12: "12", 1234.4: "1,234", 4.14e6: "4.14 million", 1.44e9: "1.44 billion"} {
		assert.Equal(t, want, short(n))
	}
	for n, want := range map[float64]string{0.25: "$0.25", 6.4: "$6", 255.8: "$260", 87_654: "$88,000"} {
		assert.Equal(t, want, money(n))
	}
	assert.Equal(t, "1.5 %", percent(0.0151))
}
