package dulyfile

// The limits of the file, over all processes.

import (
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// readBounds reads the limits, the budgets, and the policy: what starts later or sooner than it is due, over all handlers.
func (f *File) readBounds(limits, budgets, heat place) error {
	if err := f.readLimits(limits); err != nil {
		return err
	}
	if err := f.readBudgets(budgets); err != nil {
		return err
	}
	return f.readHeat(heat)
}

// readLimits reads the limits. Each is checked by itself, so that a mistake has its line; only what they are together is looked at here.
func (f *File) readLimits(p place) error {
	if p.empty() {
		return nil
	}
	elements, err := p.list()
	if err != nil {
		return err
	}
	if len(elements) > store.MostLimits {
		return p.fail("must be at most %d, not %d", store.MostLimits, len(elements))
	}
	lines := map[core.LimitTarget]int{}
	for _, e := range elements {
		l, err := readLimit(e)
		if err != nil {
			return err
		}
		if line, twice := lines[l.About]; twice {
			return e.fail("is a duplicate entry for %s (first on line %d): merge them", l.About, line)
		}
		lines[l.About] = e.node.Line
		f.Limits = append(f.Limits, l)
	}
	return nil
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
	wrong, err := misconfigured(core.Config{Limits: []core.Limit{l}})
	if wrong == nil {
		return l, err
	}
	field := strings.TrimPrefix(wrong.Field, "Limits[0].")
	if at := p.of(field); at != p {
		return l, at.fail("%s", wrong.Reason)
	}
	return l, p.fail("%s %s", field, wrong.Reason)
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
