package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a bench found.
type report struct {
	notes   []string
	figures []*figure
}

// writeTable writes the report for people.
func (r *report) writeTable(w io.Writer) error {
	for _, note := range r.notes {
		_, _ = fmt.Fprintln(w, note)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	group := ""
	for _, f := range r.figures {
		if f.group != group {
			group = f.group
			_, _ = fmt.Fprintf(t, "\n%s\n", group)
			_, _ = fmt.Fprintln(t, "  figure\tunit\tduly\tlow to high\tasynq\ttaskq\tgocraft\tx asynq\ttarget\tmet")
		}
		_, _ = fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.name, f.unit, cell(f.value(sideDuly)), f.span(sideDuly),
			cell(f.value(sideAsynq)), cell(f.value(sideTaskq)), cell(f.value(sideGocraft)), cell(f.ratio()), f.target.text, f.verdict())
	}
	return t.Flush()
}

func (f *figure) span(of side) string {
	s := f.samples[of]
	if len(s) < 2 {
		return ""
	}
	return compact(slices.Min(s)) + " to " + compact(slices.Max(s))
}

func (f *figure) verdict() string {
	met, known := f.met()
	switch {
	case !known:
		return ""
	case met:
		return "yes"
	default:
		return "NO"
	}
}

func cell(v float64, known bool) string {
	if !known {
		return ""
	}
	return compact(v)
}

// compact prints a number with three digits that count, and whole numbers in full.
func compact(v float64) string {
	switch abs := math.Abs(v); {
	case abs >= 1000:
		return digits(int(math.Round(v)))
	case abs >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// digits prints a whole number with its thousands apart.
func digits(n int) string {
	if n < 0 {
		return "-" + digits(-n)
	}
	s := strconv.Itoa(n)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

func ofAgents(n int) string { return count(n, "agent") }

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return digits(n) + " " + noun
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// figureJSON is a figure for programs. What was not measured or not promised is left out.
type figureJSON struct {
	Measurement  string    `json:"measurement"`
	Group        string    `json:"group"`
	Name         string    `json:"name"`
	Unit         string    `json:"unit"`
	Better       string    `json:"better"`
	Duly         *float64  `json:"duly"`
	Asynq        *float64  `json:"asynq,omitempty"`
	Taskq        *float64  `json:"taskq,omitempty"`
	Gocraft      *float64  `json:"gocraft,omitempty"`
	TimesBetter  *float64  `json:"times_better,omitempty"` // than asynq
	Target       string    `json:"target,omitempty"`
	Met          *bool     `json:"met,omitempty"`
	DulySamples  []float64 `json:"duly_samples"`
	AsynqSamples []float64 `json:"asynq_samples,omitempty"`
}

// writeJSON writes the report for programs.
func (r *report) writeJSON(w io.Writer) error {
	figures := make([]figureJSON, len(r.figures))
	for i, f := range r.figures {
		figures[i] = figureJSON{
			Measurement: f.measurement, Group: f.group, Name: f.name, Unit: f.unit,
			Better: map[better]string{lower: "lower", higher: "higher"}[f.better],
			Duly:   known(f.value(sideDuly)), Asynq: known(f.value(sideAsynq)),
			Taskq: known(f.value(sideTaskq)), Gocraft: known(f.value(sideGocraft)), TimesBetter: known(f.ratio()),
			Target: f.target.text, Met: known(f.met()),
			DulySamples: f.samples[sideDuly], AsynqSamples: f.samples[sideAsynq],
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(map[string]any{"notes": r.notes, "figures": figures})
}

// known is a pointer to v, or nil if it is not known.
func known[T any](v T, ok bool) *T {
	if !ok {
		return nil
	}
	return &v
}
