package cli

// Limits, budgets and quotas: what their commands have in common, and those of one agent as flags of duly agent set and lines of duly agent show.

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// boundKind is a kind of bound: limits, or budgets. T is what one is about, and U one with its use.
type boundKind[T fmt.Stringer, U any] struct {
	noun, of string // as in "limit", and "limit on" a target
	list     func(s command.Scheduler, ctx context.Context) ([]U, error)
	print    func(w *table.Page, all []U)
	lift     func(s command.Scheduler, ctx context.Context, about T) error
	lifted   func(about T) any // the answer in JSON
}

// parent is the parent of three commands, and does nothing by itself.
func (*boundKind[T, U]) parent(name, short, example string, subs ...*cobra.Command) *cobra.Command {
	cmd := command.New(name, short, example, func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return help.NoSub(cmd, args[0], "use set, list or unset")
	})
	cmd.Args = cobra.ArbitraryArgs // so that the command itself can say which it knows
	cmd.AddCommand(subs...)
	return cmd
}

// listCommand shows what is bounded, and how much of it is used.
func (k *boundKind[T, U]) listCommand(o *command.Options, short string) *cobra.Command {
	return o.WithJSON(command.New("list", short, "  duly "+k.noun+" list --json", func(cmd *cobra.Command, _ []string) error {
		return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
			all, err := k.list(s, cmd.Context())
			if err != nil {
				return err
			}
			if all == nil {
				all = []U{}
			}
			return o.Print(map[string][]U{k.noun + "s": all}, func(w *table.Page) {
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
func (k *boundKind[T, U]) unsetCommand(o *command.Options, short, example string, target func() (T, error)) *cobra.Command {
	return o.WithJSON(command.New("unset", short, example, func(cmd *cobra.Command, _ []string) error {
		t, err := target()
		if err != nil {
			return err
		}
		return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
			switch err := k.lift(s, cmd.Context(), t); {
			case core.CodeOf(err) == core.CodeNotFound:
				f := exit.Misuse(fmt.Sprintf("duly %s list shows all %ss and how to unset each", k.noun, k.noun), "no %s %s exists", k.of, t)
				f.Code = exit.NotFound
				return f
			case err != nil:
				return err
			}
			return o.Print(k.lifted(t), func(w *table.Page) { w.Line("lifted: %s %s", k.of, t) })
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
	t := core.LimitTarget{Kind: f.kind, Key: f.key, Each: bound.Each(f.each)}
	if f.all != (t == core.LimitTarget{}) {
		return t, exit.Misuse("name it with --kind, --key and --each, or with --all alone", "expected what the %s is about", noun)
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
			return none, exit.Misuse("give it once", "%s %q has %s twice", flag, text, name)
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
		return none, exit.Misuse("concurrency, burst and amount are numbers", "%s %q cannot be read", flag, text)
	}
	v, err := read(data)
	if err != nil {
		err = exit.Misuse(`use one such as --limit "kind=digest,concurrency=2", --limit rate=60/1m or --budget "unit=tokens,amount=100000,per=day"`, "%s %q: %v", flag, text, err)
	}
	return v, err
}

// quotaOf reads the flag of a quota, whose names are the fields of the API.
func quotaOf(text string) (store.Quota, error) {
	fields := map[string]any{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if _, twice := fields[name]; twice {
			return store.Quota{}, exit.Misuse("give it once", "--quota %q has %s twice", text, name)
		}
		fields[name] = value
		switch name {
		case "interval", "horizon":
		case "kinds":
			fields[name] = strings.Split(value, "+")
		default:
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				fields[name] = n
			}
		}
	}
	var p core.Profile
	data, err := json.Marshal(map[string]any{"quota": fields})
	if err == nil {
		err = p.Read(data)
	}
	if err != nil {
		err = exit.Misuse(`use one such as --quota "live=200,recurring=20,interval=5m,kinds=digest+report-*"`, "--quota %q: %v", text, err)
	}
	return p.Quota, err
}

// quotaLines are the quota of a profile, with how much of each is used, for people.
func quotaLines(p *core.Profile) (lines [][2]string) {
	q, u := &p.Quota, p.Used
	if u == nil {
		u = &store.QuotaUse{}
	}
	counted := func(name string, used, most int64) {
		if most > 0 {
			text := strconv.FormatInt(most, 10)
			if p.Used != nil {
				text = fmt.Sprintf("%d of %d used", used, most)
			}
			lines = append(lines, [2]string{"quota " + name, text})
		}
	}
	said := func(name, text string) {
		if text != "" && text != "0" {
			lines = append(lines, [2]string{"quota " + name, text})
		}
	}
	counted("live", int64(u.Live), int64(q.Live))
	counted("recurring", int64(u.Recurring), int64(q.Recurring))
	counted("bytes", u.Bytes, q.Bytes)
	counted("submits a minute", int64(u.Submits), int64(q.Submits))
	if q.Interval > 0 {
		said("interval", moment.ShortDuration(q.Interval))
	}
	if q.Horizon > 0 {
		said("horizon", moment.ShortDuration(q.Horizon))
	}
	said("kinds", strings.Join(q.Kinds, ", "))
	said("depth", strconv.Itoa(q.Depth))
	said("spawned", strconv.Itoa(q.Spawned))
	return lines
}

// boundLines are the limits, the budgets and the quota of a profile, for people.
func boundLines(p *core.Profile) (lines [][2]string) {
	for i := range p.Limits {
		l := bound.LimitUse{Limit: p.Limits[i]}
		l.About.Agent = p.Agent
		lines = append(lines, [2]string{"limit", fmt.Sprintf("%s: %s", l.About, allows(&l))})
	}
	for i := range p.Budgets {
		b := p.Budgets[i]
		b.About.Agent = p.Agent
		lines = append(lines, [2]string{"budget", fmt.Sprintf("%s %s, then %s (%s)", b.Amount, b.About, b.Then, b.Zone)})
	}
	return append(lines, quotaLines(p)...)
}
