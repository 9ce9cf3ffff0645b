package console

// Charts: what is drawn, worked out here so that templates only draw it. A chart is bars, of which each may have a lower part, or lines.

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sizes of a chart, in units of its view box.
const (
	chartWidth  = 480
	chartHeight = 96
	barGap      = 2
	sparkWidth  = 100
	sparkHeight = 20
)

// notMeasured is a value that is not known.
var notMeasured = math.NaN()

// series is what a chart is drawn of.
type series struct {
	title, summary string
	begin          time.Time // of the first step
	step           time.Duration
	ticks          int                  // in how many parts the axis of time is divided
	text           func(float64) string // a value in words
	tops           []float64            // values that the axis may end at, beside those of roundUp
	rows           []curve              // one or two of bars, of which the second is the lower part of the first; or lines
	lines          bool
}

// curve are the values of all steps under one name.
type curve struct {
	name   string
	values []float64
}

// chart is a chart as templates draw it.
type chart struct {
	Title, Summary string
	Width, Height  int
	Bars           []bar
	Lines          []chartLine
	Top, Middle    string    // the values at the top and at half the height
	Grid           []float64 // where the axis of time is divided
	Ticks          []string  // what is written there, the ends too
	Legend         []legend
	Table          [][]string // the rows behind the chart, each with the step first
	Heads          []string
	None           bool // nothing was counted or measured at all
}

// bar is one step: a part of it, at its foot, is of another colour. X and Width are those of the step, and Thin is how wide the bar itself is.
type bar struct {
	X, Width, Thin  string
	Y, Height       string // empty for none
	FootY, FootHigh string
	Title           string
}

// chartLine is one line.
type chartLine struct{ Points, Class, Title string }

// legend says which colour is what.
type legend struct{ Class, Text string }

// draw draws a series. It depends on nothing else.
func draw(s *series) chart {
	c := chart{Title: s.title, Summary: s.summary, Width: chartWidth, Height: chartHeight, Heads: []string{"Since"}, None: true}
	most := 0.0
	for _, r := range s.rows {
		c.Heads = append(c.Heads, r.name)
		for _, v := range r.values {
			if !math.IsNaN(v) {
				most, c.None = max(most, v), false
			}
		}
	}
	top := roundUp(most, s.tops)
	c.Top, c.Middle = s.text(top), s.text(top/2)
	steps := s.steps()
	for i := range steps {
		row := []string{s.at(i).UTC().Format("2 Jan 15:04 MST")}
		for _, r := range s.rows {
			row = append(row, s.value(r.values[i]))
		}
		c.Table = append(c.Table, row)
		c.Bars = append(c.Bars, s.bar(i, steps, top))
	}
	if s.lines {
		for i, r := range s.rows {
			class := "l" + strconv.Itoa(i)
			c.Lines = append(c.Lines, chartLine{points(r.values, top, chartWidth, chartHeight), class, r.name})
			c.Legend = append(c.Legend, legend{class, r.name})
		}
	} else if len(s.rows) == 2 {
		c.Legend = []legend{{"ok", s.rows[0].name}, {s.foot(), s.rows[1].name}}
	}
	c.axis(s, steps)
	return c
}

// axis divides the axis of time. The newest step ends now.
func (c *chart) axis(s *series, steps int) {
	whole := s.step * time.Duration(steps)
	for i := range s.ticks + 1 {
		back := whole - whole*time.Duration(i)/time.Duration(s.ticks)
		text := "−" + rough(back)
		if back == 0 {
			text = "now"
		}
		c.Ticks = append(c.Ticks, text)
		if i > 0 && i < s.ticks {
			c.Grid = append(c.Grid, float64(chartWidth)*float64(i)/float64(s.ticks))
		}
	}
}

// steps is how many steps there are.
func (s *series) steps() int {
	if len(s.rows) == 0 {
		return 0
	}
	return len(s.rows[0].values)
}

// at is when a step begins.
func (s *series) at(i int) time.Time { return s.begin.Add(time.Duration(i) * s.step) }

// value is a value in words.
func (s *series) value(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return s.text(v)
}

// foot is the class of the lower parts: failures are of their own colour.
func (s *series) foot() string {
	if s.rows[1].name == "failed" {
		return "failed"
	}
	return "deep"
}

// bar is what belongs to one step: the bar, unless lines are drawn, and the text that shows over it.
func (s *series) bar(i, steps int, top float64) bar {
	width := float64(chartWidth) / float64(steps)
	b := bar{X: number(float64(i) * width), Width: number(width), Thin: number(max(width-barGap, 1)), Title: span(s.at(i), s.step) + ": "}
	for k, r := range s.rows {
		if k > 0 {
			b.Title += ", "
		}
		b.Title += r.name + " " + s.value(r.values[i])
	}
	if s.lines {
		return b
	}
	b.Y, b.Height = scale(s.rows[0].values[i], top)
	if len(s.rows) > 1 {
		b.FootY, b.FootHigh = scale(s.rows[1].values[i], top)
	}
	return b
}

// scale is where a bar begins, from the top, and how high it is. What is more than nothing can be seen.
func scale(value, top float64) (y, height string) {
	if math.IsNaN(value) || value <= 0 || top <= 0 {
		return "", ""
	}
	high := max(value/top*chartHeight, 2)
	return number(chartHeight - high), number(high)
}

// points are those of a line; steps that were not measured are passed over.
func points(values []float64, top, width, height float64) string {
	var out []string
	for i, v := range values {
		if math.IsNaN(v) {
			continue
		}
		x, y := (float64(i)+0.5)*width/float64(len(values)), height-1
		if top > 0 {
			y = height - 1 - v/top*(height-2)
		}
		out = append(out, number(x)+","+number(y))
	}
	if len(out) == 1 { // a point alone would not show
		x, y, _ := strings.Cut(out[0], ",")
		end, _ := strconv.ParseFloat(x, 64)
		out = []string{number(max(end-width/20, 0)) + "," + y, out[0]}
	}
	return strings.Join(out, " ")
}

// number is a length with one digit behind the point at most.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// roundUp is the value that an axis ends at: the next of some, or of 1, 2, 4, 6 and 8 times a power of ten, of which half is round too.
func roundUp(most float64, of []float64) float64 {
	for _, v := range of {
		if v >= most {
			return v
		}
	}
	if most <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most)))
	for _, times := range []float64{1, 2, 4, 6, 8} {
		if times*power >= most*0.9999999 {
			return times * power
		}
	}
	return 10 * power
}

// span is a step in words.
func span(since time.Time, step time.Duration) string {
	from, to := since.UTC(), since.Add(step).UTC()
	if step < time.Hour {
		return from.Format("15:04") + " to " + to.Format("15:04 MST")
	}
	return from.Format("Mon 2 Jan 15:04") + " to " + to.Format("15:04 MST")
}

// spark is a line without an axis, as long as a word.
type spark struct{ Points, Title string }

// sparkOf draws values, oldest first. What they are is said by the title.
func sparkOf(values []float64, title string) spark {
	top := slices.Max(append([]float64{1}, values...))
	return spark{points(values, top, sparkWidth, sparkHeight), title}
}

// whole is a number of things in words.
func whole(v float64) string { return count(int64(math.Round(v))) }

// milliseconds is a duration in words.
func milliseconds(v float64) string { return took(time.Duration(v * float64(time.Millisecond))) }

// sharePercent is a part of a whole in words.
func sharePercent(v float64) string { return fmt.Sprintf("%.4g %%", 100*v) }
