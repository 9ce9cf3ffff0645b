package cli

// The store that commands work on.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/filestore"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/output"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/folder"
	"github.com/seed-6f6f2c11/duly/internal/cli/linelog"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// reachIn is how long Redis has to answer at the start.
// It covers connecting and the checks of redisstore.Open. A command
// should fail while its user still looks.
const reachIn = 4 * time.Second

// storage is a store that is open.
// All stores have all six interfaces; a scheduler gets each where it needs it.
type storage struct {
	core.Store
	store.Waker
	store.Presence
	store.Recent
	store.Feed
	output.Keeper

	name  string // for people, without a password
	close func() error
	// upgrade takes the store to the newest layout; nil for one in memory.
	upgrade func(ctx context.Context) (from, to int, err error)
	// masters is how many masters of a cluster share the tasks, zero on a single server; nil for a store in memory.
	masters func(ctx context.Context) (int, error)
	redis   *redisstore.Store         // nil for a store without one
	folder  string                    // of a store in a folder; empty for any other
	flush   func(ctx context.Context) // hands over the last events to those who listen
}

// end closes the store. An error means nothing any more: each write was
// acknowledged when its call returned.
func (s *storage) end(ctx context.Context) {
	if s.flush != nil {
		s.flush(context.WithoutCancel(ctx)) // which bounds it by itself
	}
	_ = s.close()
}

// sayLimits says what a user of a store without a Redis has to know, once and plainly: a user who expects tasks to survive would lose them without having been warned, and
// one who looks for them has to know where.
func sayLimits(o *options, s *storage) {
	switch {
	case s.folder != "":
		o.say("tasks are kept in " + table.ShellWord(s.folder) + ", for this process alone; duly store copy moves them to a Redis, which any number of processes share")
	case s.redis == nil:
		o.say("tasks are kept in memory and are lost when this process ends; leave out --store to keep them")
	}
}

// with makes the settings of a scheduler on the store those of a process that others can ask about.
// Each process announces itself through the store it works on.
func (s *storage) with(c core.Config) core.Config {
	c.Presence, c.Recent, c.Feed = s.Presence, s.Recent, s.Feed
	if s.redis != nil {
		c.Servers = s.redis
	}
	return c
}

// openStore opens the Redis that is configured, or a folder if there is none, or a store in memory if that is wanted.
// Without a Redis a store gets the same limits as a Redis would, so that a file behaves alike on all.
func openStore(ctx context.Context, c *dulyfile.File, logger *slog.Logger) (*storage, error) {
	if c.Redis.URL == "" && c.Store != folder.Memory {
		return openFolder(ctx, c, logger)
	}
	if c.Redis.URL == "" {
		// One partition, as a single Redis has: limits need it.
		s := memstore.New(memstore.Config{
			Partitions: cmp.Or(c.Redis.Partitions, 1), Retention: c.Redis.Retention, Kept: c.Redis.Kept, KeptBytes: c.Redis.KeptBytes,
			MaxTasks: c.Redis.MaxTasks, MaxBytes: c.Redis.MaxBytes,
		})
		return &storage{Store: s, Waker: s, Presence: s, Recent: s, Feed: s, Keeper: s, name: "memory", close: func() error { return nil }}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachIn)
	defer cancel()
	settings := c.Redis
	settings.Logger = logger
	s, err := redisstore.Open(ctx, settings)
	if err != nil {
		return nil, storeFailure(err)
	}
	return &storage{Store: s, Waker: s, Presence: s, Recent: s, Feed: s, Keeper: s, name: s.Name(), close: s.Close, upgrade: s.Upgrade, masters: s.Masters, redis: s}, nil
}

// openFolder opens a store in a folder. One that another command has open is free again in a moment.
func openFolder(ctx context.Context, c *dulyfile.File, logger *slog.Logger) (*storage, error) {
	dir, err := folder.Dir(c.Store)
	if err != nil {
		return nil, exit.Misuse("pass --store file:FOLDER, --redis URL, or the --server of a running duly daemon", "%w", err)
	}
	config := filestore.Config{
		Dir: dir, SyncEvery: c.Fsync, Logger: cmp.Or(logger, slog.New(linelog.New(os.Stderr))),
		Partitions: c.Redis.Partitions, Retention: c.Redis.Retention, Kept: c.Redis.Kept, KeptBytes: c.Redis.KeptBytes,
		MaxTasks: c.Redis.MaxTasks, MaxBytes: c.Redis.MaxBytes,
	}
	if c.Redis.Remember { // a short command: who only looks should not have to write 16 MB first
		config.Reserve = 1 << 16
	}
	ctx, cancel := context.WithTimeout(ctx, reachIn)
	defer cancel()
	for {
		s, err := filestore.Open(config) //nolint:contextcheck // files are opened without one
		if err == nil {
			return &storage{Store: s, Waker: s, Presence: s, Recent: s, Feed: s, Keeper: s, name: dir, close: s.Close, folder: dir}, nil
		}
		inUse, busy := errors.AsType[*filestore.InUseError](err)
		if !busy {
			return nil, &exit.Failure{Why: err, Todo: "name another folder with --store, or a Redis with --redis", Code: exit.Failed}
		}
		// A daemon keeps it.
		if ctx.Err() != nil || folder.Answers(ctx, dir) {
			return nil, &exit.Failure{Why: inUse, Todo: "stop that, or name another folder with --store; a folder is for one process, and a Redis for any number", Code: exit.Failed}
		}
		select {
		case <-time.After(inUseEvery):
		case <-ctx.Done():
		}
	}
}

// inUseEvery is how often is tried whether a folder is free.
const inUseEvery = 20 * time.Millisecond

// storeFailure is the failure for a Redis whose configuration makes it unusable.
func storeFailure(err error) *exit.Failure {
	f := &exit.Failure{Why: err}
	// A mistake in a setting is the user's to mend; one of the server is not a matter of usage.
	if wrong, ok := errors.AsType[*core.ConfigError](err); ok { // a setting, not the server
		// The user has set a flag, a variable or a key of the file, not a field of Go.
		setting := cmp.Or(redisSettings[wrong.Field], wrong.Field)
		f.Code, f.Why, f.Todo = exit.Usage, &core.ConfigError{Field: setting, Reason: wrong.Reason}, "see duly --help"
	}
	if errors.As(err, new(*redisstore.UnreachableError)) {
		f.Todo = "start it, or name another with --redis"
	}
	return f
}

// redisSettings are what a user sets, by the field of a redisstore.Config.
// What is missing is named as the field is.
var redisSettings = map[string]string{
	"URL": "the URL of Redis", "Prefix": "--prefix", "CAFile": "--redis-ca", "CertFile": "--redis-cert", "KeyFile": "--redis-key",
	"To": "--to",
}

// needStore fails for a command that makes no sense on a store that ends with it.
// Such a command would succeed and have no effect, which is worse than an error.
func needStore(c *dulyfile.File) error {
	if c.Redis.URL != "" || c.Store != folder.Memory {
		return nil
	}
	return exit.Misuse("pass --redis URL or --store file:FOLDER, or name a running duly daemon with --server",
		"tasks in memory would be lost when this command ends")
}

// needRedis fails for a command that is about a Redis alone.
func needRedis(c *dulyfile.File) error {
	if c.Redis.URL != "" {
		return nil
	}
	return exit.Misuse("pass --redis URL, or set $"+redisstore.EnvURL, "no Redis is configured, and this is about one")
}

// addressOf is the address of a server, if a token may be sent there.
func addressOf(at *place) (*url.URL, error) {
	u, err := remote.Address(at.server)
	if wrong, ok := errors.AsType[*core.InvalidError](err); ok {
		if wrong.Field != "server" {
			return nil, exit.Misuse("check it", "%s %s", at.tokenBy, wrong.Reason)
		}
		return nil, exit.Misuse("use one such as "+defaultServer+", https:// for another machine, or --insecure-http where nobody else can listen", "%s %s", at.by, wrong.Reason)
	}
	return u, err
}

// onServer makes a client of a server for a command.
func onServer(at *place, do func(c *remote.Client) error) error {
	if _, err := addressOf(at); err != nil {
		return err
	}
	c, err := remote.New(at.server)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// onStore finds the server, or loads the configuration and opens the store, for a command that runs nothing.
// Most commands are this: one question or one order, and then the end.
func (o *options) onStore(ctx context.Context, do func(s scheduler) error) error {
	at, err := o.place(ctx)
	if err != nil {
		return err
	}
	if at.server.URL != "" {
		return onServer(&at, func(c *remote.Client) error { return o.again(ctx, func() error { return do(c) }) })
	}
	c, err := loadFile(ctx, o)
	if err != nil {
		return err
	}
	s, st, err := openScheduler(ctx, c)
	// A daemon that was starting has it now.
	if _, busy := errors.AsType[*filestore.InUseError](err); busy {
		if at, other := o.place(ctx); other == nil && at.server.URL != "" {
			return onServer(&at, func(c *remote.Client) error { return o.again(ctx, func() error { return do(c) }) })
		}
	}
	if err != nil {
		return err
	}
	defer st.end(ctx)
	return o.again(ctx, func() error { return do(s) })
}

// openScheduler opens the store and makes a scheduler for commands that run nothing: it has no
// handlers, so it can submit, read and control, and never claims.
func openScheduler(ctx context.Context, c *dulyfile.File) (*core.Scheduler, *storage, error) {
	if err := needStore(c); err != nil {
		return nil, nil, err
	}
	c.Redis.Remember = true // a command is short: it need not try every script first
	st, err := openStore(ctx, c, nil)
	if err != nil {
		return nil, nil, err
	}
	// The settings of the file still matter: they say, for instance, what a kind's default level is.
	settings := settingsOfReader(c)
	if c.Alarm != nil {
		settings.Alarm = c.Alarm.Late()
		settings.Logger = slog.New(linelog.New(os.Stderr)) // reports an alarm that could not be set; the command itself succeeds
	}
	s, err := core.New(st, st.with(settings))
	if err != nil {
		return nil, nil, errors.Join(err, st.close())
	}
	st.flush = s.FlushEvents
	return s, st, nil
}

// settingsOfReader are the settings of a process that runs nothing. It sets no limits, so that it also works where they cannot be set.
func settingsOfReader(c *dulyfile.File) core.Config {
	settings := c.Settings()
	settings.Limits, settings.Budgets = nil, nil
	return settings
}
