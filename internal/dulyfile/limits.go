package dulyfile

// The limits of the file, over all processes, and what they have in common with its budgets.

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// readBounds reads the limits, the budgets, and the policy: what starts later or sooner than it is due, over all handlers.
func (f *File) readBounds(limits, budgets, heat place) error {
	var err error
	if f.Limits, err = readEach(limits, "", 0, readLimit, func(l *core.Limit) core.LimitTarget { return l.About }); err != nil {
		return err
	}
	f.Budgets, err = readEach(budgets, "and limits ", len(f.Limits), readBudget, func(b *core.Budget) core.BudgetTarget { return b.About })
	if err != nil {
		return err
	}
	for i := range f.Budgets {
		f.Budgets[i].Zone = cmp.Or(f.Budgets[i].Zone, f.Defaults.Zone)
	}
	return f.readHeat(heat)
}

// target is what a limit or a budget is about.
type target interface {
	comparable
	fmt.Stringer
}

// readEach reads limits or budgets, no two of them about the same. Each is checked by itself, so that a mistake has its line; only what they are together
// is looked at here, with the number of others that count too.
func readEach[V any, T target](p place, also string, others int, read func(p place) (V, error), about func(v *V) T) (all []V, err error) {
	if p.empty() {
		return nil, nil
	}
	elements, err := p.list()
	if err != nil {
		return nil, err
	}
	if n := len(elements) + others; n > bound.MostLimits {
		return nil, p.fail("%smust be at most %d, not %d", also, bound.MostLimits, n)
	}
	lines := map[T]int{}
	for _, e := range elements {
		v, err := read(e)
		if err != nil {
			return nil, err
		}
		if line, twice := lines[about(&v)]; twice {
			return nil, e.fail("is a duplicate entry for %s (first on line %d): merge them", about(&v), line)
		}
		lines[about(&v)] = e.node.Line
		all = append(all, v)
	}
	return all, nil
}

// checkBound has core check a limit or a budget, the only one of a configuration.
func checkBound(p place, only string, c core.Config) error {
	wrong, err := misconfigured(c)
	if wrong == nil {
		return err
	}
	field := strings.TrimPrefix(wrong.Field, only+".")
	if at := p.of(field); at != p {
		return at.fail("%s", wrong.Reason)
	}
	return p.fail("%s %s", field, wrong.Reason)
}

// readLimit reads one limit, and has core check it.
func readLimit(p place) (core.Limit, error) {
	var l core.Limit
	if err := p.read(map[string]reader{
		"kind": text(&l.About.Kind), "limit_key": text(&l.About.Key), "each": text((*string)(&l.About.Each)),
		"concurrency": integer(&l.Concurrency), "rate": rate(&l), "burst": orNone(&l.Burst), "adaptive": boolean(&l.Adaptive),
	}); err != nil {
		return l, err
	}
	return l, checkBound(p, "Limits[0]", core.Config{Limits: []core.Limit{l}})
}

// rate reads how many runs may start in how long, such as 60/1m.
func rate(into *core.Limit) reader {
	return func(p place) error {
		var given string
		if err := text(&given)(p); err != nil || given == "" {
			return err
		}
		var err error
		if into.Rate, into.Per, err = core.ParseRate(given); err != nil {
			return p.fail("%s", strings.TrimPrefix(err.Error(), "rate "))
		}
		return nil
	}
}
