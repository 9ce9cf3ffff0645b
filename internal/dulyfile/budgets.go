package dulyfile

// The budgets of the file, over all processes.

import (
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

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
	return b, checkBound(p, "Budgets[0]", core.Config{Budgets: []core.Budget{b}})
}

// amount reads a number, with a fraction or without.
func amount(into *bound.Amount) reader {
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
