package inspect

// Explain, of a task in line: which limit or budget it waits for.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// budget says which budget a task waits for. One that was lifted has no amount, and its line disappears with the next claim.
func (e *Explanation) budget(t *store.Stored) {
	b := t.Line.Budget
	of := b.About.LimitTarget.String()
	switch b.About.Each {
	case bound.EachAgent:
		of = fmt.Sprintf("agent %q", t.Line.Of)
	case bound.EachKey:
		of = fmt.Sprintf("limit key %q", t.Line.Of)
	case bound.EachTask:
		of = "this task"
	}
	if kind := b.About.Kind; kind != "" && b.About.Each != "" {
		of += fmt.Sprintf(" in kind %q", kind)
	}
	defer func() {
		e.about(fmt.Sprintf("budget of %s %s of %s", b.About.Unit, b.About.Per.Text(), b.About.LimitTarget))
	}()
	switch {
	case b.Amount == 0:
		e.Because(model.BecauseBudget, 0, "it waited for a budget of %s, which has been lifted: the next claim takes it", of)
	case b.Used < b.Amount && b.Reserved > 0:
		e.Because(model.BecauseBudget, 0, "the budget of %s %s %s of %s has no room for it beside the runs under way (%s used, %s kept for them): it starts when one of them has ended, if there is room then",
			b.Amount, b.About.Unit, b.About.Per.Text(), of, b.Used, b.Reserved)
	case b.Used < b.Amount || b.Ends <= e.now():
		e.Because(model.BecauseBudget, 0, "it waited for the budget of %s %s %s of %s, which has room again: the next claim takes it",
			b.Amount, b.About.Unit, b.About.Per.Text(), of)
	default:
		e.Because(model.BecauseBudget, b.Ends, "the budget of %s %s %s of %s is used up (%s used); runs again at %s, when its %s in %s is over, or once the budget is raised",
			b.Amount, b.About.Unit, b.About.Per.Text(), of, b.Used, ClockTime(b.Ends.Time()), b.About.Per, b.Zone)
	}
}

// adapts says why an adaptive limit lets a task wait.
func (e *Explanation) adapts(t *store.Stored) {
	l, learned := &t.Line.Limit, bound.Learned{Runs: 1}
	if len(l.Learned) > 0 {
		learned = l.Learned[0]
	}
	text := counting(learned.Runs, "run") + " at once"
	if learned.PerMinute > 0 {
		text += fmt.Sprintf(" and %.1f starts per minute", learned.PerMinute)
	}
	next := "the next starts when a run ends"
	switch {
	case learned.HeldUntil > e.now():
		next = "it was told to come back later, and is asked again at " + ClockTime(learned.HeldUntil.Time())
	case learned.Probing && l.Running > 0:
		next = "one run asks again after a refusal, and the others wait for its answer"
	case t.Line.StartAt > e.now():
		next = "the next starts at " + ClockTime(t.Line.StartAt.Time())
	}
	e.Because(model.BecauseLimited, max(t.Line.StartAt, learned.HeldUntil), "the adaptive limit on %s holds it back: it has found out that %s are served; %d running, %s in line; %s",
		l.About, text, l.Running, counting(int(l.Waiting), "task"), next)
}

// line says which limit a task waits for. One that was lifted has no bounds, and its line disappears with the next claim.
func (e *Explanation) line(t *store.Stored) {
	l := &t.Line.Limit
	defer func() { e.about("limit on " + l.About.String()) }()
	var bounds []string
	if l.Concurrency > 0 {
		bounds = append(bounds, counting(l.Concurrency, "run")+" at once")
	}
	if l.Rate > 0 {
		bounds = append(bounds, counting(l.Rate, "start")+" per "+moment.ShortDuration(l.Per))
	}
	if l.Adaptive {
		e.adapts(t)
		return
	}
	if len(bounds) == 0 {
		e.Because(model.BecauseLimited, 0, "it waited for the limit on %s, which has been lifted: the next claim takes it", l.About)
		return
	}
	next := "the next starts when a run ends"
	if l.Concurrency == 0 || l.Running < int64(l.Concurrency) {
		next = "the next starts with the next claim"
	}
	if t.Line.StartAt > e.now() {
		next = "the next starts at " + ClockTime(t.Line.StartAt.Time())
	}
	e.Because(model.BecauseLimited, t.Line.StartAt, "the limit on %s holds it back: %s; %d running, %s in line; %s",
		l.About, strings.Join(bounds, " and "), l.Running, counting(int(l.Waiting), "task"), next)
}

// counting is a number of things, in words: 1 run, 2 runs.
func counting(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
