package cli

// The commands budget set, budget list and budget unset.

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// budgetKind are budgets.
var budgetKind = &boundKind[core.BudgetTarget, bound.BudgetUse]{
	noun: "budget", of: "budget of", list: command.Scheduler.Budgets, print: printBudgets, lift: command.Scheduler.LiftBudget,
	lifted: func(t core.BudgetTarget) any { return operation.LiftedBudget{BudgetTarget: t, Deleted: true} },
}

// budgetCommand is the parent of three commands.
func budgetCommand(o *command.Options) *cobra.Command {
	var on budgetFlags
	unset := budgetKind.unsetCommand(o, "Lift a budget, named by the flags that set it", "  duly budget unset --each agent --unit tokens --per day", on.target)
	on.add(unset)
	return budgetKind.parent("budget", "Bound what runs use within an hour, a day or a month: starts, tokens, money",
		"  duly budget set --each agent --unit tokens --per day --amount 100000\n  duly budget list\n  duly budget unset --each agent --unit tokens --per day",
		budgetSetCommand(o), budgetKind.listCommand(o, "List budgets: what they are about, how much is used, and by whom with --json"), unset)
}

// budgetFlags name what a budget is about.
type budgetFlags struct {
	aboutFlags

	unit, per string
}

func (f *budgetFlags) add(cmd *cobra.Command) {
	f.aboutFlags.add(cmd, "runs", "runs of tasks", "give each agent, each key or each task a budget of its own: agent, key or task",
		string(core.EachAgent), string(core.EachKey), string(bound.EachTask))
	flags := cmd.Flags()
	flags.StringVar(&f.unit, "unit", "", "what is counted: runs, or what runs report, such as tokens or usd")
	flags.StringVar(&f.per, "per", "", "hour, day or month")
	choices(cmd, "per", string(core.PerHour), string(core.PerDay), string(core.PerMonth))
}

func (f *budgetFlags) target() (core.BudgetTarget, error) {
	t, err := f.aboutFlags.target("budget")
	return core.BudgetTarget{LimitTarget: t, Unit: f.unit, Per: bound.Period(f.per)}, err
}

// budgetArgs are the arguments that name what a budget is about.
func budgetArgs(t core.BudgetTarget) string {
	return limitArgs(t.LimitTarget) + " --unit " + t.Unit + " --per " + string(t.Per)
}

// budgetSetCommand replaces one whole budget.
func budgetSetCommand(o *command.Options) *cobra.Command {
	var on budgetFlags
	var b core.Budget
	var amount float64
	cmd := command.New("set", "Set a budget; it counts from the next claim of every process",
		`  duly budget set --each agent --unit tokens --per day --amount 100000 --zone Europe/Berlin
  duly budget set --key 'openai:*' --unit usd --per month --amount 250 --then notify
  duly budget set --each task --unit runs --per hour --amount 60 --then pause`,
		func(cmd *cobra.Command, _ []string) error {
			var err error
			if b.About, err = on.target(); err == nil {
				b.Amount, err = core.ParseAmount(amount)
			}
			if err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				if err := s.SetBudgets(cmd.Context(), b); err != nil {
					return err
				}
				set, err := s.BudgetOn(cmd.Context(), b.About)
				if err != nil {
					return err
				}
				return o.Print(set, func(w *table.Page) {
					w.Line("budget of %s %s in %s: then %s; %s used until %s", set.Amount, set.About, set.Zone, set.Then, set.Used, table.Clock(set.Ends.Time()))
				})
			})
		})
	on.add(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&amount, "amount", 0, "how much of the unit; required")
	flags.StringVar(&b.Zone, "zone", "", "IANA zone in which days and months begin (default that of the file, or UTC)")
	flags.StringVar((*string)(&b.Then), "then", "", "what becomes of the tasks: hold, pause or notify (default hold: until the period is over)")
	choices(cmd, "then", string(core.ThenHold), string(core.ThenPause), string(core.ThenNotify))
	return o.WithJSON(cmd)
}

// printBudgets ends each line with the command that lifts the budget.
func printBudgets(w *table.Page, budgets []bound.BudgetUse) {
	t := table.New(w, "BUDGET", "AMOUNT", "USED", "USED UP", "WAITING", "THEN", "ENDS", "MOST", "TO UNSET")
	for i := range budgets {
		b := &budgets[i]
		most := "-"
		if len(b.Shares) > 0 {
			most = table.First(b.Shares[0].Of) + " " + b.Shares[0].Used.String()
		}
		t.Row(b.About.String(), b.Amount.String(), b.Used.String(), strconv.Itoa(b.UsedUp), strconv.FormatInt(b.Waiting, 10), string(b.Then),
			table.Clock(b.Ends.Time()), most, "duly budget unset "+budgetArgs(b.About))
	}
	t.End()
}
