package command

// Where a command works: on a server, or on a Redis, as flags, the environment, the file and contexts say.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/cli/catalogue"
	"github.com/seed-6f6f2c11/duly/internal/cli/contexts"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/folder"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// EnvServer is the variable of --server.
const EnvServer = "DULY_SERVER"

// TokenEnv holds the tokens of the API, separated by commas, unless the file names another variable.
// Several at once let a token be replaced without a moment in which neither
// the old nor the new one is accepted.
const TokenEnv = "DULY_TOKEN"

// DefaultAddress is where duly serve listens by default.
const DefaultAddress = "127.0.0.1:8080"

// DefaultServer is where duly daemon --http and duly serve listen by default.
// An API on another machine or port needs --server.
const DefaultServer = "http://" + DefaultAddress

// Place is where a command works.
type Place struct {
	Server remote.Config // its URL is empty on a Redis
	// redis and prefix are those of a context; else the file, the environment and the flags have them.
	redis, prefix string
	// store is a folder, or memory, if neither a server nor a Redis is named.
	Store string

	By      string // what has named it, for people
	TokenBy string // what has the token
}

// Address is that of its server, for people; empty if there is none.
func (p *Place) Address() string {
	if p.Server.Socket != "" {
		return "the daemon at " + p.Server.Socket
	}
	return p.Server.URL
}

// Place finds out where the command works. What is nearer to the command counts: a flag before the environment, that before the file of -c, and
// that before the current context.
func (o *Options) Place(ctx context.Context) (Place, error) {
	// They are all about one place, and would have to agree.
	if err := o.onePlace(); err != nil {
		return Place{}, err
	}
	switch {
	case o.Server.URL != "":
		return o.atServer(o.Server.URL, "--server"), nil
	case o.Redis.URL != "":
		return Place{By: "--redis"}, o.noToken()
	case o.Store != "":
		return o.atStore(ctx, o.Store, "--store")
	case o.Context != "":
		return o.atContext(o.Context, "--context")
	case strings.TrimSpace(os.Getenv(EnvServer)) != "" && !o.Here:
		return o.atServer(strings.TrimSpace(os.Getenv(EnvServer)), "$"+EnvServer), nil
	case os.Getenv(redisstore.EnvURL) != "":
		return Place{By: "$" + redisstore.EnvURL}, o.noToken()
	case os.Getenv(folder.Env) != "":
		return o.atStore(ctx, os.Getenv(folder.Env), "$"+folder.Env)
	}
	if o.File != "" {
		switch c, err := o.parseFile(ctx); {
		case err != nil || c.Redis.URL != "":
			return Place{By: o.File}, err
		case c.Store != "":
			return o.atStore(ctx, c.Store, o.File)
		}
	}
	at, err := o.atCurrent()
	if err != nil || at.By != "" {
		return at, err
	}
	if _, err := folder.Dir(""); err != nil { // it is an error for a command that needs it
		return at, nil //nolint:nilerr // see above
	}
	return o.atStore(ctx, "", "")
}

// atStore is a store without a Redis. A folder that a daemon has open is reached through that daemon.
func (o *Options) atStore(ctx context.Context, store, by string) (Place, error) {
	if store == folder.Memory {
		return Place{Store: store, By: by}, o.noToken()
	}
	dir, err := folder.Dir(store)
	if err != nil {
		return Place{}, NotStore(err, by)
	}
	p := Place{Store: folder.Scheme + dir, By: by}
	if !o.Here && folder.Answers(ctx, dir) {
		p.Server = remote.OnSocket(folder.Socket(dir))
	}
	return p, o.noToken()
}

// NotStore is the failure for what names no folder, by what has named it.
func NotStore(err error, by string) error {
	if wrong, ok := errors.AsType[*core.ConfigError](err); ok && by != "" {
		err = fmt.Errorf("%s %s", by, wrong.Reason)
	}
	return exit.Misuse("use one such as --store file:/var/lib/duly", "%w", err)
}

// onePlace refuses flags that name several places.
func (o *Options) onePlace() error {
	var named []string
	for _, f := range [][2]string{{"--server", o.Server.URL}, {"--redis", o.Redis.URL}, {"--store", o.Store}, {"--context", o.Context}} {
		if f[1] != "" {
			named = append(named, f[0])
		}
	}
	switch {
	case len(named) > 1:
		return exit.Misuse("use one of them", "%s name a place each", strings.Join(named, " and "))
	case o.Server.URL != "" && o.Redis.Prefix != "":
		return exit.Misuse("leave it out", "--prefix is for a Redis, and the server has its own")
	case o.Server.URL != "" && o.File != "":
		return exit.Misuse("leave out one of them", "--server and -c exclude each other: the server has a file of its own")
	}
	return nil
}

// atServer is a server that a flag or the environment names.
func (o *Options) atServer(address, by string) Place {
	p := Place{Server: o.Server, By: by}
	p.Server.URL = address
	p.UseToken(o)
	return p
}

// UseToken takes the token of the flag, else the one of the environment.
func (p *Place) UseToken(o *Options) {
	if p.Server.Token = o.Server.Token; p.Server.Token != "" {
		p.TokenBy = "--token"
		return
	}
	// A server takes several tokens, of which the first is enough.
	token, _, _ := strings.Cut(os.Getenv(TokenEnv), ",")
	if p.Server.Token = strings.TrimSpace(token); p.Server.Token != "" {
		p.TokenBy = "$" + TokenEnv
	}
}

// noToken refuses a token that would be sent nowhere.
func (o *Options) noToken() error {
	if o.Server.Token != "" {
		return exit.Misuse("name a server with --server or --context, or leave it out", "--token is for a server, and none is named")
	}
	return nil
}

// atCurrent is the current context, if there is one. A command that runs tasks in this process takes it from the command line only: a user
// who looks at a remote store must not run its tasks here by accident.
func (o *Options) atCurrent() (Place, error) {
	if o.Here {
		return Place{}, nil
	}
	f, err := contexts.Load()
	if err != nil || f.Current == "" { // without a file for contexts there is none
		if _, no := contexts.Path(); no != nil {
			err = nil
		}
		return Place{}, OrUsage(err, o.noToken())
	}
	return o.atContext(f.Current, "the current context")
}

// OrUsage is the first of two errors, as one of the user's.
func OrUsage(err, other error) error {
	if err != nil {
		return exit.Misuse("see duly context --help", "%w", err)
	}
	return other
}

// atContext is a context. Its own token wins over $DULY_TOKEN, which may be for another server.
func (o *Options) atContext(name, by string) (Place, error) {
	f, err := contexts.Load()
	if err != nil {
		return Place{}, OrUsage(err, nil)
	}
	c := f.Contexts[name]
	if c == nil {
		return Place{}, NoContext(f, name)
	}
	p := Place{redis: c.Redis, prefix: c.Prefix, By: fmt.Sprintf("%s %s", by, name)}
	if c.Server == "" {
		return p, o.noToken()
	}
	p.Server = remote.Config{URL: c.Server, InsecureHTTP: c.InsecureHTTP || o.Server.InsecureHTTP}
	own, from, err := c.Secret()
	switch {
	case o.Server.Token != "" || own == "" && err == nil:
		p.UseToken(o)
	case err != nil:
		return Place{}, exit.Misuse("set it, or pass --token", "context %s %w", table.ShellWord(name), err)
	default:
		p.Server.Token, p.TokenBy = own, from
	}
	return p, nil
}

// NoContext says which contexts exist.
func NoContext(f *contexts.File, name string) error {
	todo := "make it with duly context set " + table.ShellWord(name) + " --server URL"
	if near := help.Nearest(name, f.Names()); near != "" {
		todo = "did you mean " + table.ShellWord(near) + "? duly context list shows all"
	}
	failed := exit.Misuse(todo, "context %q does not exist", name)
	failed.Code = exit.NotFound
	return failed
}

// hasHere marks a command that works on Redis itself, or in this process, with the reason why a server cannot do it.
const hasHere = catalogue.Here

// OnlyHere marks a command so. todo is what to do in place of naming a server.
func OnlyHere(cmd *cobra.Command, why, todo string) *cobra.Command {
	cmd.Long = cmp.Or(cmd.Long, cmd.Short+".") + "\n\nNot with --server, as " + why + ": " + todo + "."
	cmd.Annotations = map[string]string{hasHere: why, hasHere + "_todo": todo}
	return cmd
}

// CheckHere refuses a server for a command that works without one.
func (o *Options) CheckHere(cmd *cobra.Command) error {
	why, here := cmd.Annotations[hasHere]
	if o.Here = here; !here {
		return nil
	}
	named := ""
	if o.Server.URL != "" {
		named = "--server"
	} else if o.Context != "" {
		p, err := o.Place(cmd.Context())
		if err != nil {
			return explain(cmd, err)
		}
		if p.Server.URL != "" {
			named = "--context " + table.ShellWord(o.Context)
		}
	}
	if named == "" {
		return nil
	}
	return explain(cmd, exit.Misuse(cmd.Annotations[hasHere+"_todo"], "%s cannot be used here: %s", named, why))
}

// WithoutPassword is an address as it may be shown.
func WithoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(an address that cannot be read)"
	}
	return u.Redacted()
}
