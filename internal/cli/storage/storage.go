// Package storage opens the store that a command works on: a Redis, a folder or memory, as its settings say.
package storage

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/filestore"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/output"
	"github.com/seed-6f6f2c11/duly/core/store/window"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/folder"
	"github.com/seed-6f6f2c11/duly/internal/cli/linelog"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// reachIn is how long Redis has to answer at the start.
// It covers connecting and the checks of redisstore.Open. A command
// should fail while its user still looks.
const reachIn = 4 * time.Second

// Store is a store that is open.
// All stores have all six interfaces; a scheduler gets each where it needs it.
type Store struct {
	core.Store
	store.Waker
	store.Presence
	window.Recent
	feed.Feed
	output.Keeper

	Name  string // for people, without a password
	Close func() error
	// Upgrade takes the store to the newest layout; nil for one in memory.
	Upgrade func(ctx context.Context) (from, to int, err error)
	// Masters is how many masters of a cluster share the tasks, zero on a single server; nil for a store in memory.
	Masters func(ctx context.Context) (int, error)
	Redis   *redisstore.Store         // nil for a store without one
	Folder  string                    // of a store in a folder; empty for any other
	Flush   func(ctx context.Context) // hands over the last events to those who listen
}

// End closes the store. An error means nothing any more: each write was
// acknowledged when its call returned.
func (s *Store) End(ctx context.Context) {
	if s.Flush != nil {
		s.Flush(context.WithoutCancel(ctx)) // which bounds it by itself
	}
	_ = s.Close()
}

// With makes the settings of a scheduler on the store those of a process that others can ask about.
// Each process announces itself through the store it works on.
func (s *Store) With(c core.Config) core.Config {
	c.Presence, c.Recent, c.Feed = s.Presence, s.Recent, s.Feed
	if s.Redis != nil {
		c.Servers = s.Redis
	}
	return c
}

// Open opens the Redis that is configured, or a folder if there is none, or a store in memory if that is wanted.
// Without a Redis a store gets the same limits as a Redis would, so that a file behaves alike on all.
func Open(ctx context.Context, c *dulyfile.File, logger *slog.Logger) (*Store, error) {
	if c.Redis.URL == "" && c.Store != folder.Memory {
		return openFolder(ctx, c, logger)
	}
	if c.Redis.URL == "" {
		// One partition, as a single Redis has: limits need it.
		s := memstore.New(memstore.Config{
			Partitions: cmp.Or(c.Redis.Partitions, 1), Retention: c.Redis.Retention, Kept: c.Redis.Kept, KeptBytes: c.Redis.KeptBytes,
			MaxTasks: c.Redis.MaxTasks, MaxBytes: c.Redis.MaxBytes,
		})
		return &Store{Store: s, Waker: s, Presence: s, Recent: s, Feed: s, Keeper: s, Name: "memory", Close: func() error { return nil }}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachIn)
	defer cancel()
	settings := c.Redis
	settings.Logger = logger
	s, err := redisstore.Open(ctx, settings)
	if err != nil {
		return nil, Failure(err)
	}
	return &Store{Store: s, Waker: s, Presence: s, Recent: s, Feed: s, Keeper: s, Name: s.Name(), Close: s.Close, Upgrade: s.Upgrade, Masters: s.Masters, Redis: s}, nil
}

// openFolder opens a store in a folder. One that another command has open is free again in a moment.
func openFolder(ctx context.Context, c *dulyfile.File, logger *slog.Logger) (*Store, error) {
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
			return &Store{Store: s, Waker: s, Presence: s, Recent: s, Feed: s, Keeper: s, Name: dir, Close: s.Close, Folder: dir}, nil
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

// Failure is the failure for a Redis whose configuration makes it unusable.
func Failure(err error) *exit.Failure {
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

// NeedStore fails for a command that makes no sense on a store that ends with it.
// Such a command would succeed and have no effect, which is worse than an error.
func NeedStore(c *dulyfile.File) error {
	if c.Redis.URL != "" || c.Store != folder.Memory {
		return nil
	}
	return exit.Misuse("pass --redis URL or --store file:FOLDER, or name a running duly daemon with --server",
		"tasks in memory would be lost when this command ends")
}

// NeedRedis fails for a command that is about a Redis alone.
func NeedRedis(c *dulyfile.File) error {
	if c.Redis.URL != "" {
		return nil
	}
	return exit.Misuse("pass --redis URL, or set $"+redisstore.EnvURL, "no Redis is configured, and this is about one")
}

// OpenScheduler opens the store and makes a scheduler for commands that run nothing: it has no
// handlers, so it can submit, read and control, and never claims.
func OpenScheduler(ctx context.Context, c *dulyfile.File) (*core.Scheduler, *Store, error) {
	if err := NeedStore(c); err != nil {
		return nil, nil, err
	}
	c.Redis.Remember = true // a command is short: it need not try every script first
	st, err := Open(ctx, c, nil)
	if err != nil {
		return nil, nil, err
	}
	// The settings of the file still matter: they say, for instance, what a kind's default level is.
	settings := ReaderSettings(c)
	if c.Alarm != nil {
		settings.Alarm = c.Alarm.Late()
		settings.Logger = slog.New(linelog.New(os.Stderr)) // reports an alarm that could not be set; the command itself succeeds
	}
	s, err := core.New(st, st.With(settings))
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	st.Flush = s.FlushEvents
	return s, st, nil
}

// ReaderSettings are the settings of a process that runs nothing. It sets no limits, so that it also works where they cannot be set.
func ReaderSettings(c *dulyfile.File) core.Config {
	settings := c.Settings()
	settings.Limits, settings.Budgets = nil, nil
	return settings
}
