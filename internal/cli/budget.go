package cli

// The commands budget set, budget list and budget unset.

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// budgetCommand is the parent of three commands, and does nothing by itself.
func (p *process) budgetCommand(o *options) *cobra.Command {
	cmd := command("budget", "Bound what runs use within an hour, a day or a month: starts, tokens, money",
		"  duly budget set --each agent --unit tokens --per day --amount 100000\n  duly budget list\n  duly budget unset --each agent --unit tokens --per day",
		func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return noSub(cmd, args[0], "use set, list or unset")
		})
	cmd.Args = cobra.ArbitraryArgs // so that the command itself can say which it knows
	cmd.AddCommand(p.budgetSetCommand(o), p.budgetListCommand(o), p.budgetUnsetCommand(o))
	return cmd
}

// budgetFlags name what a budget is about.
type budgetFlags struct {
	kind, key, each, unit, per string
	all                        bool
}

// add gives set and unset the same flags, so that unset takes the flags that set took.
func (f *budgetFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", "runs of this kind")
	flags.StringVar(&f.key, "key", "", "runs of tasks with this limit key; with a * at its end, any that begins so")
	flags.StringVar(&f.each, "each", "", "give each agent, each key or each task a budget of its own: agent, key or task")
	flags.BoolVar(&f.all, "all", false, "all runs together")
	flags.StringVar(&f.unit, "unit", "", "what is counted: runs, or what runs report, such as tokens or usd")
	flags.StringVar(&f.per, "per", "", "hour, day or month")
	choices(cmd, "each", string(core.EachAgent), string(core.EachKey), string(store.EachTask))
	choices(cmd, "per", string(core.PerHour), string(core.PerDay), string(core.PerMonth))
}

// target is what is named. Nothing named is never all: a variable that is empty in a script must not bound everything.
func (f *budgetFlags) target() (core.BudgetTarget, error) {
	t := core.BudgetTarget{LimitTarget: core.LimitTarget{Kind: f.kind, Key: f.key, Each: store.Each(f.each)}, Unit: f.unit, Per: store.Period(f.per)}
	if f.all != (t.LimitTarget == core.LimitTarget{}) {
		return t, usage("name it with --kind, --key and --each, or with --all alone", "expected what the budget is about")
	}
	return t, nil
}

// budgetArgs are the arguments that name what a budget is about.
func budgetArgs(t core.BudgetTarget) string {
	return limitArgs(t.LimitTarget) + " --unit " + t.Unit + " --per " + string(t.Per)
}

// budgetSetCommand replaces one whole budget.
func (p *process) budgetSetCommand(o *options) *cobra.Command {
	var on budgetFlags
	var b core.Budget
	var amount float64
	cmd := command("set", "Set a budget; it counts from the next claim of every process",
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
			return o.onStore(cmd.Context(), func(s scheduler) error {
				if err := s.SetBudgets(cmd.Context(), b); err != nil {
					return err
				}
				set, err := s.BudgetOn(cmd.Context(), b.About)
				if err != nil {
					return err
				}
				return o.print(p.stdout, set, func(w *table.Page) {
					w.Line("budget of %s %s in %s: then %s; %s used until %s", set.Amount, set.About, set.Zone, set.Then, set.Used, clock(set.Ends.Time()))
				})
			})
		})
	on.add(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&amount, "amount", 0, "how much of the unit; required")
	flags.StringVar(&b.Zone, "zone", "", "IANA zone in which days and months begin (default that of the file, or UTC)")
	flags.StringVar((*string)(&b.Then), "then", "", "what becomes of the tasks: hold, pause or notify (default hold: until the period is over)")
	choices(cmd, "then", string(core.ThenHold), string(core.ThenPause), string(core.ThenNotify))
	return o.withJSON(cmd)
}

// budgetListCommand shows what is bounded, and how much of it is used.
func (p *process) budgetListCommand(o *options) *cobra.Command {
	return o.withJSON(command("list", "List budgets: what they are about, how much is used, and by whom with --json", "  duly budget list --json",
		func(cmd *cobra.Command, _ []string) error {
			return o.onStore(cmd.Context(), func(s scheduler) error {
				budgets, err := s.Budgets(cmd.Context())
				if err != nil {
					return err
				}
				if budgets == nil {
					budgets = []store.BudgetUse{}
				}
				answer := struct {
					Budgets []store.BudgetUse `json:"budgets"`
				}{budgets}
				return o.print(p.stdout, answer, func(w *table.Page) { printBudgets(w, budgets) })
			})
		}))
}

// printBudgets ends each line with the command that lifts the budget.
func printBudgets(w *table.Page, budgets []store.BudgetUse) {
	if len(budgets) == 0 {
		w.Line("no budgets")
		return
	}
	t := table.New(w, "BUDGET", "AMOUNT", "USED", "USED UP", "WAITING", "THEN", "ENDS", "MOST", "TO UNSET")
	for i := range budgets {
		b := &budgets[i]
		most := "-"
		if len(b.Shares) > 0 {
			most = table.First(b.Shares[0].Of) + " " + b.Shares[0].Used.String()
		}
		t.Row(b.About.String(), b.Amount.String(), b.Used.String(), strconv.Itoa(b.UsedUp), strconv.FormatInt(b.Waiting, 10), string(b.Then),
			clock(b.Ends.Time()), most, "duly budget unset "+budgetArgs(b.About))
	}
	t.End()
}

// budgetUnsetCommand lifts one budget. Tasks that wait for it are claimed from the next claim on.
func (p *process) budgetUnsetCommand(o *options) *cobra.Command {
	var on budgetFlags
	cmd := command("unset", "Lift a budget, named by the flags that set it", "  duly budget unset --each agent --unit tokens --per day",
		func(cmd *cobra.Command, _ []string) error {
			t, err := on.target()
			if err != nil {
				return err
			}
			return o.onStore(cmd.Context(), func(s scheduler) error {
				switch err := s.LiftBudget(cmd.Context(), t); {
				case core.CodeOf(err) == core.CodeNotFound:
					f := usage("duly budget list shows all budgets and how to unset each", "no budget of %s exists", t)
					f.code = exitNotFound
					return f
				case err != nil:
					return err
				}
				answer := struct {
					core.BudgetTarget

					Deleted bool `json:"deleted"`
				}{t, true}
				return o.print(p.stdout, answer, func(w *table.Page) { w.Line("lifted: budget of %s", t) })
			})
		})
	on.add(cmd)
	return o.withJSON(cmd)
}
