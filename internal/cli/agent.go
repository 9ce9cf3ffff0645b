package cli

// The command agent; its commands set, show, list and unset, for the profiles of agents, and forget.

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// agentCommand is the parent of its commands, and does nothing by itself.
func agentCommand(o *command.Options) *cobra.Command {
	cmd := command.New("agent", "Set the zone, quiet hours, limits, budgets and quotas of agents; export, import and forget agents",
		"  duly agent set ada --zone Europe/Berlin --quiet 22:00-07:00\n  duly agent show ada\n  duly agent unset ada",
		func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return help.NoSub(cmd, args[0], "use set, show, list, unset, export, import or forget; duly agents lists agents with tasks")
		})
	cmd.Args = cobra.ArbitraryArgs // so that the command itself can say which it knows
	cmd.AddCommand(agentSetCommand(o), agentShowCommand(o), agentListCommand(o), agentUnsetCommand(o), agentForgetCommand(o))
	cmd.AddCommand(agentExportCommand(o), agentImportCommand(o))
	return cmd
}

// oneAgent is the only argument of a command.
func oneAgent(args []string) (string, error) {
	if len(args) != 1 {
		return "", exit.Misuse("name one agent", "expected one AGENT, not %d arguments", len(args))
	}
	return args[0], nil
}

// profileFlags are the texts of a profile as flags give them.
type profileFlags struct {
	quiet, labels, limits, budgets []string
	quota, tenant                  string
}

// into reads them into a profile, and the agent from the arguments.
func (g *profileFlags) into(set *core.Profile, args []string) (err error) {
	if set.Agent, err = oneAgent(args); err == nil {
		set.Quiet, err = quietHours(unlessNone(g.quiet))
	}
	if err == nil {
		set.Labels, err = labelsOf(unlessNone(g.labels))
	}
	if err == nil {
		err = bounded(set, unlessNone(g.limits), unlessNone(g.budgets))
	}
	if err == nil && g.quota != "" && g.quota != none {
		set.Quota, err = quotaOf(g.quota)
	}
	if g.tenant != none {
		set.Tenant = g.tenant
	}
	return err
}

// agentSetCommand changes what flags give of a profile.
func agentSetCommand(o *command.Options) *cobra.Command {
	var set core.Profile
	var given profileFlags
	cmd := command.New("set AGENT", "Change what is given of the profile of an agent; its waiting tasks are planned by it",
		`  duly agent set ada --zone Europe/Berlin --quiet 22:00-07:00
  duly agent set ada --quiet "22:00-07:00" --quiet "00:00-24:00 sat-sun" --urgent
  duly agent set ada --zone Asia/Tokyo --label tier=gold
  duly agent set ada --limit concurrency=2 --budget "unit=tokens,amount=100000,per=day"
  duly agent set ada --quota "live=200,recurring=20,interval=5m,submits=60,kinds=digest+report-*"
  duly agent set ada --tenant acme
  duly agent set ada --quiet none --budget none`,
		func(cmd *cobra.Command, args []string) error {
			if err := given.into(&set, args); err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				if err := keepRest(cmd, s, &set); err != nil {
					return err
				}
				stored, err := s.SetProfile(cmd.Context(), set)
				if err != nil {
					return err
				}
				return o.Print(stored, func(w *table.Page) { printProfile(w, &stored) })
			})
		})
	cmd.Args = cobra.ArbitraryArgs // so that the command itself can say what it needs
	flags := cmd.Flags()
	flags.StringVar(&set.Zone, "zone", "", "IANA zone of the quiet hours, and of tasks with --zone agent (default the file's zone, or UTC)")
	flags.StringArrayVar(&given.quiet, "quiet", nil, `when no task starts, such as "22:00-07:00" or "00:00-24:00 sat-sun,wed"; can be given several times; none takes them off`)
	flags.BoolVar(&set.Urgent, "urgent", false, "tasks of level 1, and urgent ones, start in quiet hours too")
	flags.StringArrayVar(&given.labels, "label", nil, "name=value of your own; can be given several times; none takes them off")
	flags.StringArrayVar(&given.limits, "limit", nil, `bounds runs of this agent, such as "kind=digest,concurrency=2" or "limit_key=openai:*,rate=60/1m"; can be given several times; none takes them off`)
	flags.StringArrayVar(&given.budgets, "budget", nil, `what runs of this agent may use, such as "unit=tokens,amount=100000,per=day,then=pause"; can be given several times; none takes them off`)
	flags.StringVar(&given.tenant, "tenant", "", "whose agent it is: tenants share what there is room for equally, however many agents each has; none takes it off")
	flags.StringVar(&given.quota, "quota", "", `what callers of this agent, and runs, may store for it: live, recurring, bytes, submits, interval, horizon, kinds, depth and spawned, such as "live=200,interval=5m,kinds=digest+report-*"; none takes it off`)
	return o.WithJSON(cmd)
}

// none as the value of a flag takes off what a profile has.
const none = "none"

// unlessNone are the values of a flag; nothing if it is to take off what there is.
func unlessNone(values []string) []string {
	if len(values) == 1 && values[0] == none {
		return nil
	}
	return values
}

// keepRest adds to a profile what no flag is about, as it is now: a change of the zone must not lift a quota. If another caller changes the profile meanwhile
// the command fails.
func keepRest(cmd *cobra.Command, s command.Scheduler, set *core.Profile) error {
	was, err := s.Profile(cmd.Context(), set.Agent)
	if errors.Is(err, core.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	given := cmd.Flags().Changed
	for flag, keep := range map[string]func(){
		"zone": func() { set.Zone = was.Zone }, "quiet": func() { set.Quiet = was.Quiet }, "urgent": func() { set.Urgent = was.Urgent },
		"label": func() { set.Labels = was.Labels }, "limit": func() { set.Limits = was.Limits }, "budget": func() { set.Budgets = was.Budgets },
		"quota": func() { set.Quota = was.Quota }, "tenant": func() { set.Tenant = was.Tenant },
	} {
		if !given(flag) {
			keep()
		}
	}
	set.Revision = was.Revision
	return nil
}

// quietHours reads the flags of quiet hours.
func quietHours(flags []string) ([]core.QuietHours, error) {
	var out []core.QuietHours
	for _, text := range flags {
		span, days, _ := strings.Cut(strings.TrimSpace(text), " ")
		from, to, ok := strings.Cut(span, "-")
		if !ok {
			return nil, exit.Misuse(`use one such as "22:00-07:00" or "00:00-24:00 sat-sun"`, "--quiet %q is not a stretch of time", text)
		}
		h := core.QuietHours{From: from, To: to}
		if days = strings.TrimSpace(days); days != "" {
			h.Days = strings.Split(days, ",")
		}
		out = append(out, h)
	}
	return out, nil
}

// labelsOf reads the flags of labels.
func labelsOf(flags []string) (map[string]string, error) {
	var out map[string]string
	for _, text := range flags {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, exit.Misuse("use name=value", "--label %q has no value", text)
		}
		if out == nil {
			out = map[string]string{}
		}
		out[name] = value
	}
	return out, nil
}

// agentShowCommand shows one profile.
func agentShowCommand(o *command.Options) *cobra.Command {
	cmd := command.New("show AGENT", "Show the profile of an agent", "  duly agent show ada --json",
		func(cmd *cobra.Command, args []string) error {
			agent, err := oneAgent(args)
			if err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				profile, err := s.Profile(cmd.Context(), agent)
				if err != nil {
					return noProfile(err, agent)
				}
				return o.Print(profile, func(w *table.Page) { printProfile(w, &profile) })
			})
		})
	cmd.Args = cobra.ArbitraryArgs
	return o.WithJSON(cmd)
}

// noProfile says which agent has none.
func noProfile(err error, agent string) error {
	if core.CodeOf(err) != core.CodeNotFound {
		return err
	}
	f := exit.Misuse("duly agent list shows all profiles", "agent %q has no profile", agent)
	f.Code = exit.NotFound
	return f
}

// printProfile writes one profile.
func printProfile(w *table.Page, profile *core.Profile) {
	t := table.New(w, "AGENT", profile.Agent)
	lines := [][2]string{
		{"zone", zoneName(profile)},
		{"quiet", quietText(profile)},
		{"urgent passes", strconv.FormatBool(profile.Urgent)},
		{"revision", strconv.FormatInt(profile.Revision, 10)},
	}
	if profile.Tenant != "" {
		lines = append(lines, [2]string{"tenant", profile.Tenant})
	}
	for _, line := range append(lines, boundLines(profile)...) {
		t.Row(line[0], line[1])
	}
	t.End()
}

func zoneName(profile *core.Profile) string {
	if profile.Zone == "" {
		return "UTC"
	}
	return profile.Zone
}

// quietText is the quiet hours as the flags have them.
func quietText(profile *core.Profile) string {
	var all []string
	for _, h := range profile.Quiet {
		all = append(all, strings.TrimSpace(h.From+"-"+h.To+" "+strings.Join(h.Days, ",")))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, "; ")
}

// agentListCommand lists all profiles.
func agentListCommand(o *command.Options) *cobra.Command {
	var limit int
	var cursor string
	cmd := command.New("list", "List profiles: of which agents, with their zones and quiet hours", "  duly agent list",
		func(cmd *cobra.Command, _ []string) error {
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				profiles, next, err := s.Profiles(cmd.Context(), cursor, limit)
				if err != nil {
					return err
				}
				if profiles == nil {
					profiles = []core.Profile{}
				}
				answer := operation.Profiles{Profiles: profiles, Next: next}
				return o.Print(answer, func(w *table.Page) { printProfiles(w, profiles, next) })
			})
		})
	pageFlags(cmd, &limit, &cursor)
	return o.WithJSON(cmd)
}

func printProfiles(w *table.Page, profiles []core.Profile, next string) {
	if len(profiles) == 0 && next == "" {
		w.Line("no profiles")
		return
	}
	t := table.New(w, "AGENT", "ZONE", "QUIET", "URGENT PASSES")
	for i := range profiles {
		t.Row(profiles[i].Agent, zoneName(&profiles[i]), quietText(&profiles[i]), strconv.FormatBool(profiles[i].Urgent))
	}
	t.End()
	if next != "" {
		w.Line("")
		w.Line("more: duly agent list --cursor %s", next)
	}
}

// agentUnsetCommand deletes a profile; the tasks of the agent stay.
func agentUnsetCommand(o *command.Options) *cobra.Command {
	cmd := command.New("unset AGENT", "Delete the profile of an agent; its tasks start at any time again", "  duly agent unset ada",
		func(cmd *cobra.Command, args []string) error {
			agent, err := oneAgent(args)
			if err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				if err := s.DeleteProfile(cmd.Context(), agent); err != nil {
					return noProfile(err, agent)
				}
				answer := operation.DeletedProfile{Agent: agent, Deleted: true}
				return o.Print(answer, func(w *table.Page) { w.Line("deleted: profile of agent %s", agent) })
			})
		})
	cmd.Args = cobra.ArbitraryArgs
	return o.WithJSON(cmd)
}

// agentForgetCommand deletes all that is known of an agent, if the caller has agreed.
func agentForgetCommand(o *command.Options) *cobra.Command {
	var dry, yes bool
	cmd := command.New("forget AGENT", "Delete all of an agent: tasks, history, groups, pauses and profile; it is counted first, and deleted with --yes",
		"  duly agent forget ada\n  duly agent forget ada --yes",
		func(cmd *cobra.Command, args []string) error {
			agent, err := oneAgent(args)
			if err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				var done operate.Forgotten
				dry = dry || !yes
				if dry {
					done, err = s.CountForget(cmd.Context(), agent)
				} else {
					done, err = s.Forget(cmd.Context(), agent, nil)
				}
				if err != nil {
					return err
				}
				answer := operation.Forgotten{Forgotten: done, Agent: agent, Dry: dry}
				return o.Print(answer, func(w *table.Page) { w.Line("%s", forgottenText(agent, &done, dry)) })
			})
		})
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().BoolVar(&dry, "dry-run", false, "count what would be deleted, and delete nothing")
	cmd.Flags().BoolVar(&yes, "yes", false, "delete it; without it tasks are counted first")
	return o.WithJSON(cmd)
}

// forgottenText says which data of an agent was deleted, or would be.
func forgottenText(agent string, done *operate.Forgotten, dry bool) string {
	what := table.Count(done.Live, "live task") + ", " + table.Count(done.Finished, "finished task")
	if done.Profile {
		what += ", its profile"
	}
	if dry {
		return "would delete of agent " + agent + ": " + what + "; add --yes to do it"
	}
	return "deleted of agent " + agent + ": " + what
}
