package cli

// The commands context list, use, set, show and delete.

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/contexts"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// contextCommand is the parent of its commands, and does nothing by itself.
func contextCommand(o *command.Options) *cobra.Command {
	cmd := command.New("context", "Keep servers and stores by names, and choose one of them",
		"  duly context set prod --server https://duly.example --token-env PROD_TOKEN\n  duly context set here --redis redis://127.0.0.1:6379/0\n  duly context use prod\n  duly context show",
		func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return help.NoSub(cmd, args[0], "use list, use, set, show or delete")
		})
	cmd.Args = cobra.ArbitraryArgs // so that the command itself can say which it knows
	cmd.AddCommand(contextListCommand(o), contextUseCommand(o), contextSetCommand(o), contextShowCommand(o), contextDeleteCommand(o))
	return cmd
}

// loadContexts reads the file, and warns if others could read a token in it.
func loadContexts(o *command.Options) (*contexts.File, error) {
	f, err := contexts.Load()
	if err != nil {
		return nil, command.OrUsage(err, nil)
	}
	if f.Open() {
		o.Say("warning: other users can read the secrets in " + table.Plain(f.Where()) + "; chmod 600 it")
	}
	return f, nil
}

// shownContext is a context as commands print it: without its secrets.
type shownContext struct {
	Name     string `json:"name,omitempty"`
	Current  bool   `json:"current"`
	Server   string `json:"server,omitempty"`
	Redis    string `json:"redis,omitempty"`
	Store    string `json:"store,omitempty"`
	Prefix   string `json:"prefix,omitempty"`
	Token    string `json:"token_from,omitempty"` // where it is stored, never its value
	Insecure bool   `json:"insecure_http,omitempty"`
}

// shown is a context of a file.
func shown(f *contexts.File, name string) shownContext {
	c := f.Contexts[name]
	s := shownContext{Name: name, Current: name == f.Current, Server: c.Server, Prefix: c.Prefix, Insecure: c.InsecureHTTP}
	if c.Redis != "" {
		s.Redis = command.WithoutPassword(c.Redis)
	}
	switch {
	case c.TokenEnv != "":
		s.Token = "$" + c.TokenEnv
	case c.TokenFile != "":
		s.Token = c.TokenFile
	case c.Token != "":
		s.Token = "the file of contexts"
	}
	return s
}

func contextListCommand(o *command.Options) *cobra.Command {
	return o.WithJSON(command.New("list", "List the contexts; the current one has a star", "  duly context list",
		func(*cobra.Command, []string) error {
			f, err := loadContexts(o)
			if err != nil {
				return err
			}
			all := []shownContext{}
			for _, name := range f.Names() {
				all = append(all, shown(f, name))
			}
			return o.Print(map[string][]shownContext{"contexts": all}, func(w *table.Page) { printContexts(w, all) })
		}))
}

func printContexts(w *table.Page, all []shownContext) {
	if len(all) == 0 {
		w.Line("no contexts: make one with duly context set NAME --server URL")
		return
	}
	t := table.New(w, "", "NAME", "SERVER OR REDIS", "PREFIX", "TOKEN FROM")
	for i := range all {
		c := &all[i]
		star := " "
		if c.Current {
			star = "*"
		}
		t.Row(star, c.Name, cmp.Or(c.Server, c.Redis), cmp.Or(c.Prefix, "-"), cmp.Or(c.Token, "-"))
	}
	t.End()
}

func contextUseCommand(o *command.Options) *cobra.Command {
	cmd := command.New("use NAME", "Make a context the current one", "  duly context use prod",
		func(_ *cobra.Command, args []string) error {
			return changeContext(o, args, func(f *contexts.File, name string) error {
				if f.Contexts[name] == nil {
					return command.NoContext(f, name)
				}
				f.Current = name
				return nil
			}, "current context")
		})
	cmd.Args = cobra.ArbitraryArgs
	return o.WithJSON(cmd)
}

func contextDeleteCommand(o *command.Options) *cobra.Command {
	cmd := command.New("delete NAME", "Delete a context; what it names stays", "  duly context delete prod",
		func(_ *cobra.Command, args []string) error {
			return changeContext(o, args, func(f *contexts.File, name string) error {
				if f.Contexts[name] == nil {
					return command.NoContext(f, name)
				}
				if delete(f.Contexts, name); f.Current == name {
					f.Current = ""
				}
				return nil
			}, "deleted: context")
		})
	cmd.Args = cobra.ArbitraryArgs
	return o.WithJSON(cmd)
}

// changeContext changes the file by one context, and says so.
func changeContext(o *command.Options, args []string, change func(f *contexts.File, name string) error, said string) error {
	if len(args) != 1 || args[0] == "" {
		return exit.Misuse("name it as NAME", "expected the name of one context")
	}
	name := args[0]
	f, err := loadContexts(o)
	if err != nil {
		return err
	}
	if err := change(f, name); err != nil {
		return err
	}
	if err := f.Save(); err != nil {
		return &exit.Failure{Why: fmt.Errorf("cannot write %s: %w", f.Where(), err), Todo: "set $" + contexts.EnvPath + " to a file that can be written", Code: exit.Failed}
	}
	answer := struct {
		Name    string `json:"name"`
		Current string `json:"current"`
	}{name, f.Current}
	return o.Print(answer, func(w *table.Page) { w.Line("%s %s", said, table.ShellWord(name)) })
}

// contextSetCommand takes its values from the flags that all commands have. It does not verify them: the server may be unreachable.
func contextSetCommand(o *command.Options) *cobra.Command {
	var c contexts.Context
	cmd := command.New("set NAME", "Create a context, or replace it as a whole",
		`  duly context set prod --server https://duly.example --token-env PROD_TOKEN
  duly context set prod --server https://duly.example --token-file ~/.config/duly/prod.token
  duly context set prod --server https://duly.example --token -      # reads it from standard input
  duly context set here --redis redis://127.0.0.1:6379/0 --prefix test:`,
		func(_ *cobra.Command, args []string) error {
			c.Server, c.Redis, c.Prefix = o.Server.URL, o.Redis.URL, o.Redis.Prefix
			c.Token, c.InsecureHTTP = o.Server.Token, o.Server.InsecureHTTP
			if err := checkContext(o, &c); err != nil {
				return err
			}
			return changeContext(o, args, func(f *contexts.File, name string) error {
				f.Set(name, &c)
				if f.Current == "" && len(f.Contexts) == 1 {
					f.Current = name // the only context is meant to be used
				}
				return nil
			}, "set: context")
		})
	cmd.Args = cobra.ArbitraryArgs
	flags := cmd.Flags()
	flags.StringVar(&c.TokenEnv, "token-env", "", "the variable that has the token when it is needed")
	flags.StringVar(&c.TokenFile, "token-file", "", "the file that has the token when it is needed")
	return o.WithJSON(cmd)
}

// checkContext reads the token if it comes from standard input, and refuses what could not be used.
func checkContext(o *command.Options, c *contexts.Context) error {
	if o.Context != "" || o.File != "" {
		return exit.Misuse("name the context as NAME, and its server or Redis with --server or --redis", "--context and -c are not part of a context")
	}
	if c.Token == "-" {
		data, err := io.ReadAll(io.LimitReader(o.Stdin, 1<<16))
		if err != nil {
			return fmt.Errorf("read the token: %w", err)
		}
		if c.Token = strings.TrimSpace(string(data)); c.Token == "" {
			return exit.Misuse("send the token alone", "standard input has no token")
		}
	}
	if c.TokenFile != "" { // commands are run in other folders
		var err error
		if c.TokenFile, err = filepath.Abs(c.TokenFile); err != nil {
			return err
		}
	}
	if err := c.Check(); err != nil {
		return exit.Misuse("see duly context set --help", "the context %w", err)
	}
	if c.Server == "" {
		return nil
	}
	// The token may come later: it counts as one here, so that no context is made that cannot be used.
	token := c.Token
	if c.TokenEnv != "" || c.TokenFile != "" {
		token = "later"
	}
	_, err := command.AddressOf(&command.Place{Server: remote.Config{URL: c.Server, Token: token, InsecureHTTP: c.InsecureHTTP}, By: "--server", TokenBy: "--token"})
	return err
}

// contextShowCommand shows a context, or where commands work now, and what has said so.
func contextShowCommand(o *command.Options) *cobra.Command {
	cmd := command.New("show [NAME]", "Show where commands work now, and what says so; with a name, that context", "  duly context show\n  duly context show prod --json",
		func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return showContext(o, args[0])
			}
			if len(args) > 1 {
				return exit.Misuse("name one, or none", "expected at most one NAME, not %d arguments", len(args))
			}
			at, err := o.Place(cmd.Context())
			if err != nil {
				return err
			}
			s := shownContext{Server: at.Address(), Store: at.Store, Token: at.TokenBy, Insecure: at.Server.InsecureHTTP}
			if s.Server == "" {
				// The address was chosen, and not used: a mistake in it is for the command that does.
				c, err := command.LoadFile(cmd.Context(), o)
				if err != nil {
					return err
				}
				if s.Prefix = c.Redis.Prefix; c.Redis.URL != "" {
					s.Redis = command.WithoutPassword(c.Redis.URL)
				}
				s.Store = c.Store
			}
			answer := struct {
				shownContext

				By string `json:"by,omitempty"`
			}{s, at.By}
			return o.Print(answer, func(w *table.Page) { printPlace(w, &s, at.By) })
		})
	cmd.Args = cobra.ArbitraryArgs
	return o.WithJSON(cmd)
}

// showContext shows one of the file.
func showContext(o *command.Options, name string) error {
	f, err := loadContexts(o)
	if err != nil {
		return err
	}
	if f.Contexts[name] == nil {
		return command.NoContext(f, name)
	}
	s := shown(f, name)
	return o.Print(s, func(w *table.Page) {
		printPlace(w, &s, "")
		w.Line("current   %s", strconv.FormatBool(s.Current))
	})
}

// printPlace omits what a place does not have.
func printPlace(w *table.Page, s *shownContext, by string) {
	if s.Server == "" && s.Redis == "" && s.Store == "" {
		w.Line("no server and no Redis: pass --server, --redis or --store, or make a context with duly context set")
		return
	}
	for _, line := range [][2]string{{"server", s.Server}, {"redis", s.Redis}, {"store", s.Store}, {"prefix", s.Prefix}, {"token", s.Token}, {"named by", by}} {
		switch {
		case line[1] == "":
		case line[0] == "token":
			w.Line("%-9s from %s", line[0], line[1])
		default:
			w.Line("%-9s %s", line[0], line[1])
		}
	}
}
