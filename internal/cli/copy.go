package cli

// The command store copy: all that is still to be done goes to another store.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/folder"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/storage"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// copies are the commands that copy stores.
type copies struct {
	*command.Options
}

// storeCommand is the parent of its command, and does nothing by itself.
func storeCommand(o *command.Options) *cobra.Command {
	cmd := command.New("store", "Move tasks from one store to another", "  duly store copy --to redis://127.0.0.1:6379/0",
		func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return help.NoSub(cmd, args[0], "use copy")
		})
	cmd.Args = cobra.ArbitraryArgs
	cmd.AddCommand(copies{o}.command())
	return cmd
}

// copying is one copy under way. Its counters are those of the answer.
type copying struct {
	Agents  int   `json:"agents"`
	Tasks   int   `json:"tasks"` // live ones that were read
	New     int   `json:"new"`   // profiles, pauses of agents, and tasks
	Same    int   `json:"same"`
	Refused int   `json:"refused"`
	Rules   int   `json:"rules"` // limits, budgets, and pauses of more than an agent, that are new
	From    int64 `json:"from_live"`
	To      int64 `json:"to_live"`

	held     bool    // the target is paused as a whole
	errs     []error // of the first lines that were refused
	from, to *core.Scheduler
	names    [2]string
	progress func(agents int)
	mu       sync.Mutex
}

// command copies; the source is paused as a whole first, so that nothing runs in both.
func (p copies) command() *cobra.Command {
	var from, to string
	var yes bool
	cmd := command.New("copy", "Copy the live tasks, profiles, pauses, limits and budgets of a store to another one",
		`  duly store copy --to redis://127.0.0.1:6379/0
  duly store copy --from redis://127.0.0.1:6379/0 --to file:/var/lib/duly --yes`,
		func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return exit.Misuse("pass --to with file:FOLDER or the URL of a Redis", "where to is not said")
			}
			source, err := p.storeAt(cmd.Context(), from)
			if err != nil {
				return err
			}
			target, err := p.storeAt(cmd.Context(), to)
			if err != nil {
				return err
			}
			switch {
			case source.Redis.URL == target.Redis.URL && source.Store == target.Store:
				return exit.Misuse("name two", "--from and --to name the same store")
			case source.Redis.URL != "" && !yes:
				return exit.Misuse("stop every process of that store, then pass --yes", "what runs in it meanwhile would run in both")
			}
			return p.copy(cmd.Context(), source, target)
		})
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "the store to read: file:FOLDER or the URL of a Redis (default what other commands work on)")
	flags.StringVar(&to, "to", "", "the store to write, in the same form; what it has stays unchanged")
	flags.BoolVar(&yes, "yes", false, "every process of a Redis that is read is stopped")
	return command.OnlyHere(p.WithJSON(cmd), "it opens both stores itself", "stop the daemon, and run it where both can be reached")
}

// storeAt is a file of settings about a store: a folder, a Redis, or what is configured.
func (p copies) storeAt(ctx context.Context, name string) (*dulyfile.File, error) {
	c, err := command.LoadFile(ctx, p.Options)
	if err != nil {
		return nil, err
	}
	switch {
	case name == "" && c.Redis.URL != "":
		return c, nil
	case name == "" || strings.HasPrefix(name, folder.Scheme):
		if name != "" {
			c.Store = name
		}
		dir, err := folder.Dir(c.Store)
		if err != nil {
			return nil, command.NotStore(err, "")
		}
		c.Redis.URL, c.Store = "", folder.Scheme+dir
	default:
		c.Redis.URL, c.Store, c.Fsync = name, "", 0
	}
	c.Alarm = nil // both are at rest
	return c, nil
}

// copy opens both stores and prints what was copied. It may be repeated: what is there already stays as it is.
func (p copies) copy(ctx context.Context, source, target *dulyfile.File) error {
	from, fromStore, err := storage.OpenScheduler(ctx, source)
	if err != nil {
		return err
	}
	defer fromStore.End(ctx)
	to, toStore, err := storage.OpenScheduler(ctx, target)
	if err != nil {
		return err
	}
	defer toStore.End(ctx)
	c := &copying{from: from, to: to, names: [2]string{fromStore.Name, toStore.Name}}
	if table.Terminal(p.Stderr) {
		c.progress = func(agents int) { _, _ = fmt.Fprintf(p.Stderr, "\r%d agents copied", agents) }
	}
	err = c.all(ctx)
	p.EndProgress()
	if err != nil {
		return &exit.Failure{
			Why: fmt.Errorf("not everything was copied: %w", err), Code: exit.Failed,
			Todo: "copy again to go on; " + c.names[0] + " stays paused until duly resume --all",
		}
	}
	if err := p.Print(c, c.page); err != nil {
		return err
	}
	if c.Refused > 0 {
		return &exit.Failure{Why: fmt.Errorf("%s refused", table.Count(c.Refused, "line")), Todo: "see above; what was copied stays", Code: exit.Failed}
	}
	return nil
}

// page is what was copied, for people.
func (c *copying) page(w *table.Page) {
	w.Line("%s and %s of %s: %d new, %d same, %d refused", table.Count(c.Agents, "agent"), table.Count(c.Tasks, "live task"), c.names[0], c.New, c.Same, c.Refused)
	w.Line("limits, budgets and pauses of more than an agent: %d new", c.Rules)
	w.Line("%s has %s now; %s has %d, and is paused as a whole", c.names[1], table.Count(int(c.To), "live task"), c.names[0], c.From)
	if c.held {
		w.Line("%s is paused as a whole, too: duly resume --all there has its tasks run", c.names[1])
	}
	w.Line("not copied: finished tasks, what they have still to deliver, and activity tasks that rest")
	for _, err := range c.errs {
		w.Line("%s", err.Error())
	}
}

// copiers is how many agents are copied at once.
const copiers = 8

// all copies everything, rules first: nothing starts in the other store without its limits.
func (c *copying) all(ctx context.Context) error {
	if err := c.from.Pause(ctx, core.Target{}, core.Pause{Reason: c.reason()}); err != nil {
		return err
	}
	if err := errors.Join(c.limits(ctx), c.budgets(ctx), c.pauses(ctx)); err != nil {
		return err
	}
	agents := make(chan string)
	failed := make(chan error, copiers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var working sync.WaitGroup
	for range copiers {
		working.Go(func() {
			for agent := range agents {
				if err := c.agent(ctx, agent); err != nil {
					failed <- err
					cancel()
					return
				}
			}
		})
	}
	err := c.each(ctx, func(agent string) error {
		select {
		case agents <- agent:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	close(agents)
	working.Wait()
	close(failed)
	for one := range failed {
		return one // the others have ended because of it
	}
	if err != nil {
		return err
	}
	return c.live(ctx)
}

// reason is that of the pause of the source.
func (c *copying) reason() string { return "its tasks were copied to " + c.names[1] }

// live counts the live tasks of both stores.
func (c *copying) live(ctx context.Context) error {
	for _, side := range []struct {
		s    *core.Scheduler
		into *int64
	}{{c.from, &c.From}, {c.to, &c.To}} {
		stats, err := side.s.Stats(ctx)
		if err != nil {
			return err
		}
		*side.into = stats.Waiting + stats.InProgress + stats.Resting
	}
	return nil
}

// each calls do with the name of each agent that has live tasks, a profile or a pause.
func (c *copying) each(ctx context.Context, do func(agent string) error) error {
	seen := map[string]bool{}
	once := func(agent string) error {
		if agent == "" || seen[agent] {
			return nil
		}
		seen[agent] = true
		return do(agent)
	}
	if err := eachOf(func(cursor string) ([]model.AgentStats, string, error) {
		return c.from.Agents(ctx, inspect.MaxPage, cursor)
	},
		func(a *model.AgentStats) error { return once(a.Agent) }); err != nil {
		return err
	}
	if err := eachOf(func(cursor string) ([]core.Profile, string, error) {
		return c.from.Profiles(ctx, cursor, inspect.MaxPage)
	},
		func(p *core.Profile) error { return once(p.Agent) }); err != nil {
		return err
	}
	return c.paused(ctx, func(one *model.PauseInfo) error {
		if one.Target.ID == "" {
			return once(one.Target.Agent)
		}
		return nil
	})
}

// paused calls do with each pause of the source but that of the copy.
func (c *copying) paused(ctx context.Context, do func(one *model.PauseInfo) error) error {
	return eachPause(ctx, c.from, func(one *model.PauseInfo) error {
		if one.Target == (store.Target{}) && one.Reason == c.reason() {
			return nil
		}
		return do(one)
	})
}

// eachPause calls do with each pause of a store.
func eachPause(ctx context.Context, s *core.Scheduler, do func(one *model.PauseInfo) error) error {
	return eachOf(func(cursor string) ([]model.PauseInfo, string, error) { return s.Pauses(ctx, inspect.MaxPage, cursor) }, do)
}

// eachOf calls do with each item of all pages.
func eachOf[T any](read func(cursor string) ([]T, string, error), do func(one *T) error) error {
	for cursor := ""; ; {
		page, next, err := read(cursor)
		for i := range page {
			err = errors.Join(err, do(&page[i]))
		}
		if cursor = next; err != nil || cursor == "" {
			return err
		}
	}
}

// agent copies one agent.
func (c *copying) agent(ctx context.Context, agent string) error {
	var lines bytes.Buffer
	tasks, err := c.from.Export(ctx, agent, &lines)
	if core.CodeOf(err) == core.CodeNotFound {
		return nil // it has nothing but what is not copied
	}
	if err != nil {
		return err
	}
	c.read(tasks)
	for part := range inParts(lines.Bytes(), operate.MaxImport) {
		done, err := c.to.Import(ctx, agent, bytes.NewReader(part))
		c.stored(agent, &done)
		if err != nil {
			return err
		}
	}
	return nil
}

// inParts cuts lines into parts of at most so many.
func inParts(lines []byte, most int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(lines) > 0 {
			end, n := 0, 0
			for ; n < most && end < len(lines); n++ {
				end += bytes.IndexByte(lines[end:], '\n') + 1
			}
			if !yield(lines[:end]) {
				return
			}
			lines = lines[end:]
		}
	}
}

// read counts an agent that was read.
func (c *copying) read(tasks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Agents, c.Tasks = c.Agents+1, c.Tasks+tasks
	if c.progress != nil {
		c.progress(c.Agents)
	}
}

// stored counts what was stored of an agent.
func (c *copying) stored(agent string, done *operate.Imported) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.New, c.Same, c.Refused = c.New+done.New, c.Same+done.Same, c.Refused+done.Refused
	for i := range done.Errors {
		if len(c.errs) < operate.MaxImportErrors {
			c.errs = append(c.errs, fmt.Errorf("agent %s: %w", table.ShellWord(agent), &done.Errors[i]))
		}
	}
}

// limits, budgets and pauses copy what is about more than one agent, where the other store has no such rule.
func (c *copying) limits(ctx context.Context) error {
	all, err := c.from.Limits(ctx)
	if err != nil {
		return err
	}
	there, err := c.to.Limits(ctx)
	if err != nil {
		return err
	}
	have := map[core.LimitTarget]bool{}
	for i := range there {
		have[there[i].About] = true
	}
	for i := range all {
		if !have[all[i].About] {
			c.Rules++
			err = errors.Join(err, c.to.SetLimits(ctx, all[i].Limit))
		}
	}
	return err
}

func (c *copying) budgets(ctx context.Context) error {
	all, err := c.from.Budgets(ctx)
	if err != nil {
		return err
	}
	there, err := c.to.Budgets(ctx)
	if err != nil {
		return err
	}
	have := map[core.BudgetTarget]bool{}
	for i := range there {
		have[there[i].About] = true
	}
	for i := range all {
		if !have[all[i].About] {
			c.Rules++
			err = errors.Join(err, c.to.SetBudgets(ctx, all[i].Budget))
		}
	}
	return err
}

func (c *copying) pauses(ctx context.Context) error {
	have := map[store.Target]bool{}
	if err := eachPause(ctx, c.to, func(one *model.PauseInfo) error {
		have[one.Target] = true
		return nil
	}); err != nil {
		return err
	}
	c.held = have[store.Target{}]
	return c.paused(ctx, func(one *model.PauseInfo) error {
		if one.Target.Agent != "" || have[one.Target] {
			return nil // it goes along with its agent
		}
		c.Rules++
		return c.to.Pause(ctx, one.Target, core.Pause{Reason: one.Reason, By: one.By, Until: one.Until, Ahead: true})
	})
}
