package dulyfile

// The budgets of the file, over all processes.

import (
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// readBudgets reads the budgets. Each is checked by itself, so that a mistake has its line; only what they are together is looked at here.
func (f *File) readBudgets(p place) error {
	if p.empty() {
		return nil
	}
	elements, err := p.list()
	if err != nil {
		return err
	}
	if n := len(elements) + len(f.Limits); n > store.MostLimits {
		return p.fail("and limits must be at most %d, not %d", store.MostLimits, n)
	}
	lines := map[core.BudgetTarget]int{}
	for _, e := range elements {
		b, err := readBudget(e)
		if err != nil {
			return err
		}
		if line, twice := lines[b.About]; twice {
			return e.fail("is a duplicate entry for %s (first on line %d): merge them", b.About, line)
		}
		lines[b.About] = e.node.Line
		if b.Zone == "" {
			b.Zone = f.Defaults.Zone
		}
		f.Budgets = append(f.Budgets, b)
	}
	return nil
}

// readBudget reads one budget, and has core check it.
func readBudget(p place) (core.Budget, error) {
	var b core.Budget
	if err := p.read(map[string]reader{
		"kind": text(&b.About.Kind), "limit_key": text(&b.About.Key), "each": text((*string)(&b.About.Each)),
		"unit": text(&b.About.Unit), "per": text((*string)(&b.About.Per)), "amount": amount(&b.Amount), "zone": text(&b.Zone),
		"then": text((*string)(&b.Then)),
	}); err != nil {
		return b, err
	}
	wrong, err := misconfigured(core.Config{Budgets: []core.Budget{b}})
	if wrong == nil {
		return b, err
	}
	field := strings.TrimPrefix(wrong.Field, "Budgets[0].")
	if at := p.of(field); at != p {
		return b, at.fail("%s", wrong.Reason)
	}
	return b, p.fail("%s %s", field, wrong.Reason)
}

// amount reads a number, with a fraction or without.
func amount(into *store.Amount) reader {
	return func(p place) error {
		var given string
		if err := text(&given)(p); err != nil || given == "" {
			return err
		}
		n, err := strconv.ParseFloat(given, 64)
		if err != nil {
			return p.fail("must be a number such as 100000 or 2.5, not %q", given)
		}
		if *into, err = core.ParseAmount(n); err != nil {
			return p.fail("%s", strings.TrimPrefix(err.Error(), "amount "))
		}
		return nil
	}
}
