package pictures

// A pull: what a process asks its store, and what it runs between.

import (
	"fmt"
	"strings"
)

// Step is one of a pull: a call of the store, by its verb, or the ticks that run between two calls.
type Step struct {
	Verb  string   // of the store; empty for ticks
	Says  string   // what the call does, or what it brought
	Ticks []string // one for each agent, with its tasks in the order of their starts
}

// Pull draws the steps of a pull.
func Pull(steps []Step) string {
	height := 80
	said := []string{}
	for _, step := range steps {
		height += 50 * max(1, len(step.Ticks))
		said = append(said, strings.TrimSpace(step.Verb+" "+step.Says+strings.Join(step.Ticks, "; "))+".")
	}
	s := newSheet(720, height, "A pull: look, claim, a tick for each agent, settle", strings.Join(said, " "))
	s.box("b", 20, 12, 200, 34, "a process, on any host")
	s.box("b", 520, 12, 180, 34, "the store, in Redis")
	s.arrow(fmt.Sprintf("M120 46V%d", height-12))
	s.arrow(fmt.Sprintf("M610 46V%d", height-12))
	y := 80
	for _, step := range steps {
		if step.Verb != "" {
			s.arrow(fmt.Sprintf("M120 %dH604", y))
			s.text("", "start", 136, y-6, step.Verb)
			s.texts("start", 210, y-6, step.Says)
			y += 50
		}
		for _, tick := range step.Ticks {
			s.box("e", 60, y-26, 300, 36, tick)
			y += 50
		}
	}
	return s.done()
}
