package console

// Charts: what is drawn, worked out here so that templates only draw it.

import (
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// chart is a chart of bars. Lengths are in the units of its view box.
type chart struct {
	Title, Summary string
	Width, Height  int
	Bars           []bar
	Top            string // the value of the full height
	From, To       string // the ends of its time
}

// bar is one step: a part of it, at its foot, may be of what failed.
type bar struct {
	X, Width              float64
	Y, Height             float64
	FailedY, FailedHeight float64
	Title                 string
}

// Sizes of a chart.
const (
	chartWidth  = 480
	chartHeight = 96
	barGap      = 2
)

// runsChart draws how many runs ended in each step, and how many of them failed.
func runsChart(title string, t *inspect.Trend) chart {
	c := chart{Title: title, Width: chartWidth, Height: chartHeight}
	var most, runs, failures int64
	for _, s := range t.Steps {
		most, runs, failures = max(most, s.Runs), runs+s.Runs, failures+s.Failures
	}
	c.Summary = fmt.Sprintf("%s, %s", counted(runs, "run"), counted(failures, "failure"))
	c.frame(t, counted(most, "run")+" in "+rough(t.Step))
	for i, s := range t.Steps {
		b := c.place(i, len(t.Steps))
		b.Y, b.Height = c.scale(float64(s.Runs), float64(most))
		b.FailedY, b.FailedHeight = c.scale(float64(s.Failures), float64(most))
		b.Title = fmt.Sprintf("%s: %s, %s", span(s.Since, t.Step), counted(s.Runs, "run"), counted(s.Failures, "failure"))
		c.Bars = append(c.Bars, b)
	}
	return c
}

// lagChart draws how late runs were claimed.
func lagChart(title string, t *inspect.Trend) chart {
	c := chart{Title: title, Width: chartWidth, Height: chartHeight}
	var most time.Duration
	for _, s := range t.Steps {
		most = max(most, s.LagP95)
	}
	c.Summary = "95 of 100 claimed within " + took(most)
	if most == 0 {
		c.Summary = "no runs"
	}
	c.frame(t, took(most))
	for i, s := range t.Steps {
		b := c.place(i, len(t.Steps))
		b.Y, b.Height = c.scale(float64(s.LagP95), float64(most))
		b.Title = fmt.Sprintf("%s: %s of %s", span(s.Since, t.Step), took(s.LagP95), counted(s.Runs, "run"))
		c.Bars = append(c.Bars, b)
	}
	return c
}

// frame sets the labels around the bars.
func (c *chart) frame(t *inspect.Trend, top string) {
	c.Top, c.To = top, "now"
	if len(t.Steps) > 0 {
		c.From = rough(t.Until.Sub(t.Steps[0].Since).Round(t.Step)) + " ago"
	}
}

// place is where the bar of a step is, of so many.
func (c *chart) place(i, n int) bar {
	width := float64(c.Width) / float64(n)
	return bar{X: float64(i) * width, Width: max(width-barGap, 1)}
}

// scale is where a bar begins, from the top, and how high it is. What is more than nothing can be seen.
func (c *chart) scale(value, most float64) (y, height float64) {
	if value <= 0 || most <= 0 {
		return float64(c.Height), 0
	}
	height = max(value/most*float64(c.Height), 2)
	return float64(c.Height) - height, height
}

// span is a step in words.
func span(since time.Time, step time.Duration) string {
	return since.UTC().Format("15:04") + " to " + since.Add(step).UTC().Format("15:04 MST")
}
