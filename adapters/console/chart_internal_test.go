package console

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What is drawn follows from the series alone: the axis ends at a round value, a part of a bar begins at its foot, what is more than nothing shows, and
// what was not measured is neither a bar nor a zero.
func TestDraw(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := draw(&series{
		title: "Runs", summary: "some", begin: begin, step: time.Hour, ticks: 2, text: whole, tops: []float64{4},
		rows: []curve{{"ended", []float64{0, 40, 1000, notMeasured}}, {"failed", []float64{0, 10, 1, notMeasured}}},
	})
	assert.Equal(t, []string{"1,000", "500"}, []string{c.Top, c.Middle})
	assert.Equal(t, []string{"−4 h", "−2 h", "now"}, c.Ticks)
	assert.Equal(t, []float64{240}, c.Grid)
	assert.Equal(t, []bar{
		{X: "0", Width: "120", Thin: "118", Title: "Sun 1 Mar 12:00 to 13:00 UTC: ended 0, failed 0"},
		{X: "120", Width: "120", Thin: "118", Y: "92.2", Height: "3.8", FootY: "94", FootHigh: "2", Title: "Sun 1 Mar 13:00 to 14:00 UTC: ended 40, failed 10"},
		{X: "240", Width: "120", Thin: "118", Y: "0", Height: "96", FootY: "94", FootHigh: "2", Title: "Sun 1 Mar 14:00 to 15:00 UTC: ended 1,000, failed 1"},
		{X: "360", Width: "120", Thin: "118", Title: "Sun 1 Mar 15:00 to 16:00 UTC: ended –, failed –"},
	}, c.Bars)
	assert.Equal(t, []string{"Since", "ended", "failed"}, c.Heads)
	assert.Equal(t, []string{"1 Mar 13:00 UTC", "40", "10"}, c.Table[1])
	assert.Equal(t, []legend{{"ok", "ended"}, {"failed", "failed"}}, c.Legend)
	assert.False(t, c.None)

	c = draw(&series{text: sharePercent, step: time.Minute, ticks: 1, lines: true, rows: []curve{
		{"a", []float64{0.5, notMeasured, 2}}, {"b", []float64{notMeasured, 1, notMeasured}},
	}})
	assert.Equal(t, []string{"200 %", "100 %"}, []string{c.Top, c.Middle})
	assert.Equal(t, []chartLine{{"80,71.5 400,1", "l0", "a"}, {"216,48 240,48", "l1", "b"}}, c.Lines)
	for _, b := range c.Bars {
		assert.Empty(t, b.Height)
	}
	c = draw(&series{text: whole, step: time.Minute, ticks: 1, rows: []curve{{"a", []float64{notMeasured}}}})
	assert.True(t, c.None)
}

// An axis ends at a round value that is not below any other.
func TestRoundUp(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64]float64{0: 1, 0.3: 0.4, 1: 1, 3: 4, 10: 10, 11: 20, 2001: 4000, 5200: 6000, 99_999: 100_000} {
		assert.InDelta(t, want, roundUp(most, nil), 1e-9, most)
	}
	assert.InDelta(t, 30_000, roundUp(10_001, lagTops), 0)
	for most := 0.001; most < 1e9; most *= 1.7 {
		assert.GreaterOrEqual(t, roundUp(most, nil), most)
		assert.False(t, math.IsInf(roundUp(most, nil), 0))
	}
}
