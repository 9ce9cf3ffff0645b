package doctor

// The check of doctor that compares the file with the store.

import (
	"context"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// mostDifferences is how many differences one check names.
const mostDifferences = 5

// checkFile compares the file with the store, in both directions; none without a file. A limit, a budget or quiet hours that the store lacks bound
// nothing: that fails. Limits and budgets have no owner, so those that only the store has may be meant so.
func checkFile(ctx context.Context, s *core.Scheduler, o *command.Options, c *dulyfile.File) []finding {
	if o.File == "" {
		return nil
	}
	d, err := c.Compare(ctx, s)
	if err != nil {
		return []finding{found("file", checkFailed, "cannot be compared with the store: "+err.Error(), "check Redis, then try again")}
	}
	var all []finding
	for _, one := range []struct {
		lines    []string
		severity inspect.Severity
		what     string
		hint     string
	}{
		{d.Missing, checkFailed, "not in the store as in the file", "start a daemon with the file, which applies it; duly apply -f applies its tasks and profiles"},
		{d.More, checkWarning, "of the file's owner in the store, and no longer in the file", "delete with duly apply --prune"},
		{d.Others, checkWarning, "only in the store, not in the file", "if nobody has set them on purpose, lift them with duly limit unset or duly budget unset"},
	} {
		if n := len(one.lines); n > 0 {
			shown := strings.Join(one.lines[:min(n, mostDifferences)], "; ")
			if n > mostDifferences {
				shown += "; ..."
			}
			all = append(all, found("file", one.severity, table.Count(n, "difference")+", "+one.what+": "+shown, one.hint))
		}
	}
	if len(all) == 0 {
		all = append(all, found("file", checkOK, "the store has the limits, budgets, profiles and tasks of the file", ""))
	}
	return all
}
