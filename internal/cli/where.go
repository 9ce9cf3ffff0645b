package cli

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

// envServer is the variable of --server.
const envServer = "DULY_SERVER"

// tokenEnv holds the tokens of the API, separated by commas, unless the file names another variable.
// Several at once let a token be replaced without a moment in which neither
// the old nor the new one is accepted.
const tokenEnv = "DULY_TOKEN"

// defaultAddress is where duly serve listens by default.
const defaultAddress = "127.0.0.1:8080"

// defaultServer is where duly daemon --http and duly serve listen by default.
// An API on another machine or port needs --server.
const defaultServer = "http://" + defaultAddress

// place is where a command works.
type place struct {
	server remote.Config // its URL is empty on a Redis
	// redis and prefix are those of a context; else the file, the environment and the flags have them.
	redis, prefix string
	// store is a folder, or memory, if neither a server nor a Redis is named.
	store string

	by      string // what has named it, for people
	tokenBy string // what has the token
}

// address is that of its server, for people; empty if there is none.
func (p *place) address() string {
	if p.server.Socket != "" {
		return "the daemon at " + p.server.Socket
	}
	return p.server.URL
}

// place finds out where the command works. What is nearer to the command counts: a flag before the environment, that before the file of -c, and
// that before the current context.
func (o *options) place(ctx context.Context) (place, error) {
	// They are all about one place, and would have to agree.
	if err := o.onePlace(); err != nil {
		return place{}, err
	}
	switch {
	case o.server.URL != "":
		return o.atServer(o.server.URL, "--server"), nil
	case o.redis.URL != "":
		return place{by: "--redis"}, o.noToken()
	case o.store != "":
		return o.atStore(ctx, o.store, "--store")
	case o.context != "":
		return o.atContext(o.context, "--context")
	case strings.TrimSpace(os.Getenv(envServer)) != "" && !o.here:
		return o.atServer(strings.TrimSpace(os.Getenv(envServer)), "$"+envServer), nil
	case os.Getenv(redisstore.EnvURL) != "":
		return place{by: "$" + redisstore.EnvURL}, o.noToken()
	case os.Getenv(folder.Env) != "":
		return o.atStore(ctx, os.Getenv(folder.Env), "$"+folder.Env)
	}
	if o.file != "" {
		switch c, err := o.parseFile(ctx); {
		case err != nil || c.Redis.URL != "":
			return place{by: o.file}, err
		case c.Store != "":
			return o.atStore(ctx, c.Store, o.file)
		}
	}
	at, err := o.atCurrent()
	if err != nil || at.by != "" {
		return at, err
	}
	if _, err := folder.Dir(""); err != nil { // it is an error for a command that needs it
		return at, nil //nolint:nilerr // see above
	}
	return o.atStore(ctx, "", "")
}

// atStore is a store without a Redis. A folder that a daemon has open is reached through that daemon.
func (o *options) atStore(ctx context.Context, store, by string) (place, error) {
	if store == folder.Memory {
		return place{store: store, by: by}, o.noToken()
	}
	dir, err := folder.Dir(store)
	if err != nil {
		return place{}, notStore(err, by)
	}
	p := place{store: folder.Scheme + dir, by: by}
	if !o.here && folder.Answers(ctx, dir) {
		p.server = remote.OnSocket(folder.Socket(dir))
	}
	return p, o.noToken()
}

// notStore is the failure for what names no folder, by what has named it.
func notStore(err error, by string) error {
	if wrong, ok := errors.AsType[*core.ConfigError](err); ok && by != "" {
		err = fmt.Errorf("%s %s", by, wrong.Reason)
	}
	return exit.Misuse("use one such as --store file:/var/lib/duly", "%w", err)
}

// onePlace refuses flags that name several places.
func (o *options) onePlace() error {
	var named []string
	for _, f := range [][2]string{{"--server", o.server.URL}, {"--redis", o.redis.URL}, {"--store", o.store}, {"--context", o.context}} {
		if f[1] != "" {
			named = append(named, f[0])
		}
	}
	switch {
	case len(named) > 1:
		return exit.Misuse("use one of them", "%s name a place each", strings.Join(named, " and "))
	case o.server.URL != "" && o.redis.Prefix != "":
		return exit.Misuse("leave it out", "--prefix is for a Redis, and the server has its own")
	case o.server.URL != "" && o.file != "":
		return exit.Misuse("leave out one of them", "--server and -c exclude each other: the server has a file of its own")
	}
	return nil
}

// atServer is a server that a flag or the environment names.
func (o *options) atServer(address, by string) place {
	p := place{server: o.server, by: by}
	p.server.URL = address
	p.useToken(o)
	return p
}

// useToken takes the token of the flag, else the one of the environment.
func (p *place) useToken(o *options) {
	if p.server.Token = o.server.Token; p.server.Token != "" {
		p.tokenBy = "--token"
		return
	}
	// A server takes several tokens, of which the first is enough.
	token, _, _ := strings.Cut(os.Getenv(tokenEnv), ",")
	if p.server.Token = strings.TrimSpace(token); p.server.Token != "" {
		p.tokenBy = "$" + tokenEnv
	}
}

// noToken refuses a token that would be sent nowhere.
func (o *options) noToken() error {
	if o.server.Token != "" {
		return exit.Misuse("name a server with --server or --context, or leave it out", "--token is for a server, and none is named")
	}
	return nil
}

// atCurrent is the current context, if there is one. A command that runs tasks in this process takes it from the command line only: a user
// who looks at a remote store must not run its tasks here by accident.
func (o *options) atCurrent() (place, error) {
	if o.here {
		return place{}, nil
	}
	f, err := contexts.Load()
	if err != nil || f.Current == "" { // without a file for contexts there is none
		if _, no := contexts.Path(); no != nil {
			err = nil
		}
		return place{}, orUsage(err, o.noToken())
	}
	return o.atContext(f.Current, "the current context")
}

// orUsage is the first of two errors, as one of the user's.
func orUsage(err, other error) error {
	if err != nil {
		return exit.Misuse("see duly context --help", "%w", err)
	}
	return other
}

// atContext is a context. Its own token wins over $DULY_TOKEN, which may be for another server.
func (o *options) atContext(name, by string) (place, error) {
	f, err := contexts.Load()
	if err != nil {
		return place{}, orUsage(err, nil)
	}
	c := f.Contexts[name]
	if c == nil {
		return place{}, noContext(f, name)
	}
	p := place{redis: c.Redis, prefix: c.Prefix, by: fmt.Sprintf("%s %s", by, name)}
	if c.Server == "" {
		return p, o.noToken()
	}
	p.server = remote.Config{URL: c.Server, InsecureHTTP: c.InsecureHTTP || o.server.InsecureHTTP}
	own, from, err := c.Secret()
	switch {
	case o.server.Token != "" || own == "" && err == nil:
		p.useToken(o)
	case err != nil:
		return place{}, exit.Misuse("set it, or pass --token", "context %s %w", table.ShellWord(name), err)
	default:
		p.server.Token, p.tokenBy = own, from
	}
	return p, nil
}

// noContext says which contexts exist.
func noContext(f *contexts.File, name string) error {
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

// onlyHere marks a command so. todo is what to do in place of naming a server.
func onlyHere(cmd *cobra.Command, why, todo string) *cobra.Command {
	cmd.Long = cmp.Or(cmd.Long, cmd.Short+".") + "\n\nNot with --server, as " + why + ": " + todo + "."
	cmd.Annotations = map[string]string{hasHere: why, hasHere + "_todo": todo}
	return cmd
}

// checkHere refuses a server for a command that works without one.
func (o *options) checkHere(cmd *cobra.Command) error {
	why, here := cmd.Annotations[hasHere]
	if o.here = here; !here {
		return nil
	}
	named := ""
	if o.server.URL != "" {
		named = "--server"
	} else if o.context != "" {
		p, err := o.place(cmd.Context())
		if err != nil {
			return explain(cmd, err)
		}
		if p.server.URL != "" {
			named = "--context " + table.ShellWord(o.context)
		}
	}
	if named == "" {
		return nil
	}
	return explain(cmd, exit.Misuse(cmd.Annotations[hasHere+"_todo"], "%s cannot be used here: %s", named, why))
}

// withoutPassword is an address as it may be shown.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(an address that cannot be read)"
	}
	return u.Redacted()
}
