package main

import (
	"fmt"
	"slices"
)

// side is who was measured.
type side int

const (
	sideDuly side = iota
	sideAsynq
	sideTaskq
	sideGocraft
	sides
)

func (s side) String() string { return [...]string{"duly", "asynq", "taskq", "gocraft"}[s] }

// better says which of two values of a figure is the better one.
type better int

const (
	lower better = iota
	higher
)

// spec names a figure and says how it is judged.
type spec struct {
	measurement string // the name that -only takes
	group       string // what the figures of one heading have in common
	name, unit  string
	better      better
	target      target
}

// target is what design.md promises for a figure. The zero target promises nothing.
type target struct {
	text string
	met  func(duly, asynq float64) bool
}

func atMost(most float64) target {
	return target{text: "<= " + compact(most), met: func(duly, _ float64) bool { return duly <= most }}
}

func atLeast(least float64) target {
	return target{text: ">= " + compact(least), met: func(duly, _ float64) bool { return duly >= least }}
}

// timesAsynq is a target for a figure of which more is better.
func timesAsynq(times float64) target {
	return target{
		text: fmt.Sprintf(">= %gx asynq", times),
		met:  func(duly, asynq float64) bool { return asynq > 0 && duly >= times*asynq },
	}
}

// partOfAsynq is a target for a figure of which less is better.
func partOfAsynq(most float64) target {
	return target{text: "<= " + compact(most) + "x asynq", met: func(duly, asynq float64) bool { return duly <= most*asynq }}
}

// sample is one measured value.
type sample struct {
	spec
	value float64
}

// figure is all that was measured of one thing.
type figure struct {
	spec
	samples [sides][]float64
}

// sheet holds the figures in the order in which they first came.
type sheet struct{ figures []*figure }

func (s *sheet) add(of side, samples ...sample) {
	for _, m := range samples {
		at := slices.IndexFunc(s.figures, func(f *figure) bool {
			return f.measurement == m.measurement && f.group == m.group && f.name == m.name
		})
		if at < 0 {
			at = len(s.figures)
			s.figures = append(s.figures, &figure{spec: m.spec})
		}
		f := s.figures[at]
		f.samples[of] = append(f.samples[of], m.value)
	}
}

// value is the median of a side's samples; false if there are none.
func (f *figure) value(of side) (float64, bool) {
	return quantile(f.samples[of], 0.5), len(f.samples[of]) > 0
}

// ratio is how many times better duly is than asynq; false if one of them was not measured or a ratio says nothing.
func (f *figure) ratio() (float64, bool) {
	duly, one := f.value(sideDuly)
	asynq, other := f.value(sideAsynq)
	if !one || !other || duly <= 0 || asynq <= 0 {
		return 0, false
	}
	if f.better == lower {
		return asynq / duly, true
	}
	return duly / asynq, true
}

// met reports whether the target is met; false as well if there is none.
func (f *figure) met() (met, known bool) {
	duly, ok := f.value(sideDuly)
	if f.target.met == nil || !ok {
		return false, false
	}
	asynq, _ := f.value(sideAsynq)
	return f.target.met(duly, asynq), true
}

// quantile is the q-quantile of values, between the nearest two; 0 of none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
