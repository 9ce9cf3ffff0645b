package bounds

// Budgets: how they are stored, set and read. They are limits of another form: see layout.lua.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Letters of the scripts.
var (
	periodOf = map[bound.Period]string{bound.PerHour: "h", bound.PerDay: "d", bound.PerMonth: "m"}
	thenOf   = map[bound.Then]string{bound.ThenHold: "h", bound.ThenPause: "p", bound.ThenNotify: "n"}
)

// IsBudget distinguishes names of budgets from those of limits.
func IsBudget(name string) bool { return strings.Contains(name, "$") }

// BudgetName is the name of a budget in the scripts: kind|key|each$unit$period.
func BudgetName(t bound.BudgetTarget) string {
	return LimitName(t.LimitTarget) + "$" + t.Unit + "$" + periodOf[t.Per]
}

// Name is the name of a budget, or, without a unit, of a limit.
func Name(t bound.BudgetTarget) string {
	if t.Unit == "" {
		return LimitName(t.LimitTarget)
	}
	return BudgetName(t)
}

// parseBudgetName is the inverse of budgetName.
func parseBudgetName(name string) (bound.BudgetTarget, error) {
	parts := strings.Split(name, "$")
	if len(parts) != 3 {
		return bound.BudgetTarget{}, layout.ErrMalformed
	}
	about, err := parseLimitName(parts[0])
	t := bound.BudgetTarget{LimitTarget: about, Unit: parts[1]}
	for per, letter := range periodOf {
		if letter == parts[2] {
			t.Per = per
		}
	}
	return t, err
}

// BudgetText is the terms of a budget, as the scripts read them: amount|then|clock|zone|opaque.
// The letter of one that spans partitions is a capital.
func BudgetText(b *bound.Budget, partitions int) string {
	then := thenOf[b.Then]
	if isSpanning(&b.About.LimitTarget, partitions) {
		then = strings.ToUpper(then)
	}
	return fmt.Sprintf("%d|%s|%s|%s|%s", b.Amount, then, b.Clock, b.Zone, b.Note)
}

// OfOne reports whether a budget belongs to the profile of an agent.
func OfOne(name string) bool { return strings.Contains(name, "|"+ofProfile+"$") }

// ParseBudget reads a budget. One that was lifted while a task still waits for it has no text, and no amount.
func ParseBudget(name, text string) (bound.Budget, error) {
	about, err := parseBudgetName(name)
	b := bound.Budget{About: about}
	if text == "" {
		return b, err
	}
	parts := strings.SplitN(text, "|", 5)
	if len(parts) != 5 {
		return b, layout.ErrMalformed
	}
	for then, letter := range thenOf {
		if letter == strings.ToLower(parts[1]) {
			b.Then = then
		}
	}
	amount, errAmount := strconv.ParseInt(parts[0], 10, 64)
	b.Amount, b.Zone, b.Note = bound.Amount(amount), parts[3], layout.Data(parts[4])
	var errClock error
	b.Clock, errClock = bound.ParseClock(parts[2])
	return b, errors.Join(err, errAmount, errClock)
}

// Budget sets and lifts budgets; see [store.Bounds].
func (s *Bounds) Budget(ctx context.Context, changes []bound.BudgetChange) ([]store.Effect, error) {
	texts := make([]setting, len(changes))
	for i := range changes {
		texts[i].name = BudgetName(changes[i].About)
		if !changes[i].Lift {
			texts[i].text = BudgetText(&changes[i].Budget, len(s.db.Parts))
		}
	}
	return s.bound(ctx, texts)
}

// Budgets are the budgets in force; see [store.Bounds].
func (s *Bounds) Budgets(ctx context.Context) ([]bound.BudgetUse, error) {
	calls := make([]call.Call, len(s.db.Parts))
	for p := range calls {
		calls[p] = call.Call{Script: &s.db.Scripts.Budgets, Partition: p, Args: []any{mostCounted}}
	}
	replies, err := s.db.Run(ctx, "read", calls)
	if err != nil {
		return nil, err
	}
	var lines, spent []string
	for _, reply := range replies {
		if len(reply) != 4 {
			return nil, call.Wrap("read", layout.ErrMalformed)
		}
		lines, spent = append(lines, pairsOf(reply[2])...), append(spent, pairsOf(reply[3])...)
	}
	at, limits := moment.Millis(layout.Number(replies[0][0])), pairsOf(replies[0][1])
	waiting, used := countsOf(lines), sharesOf(spent)
	var out []bound.BudgetUse
	for i := 0; i+1 < len(limits); i += 2 {
		name := limits[i]
		if !IsBudget(name) {
			continue
		}
		b, err := ParseBudget(name, limits[i+1])
		if err != nil {
			return nil, call.Wrap("read", layout.ErrMalformed)
		}
		use := bound.BudgetUse{Budget: b, Waiting: waiting[name], Ends: b.Clock.End(b.About.Per, at)}
		if isSpanning(&b.About.LimitTarget, len(s.db.Parts)) {
			name = AtHome + name
		}
		use.Add(used[name]...)
		out = append(out, use)
	}
	bound.SortBudgets(out)
	return out, nil
}

// pairsOf are names and values in turns.
func pairsOf(v any) []string {
	fields, _ := v.([]any)
	out := make([]string, len(fields))
	for i := range fields {
		out[i] = layout.Text(fields[i])
	}
	return out
}

// sharesOf is the use of buckets, by their budgets.
func sharesOf(spent []string) map[string][]bound.BudgetShare {
	out := map[string][]bound.BudgetShare{}
	for i := 0; i+1 < len(spent); i += 2 {
		rule, counted, ok := splitBucket(spent[i])
		if !ok {
			continue
		}
		if of, err := ofBucket(counted); err == nil {
			out[rule] = append(out[rule], bound.BudgetShare{Of: of, Used: bound.Amount(layout.Int(spent[i+1]))})
		}
	}
	return out
}

// splitBucket is the name of the rule of a bucket, and what that counts apart, which may be a task of any id.
func splitBucket(name string) (rule, of string, ok bool) {
	at := -1
	for range 3 {
		next := strings.IndexByte(name[at+1:], '|')
		if next < 0 {
			return "", "", false
		}
		at += 1 + next
	}
	return name[:at], name[at+1:], true
}

// ofBucket is the agent, key or task, as agent:id, that a bucket counts.
func ofBucket(name string) (string, error) {
	agent, id, isTask := strings.Cut(name, ":")
	who, err := layout.Decode(agent)
	if isTask {
		who += ":" + id
	}
	return who, err
}

// parseBudgetLine reads the line of a budget.
func parseBudgetLine(name, of string, fields LineFields) (store.Line, error) {
	b, err := ParseBudget(name, fields[1])
	if err != nil {
		return store.Line{}, layout.ErrMalformed
	}
	who, err := ofBucket(of)
	if OfOne(name) {
		b.About.Agent = who
	}
	use := &bound.BudgetUse{Budget: b, Used: bound.Amount(layout.Int(fields[5])), Waiting: layout.Int(fields[3]), Ends: moment.Millis(layout.Int(fields[6]))}
	reserved, untried, _ := strings.Cut(fields[8], "|")
	use.Reserved = bound.Amount(layout.Int(reserved) + layout.Int(untried))
	return store.Line{Budget: use, Of: who, StartAt: use.Ends}, err
}

// ParseCrossing reads a bucket that is used up, and when its period ends.
func ParseCrossing(bucket, ends any) (bound.Crossing, error) {
	name, counted, ok := splitBucket(layout.Text(bucket))
	if !ok {
		return bound.Crossing{}, layout.ErrMalformed
	}
	about, err := parseBudgetName(name)
	if err != nil {
		return bound.Crossing{}, err
	}
	agent, id, _ := strings.Cut(counted, ":")
	of, err := layout.Decode(agent)
	if OfOne(name) {
		about.Agent = of
	}
	return bound.Crossing{About: about, Of: of, Task: id, Ends: moment.Millis(layout.Number(ends))}, err
}
