package cli

// Limits and budgets: what their commands have in common, and those of one agent as flags of duly agent set and lines of duly agent show.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// boundKind is a kind of bound: limits, or budgets. T is what one is about, and U one with its use.
type boundKind[T fmt.Stringer, U any] struct {
	noun, of string // as in "limit", and "limit on" a target
	list     func(s scheduler, ctx context.Context) ([]U, error)
	print    func(w *table.Page, all []U)
	lift     func(s scheduler, ctx context.Context, about T) error
	lifted   func(about T) any // the answer in JSON
}

// parent is the parent of three commands, and does nothing by itself.
func (*boundKind[T, U]) parent(name, short, example string, subs ...*cobra.Command) *cobra.Command {
	cmd := command(name, short, example, func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return noSub(cmd, args[0], "use set, list or unset")
	})
	cmd.Args = cobra.ArbitraryArgs // so that the command itself can say which it knows
	cmd.AddCommand(subs...)
	return cmd
}

// listCommand shows what is bounded, and how much of it is used.
func (k *boundKind[T, U]) listCommand(p *process, o *options, short string) *cobra.Command {
	return o.withJSON(command("list", short, "  duly "+k.noun+" list --json", func(cmd *cobra.Command, _ []string) error {
		return o.onStore(cmd.Context(), func(s scheduler) error {
			all, err := k.list(s, cmd.Context())
			if err != nil {
				return err
			}
			if all == nil {
				all = []U{}
			}
			return o.print(p.stdout, map[string][]U{k.noun + "s": all}, func(w *table.Page) {
				if len(all) == 0 {
					w.Line("no %ss", k.noun)
					return
				}
				k.print(w, all)
			})
		})
	}))
}

// unsetCommand lifts one. Tasks that wait for it are claimed from the next claim on.
func (k *boundKind[T, U]) unsetCommand(p *process, o *options, short, example string, target func() (T, error)) *cobra.Command {
	return o.withJSON(command("unset", short, example, func(cmd *cobra.Command, _ []string) error {
		t, err := target()
		if err != nil {
			return err
		}
		return o.onStore(cmd.Context(), func(s scheduler) error {
			switch err := k.lift(s, cmd.Context(), t); {
			case core.CodeOf(err) == core.CodeNotFound:
				f := usage(fmt.Sprintf("duly %s list shows all %ss and how to unset each", k.noun, k.noun), "no %s %s exists", k.of, t)
				f.code = exitNotFound
				return f
			case err != nil:
				return err
			}
			return o.print(p.stdout, k.lifted(t), func(w *table.Page) { w.Line("lifted: %s %s", k.of, t) })
		})
	}))
}

// aboutFlags name what a limit or a budget is about.
type aboutFlags struct {
	kind, key, each string
	all             bool
}

// add gives set and unset the same flags, so that unset takes the flags that set took.
func (f *aboutFlags) add(cmd *cobra.Command, of, with, each string, choice ...string) {
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", of+" of this kind")
	flags.StringVar(&f.key, "key", "", with+" with this limit key; with a * at its end, any that begins so")
	flags.StringVar(&f.each, "each", "", each)
	flags.BoolVar(&f.all, "all", false, "all "+of+" together")
	choices(cmd, "each", choice...)
}

// target is what is named. Nothing named is never all: a variable that is empty in a script must not bound everything.
func (f *aboutFlags) target(noun string) (core.LimitTarget, error) {
	t := core.LimitTarget{Kind: f.kind, Key: f.key, Each: store.Each(f.each)}
	if f.all != (t == core.LimitTarget{}) {
		return t, usage("name it with --kind, --key and --each, or with --all alone", "expected what the %s is about", noun)
	}
	return t, nil
}

// bounded gives a profile the limits and budgets of its flags.
func bounded(p *core.Profile, limits, budgets []string) error {
	for _, text := range limits {
		l, err := boundOf(text, "--limit", core.ReadLimit)
		if err != nil {
			return err
		}
		p.Limits = append(p.Limits, l)
	}
	for _, text := range budgets {
		b, err := boundOf(text, "--budget", core.ReadBudget)
		if err != nil {
			return err
		}
		p.Budgets = append(p.Budgets, b)
	}
	return nil
}

// boundOf reads a flag such as "kind=digest,concurrency=2", whose names are the fields of the API.
func boundOf[V any](text, flag string, read func([]byte) (V, error)) (V, error) {
	fields := map[string]any{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if _, twice := fields[name]; twice {
			var none V
			return none, usage("give it once", "%s %q has %s twice", flag, text, name)
		}
		fields[name] = value
		if name == "concurrency" || name == "burst" || name == "amount" {
			fields[name] = json.RawMessage(value)
		}
		if name == "adaptive" {
			fields[name] = value == "" || value == "true"
		}
	}
	data, err := json.Marshal(fields)
	if err != nil { // a number that is none
		var none V
		return none, usage("concurrency, burst and amount are numbers", "%s %q cannot be read", flag, text)
	}
	v, err := read(data)
	if err != nil {
		err = usage(`use one such as --limit "kind=digest,concurrency=2", --limit rate=60/1m or --budget "unit=tokens,amount=100000,per=day"`, "%s %q: %v", flag, text, err)
	}
	return v, err
}

// boundLines are the limits and budgets of a profile, for people.
func boundLines(p *core.Profile) (lines [][2]string) {
	for i := range p.Limits {
		l := store.LimitUse{Limit: p.Limits[i]}
		l.About.Agent = p.Agent
		lines = append(lines, [2]string{"limit", fmt.Sprintf("%s: %s", l.About, allows(&l))})
	}
	for i := range p.Budgets {
		b := p.Budgets[i]
		b.About.Agent = p.Agent
		lines = append(lines, [2]string{"budget", fmt.Sprintf("%s %s, then %s (%s)", b.Amount, b.About, b.Then, b.Zone)})
	}
	return lines
}
