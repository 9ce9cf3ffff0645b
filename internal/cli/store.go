package cli

// The store that commands work on.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// reachIn is how long Redis has to answer at the start.
// It covers connecting and the checks of redisstore.Open. A command
// should fail while its user still looks.
const reachIn = 4 * time.Second

// storage is a store that is open.
// Both stores have all three interfaces; a scheduler gets each where it needs it.
type storage struct {
	core.Store
	store.Waker
	store.Presence

	name  string // for people, without a password
	close func() error
}

// end closes the store. An error means nothing any more: each write was
// acknowledged when its call returned.
func (s *storage) end() { _ = s.close() }

// with makes the settings of a scheduler on the store those of a process that others can ask about.
// Each process announces itself through the store it works on.
func (s *storage) with(c core.Config) core.Config {
	c.Presence = s.Presence
	return c
}

// openStore opens the Redis that is configured, or a store in memory if there is none.
// The memory store gets the same limits as a Redis would, so that a file behaves alike on both.
func openStore(ctx context.Context, c *dulyfile.File, logger *slog.Logger) (*storage, error) {
	if c.Redis.URL == "" {
		s := memstore.New(memstore.Config{
			Partitions: c.Redis.Partitions, Retention: c.Redis.Retention, Kept: c.Redis.Kept, KeptBytes: c.Redis.KeptBytes,
			MaxTasks: c.Redis.MaxTasks, MaxBytes: c.Redis.MaxBytes,
		})
		return &storage{Store: s, Waker: s, Presence: s, name: "memory", close: func() error { return nil }}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachIn)
	defer cancel()
	settings := c.Redis
	settings.Logger = logger
	s, err := redisstore.Open(ctx, settings)
	if err != nil {
		f := &failure{why: err, code: exitFailed}
		// A mistake in a setting is the user's to mend; one of the server is not a matter of usage.
		if wrong, ok := errors.AsType[*core.ConfigError](err); ok { // a setting, not the server
			// The user has set a flag, a variable or a key of the file, not a field of Go.
			setting := cmp.Or(redisSettings[wrong.Field], wrong.Field)
			f.code, f.why, f.todo = exitUsage, &core.ConfigError{Field: setting, Reason: wrong.Reason}, "see duly --help"
		}
		if _, ok := errors.AsType[*redisstore.UnreachableError](err); ok {
			f.todo = "start it, or name another with --redis"
		}
		return nil, f
	}
	return &storage{Store: s, Waker: s, Presence: s, name: s.Name(), close: s.Close}, nil
}

// redisSettings are what a user sets, by the field of a redisstore.Config.
// What is missing is named as the field is.
var redisSettings = map[string]string{
	"URL": "the URL of Redis", "Prefix": "--prefix", "CAFile": "--redis-ca", "CertFile": "--redis-cert", "KeyFile": "--redis-key",
}

// needRedis fails for a command that makes no sense on a store that ends with it.
// Such a command would succeed and leave nothing behind, which is worse than an error.
func needRedis(c *dulyfile.File) error {
	if c.Redis.URL != "" {
		return nil
	}
	return usage("pass --redis URL, set $"+redisstore.EnvURL+", or use the HTTP API of a running duly daemon",
		"no Redis is configured, and tasks in memory would be lost when this command ends")
}

// onStore loads the configuration and opens the store for a command that runs nothing.
// Most commands are this: one question or one order, and then the end.
func (o *options) onStore(ctx context.Context, do func(s *core.Scheduler) error) error {
	c, err := loadFile(ctx, o)
	if err != nil {
		return err
	}
	s, st, err := openScheduler(ctx, c)
	if err != nil {
		return err
	}
	defer st.end()
	return do(s)
}

// openScheduler opens the store and makes a scheduler for commands that run nothing: it has no
// handlers, so it can submit, read and control, and never claims.
func openScheduler(ctx context.Context, c *dulyfile.File) (*core.Scheduler, *storage, error) {
	if err := needRedis(c); err != nil {
		return nil, nil, err
	}
	c.Redis.Remember = true // a command is short: it need not try every script first
	st, err := openStore(ctx, c, nil)
	if err != nil {
		return nil, nil, err
	}
	// The settings of the file still matter: they say, for instance, what a kind's default level is.
	s, err := core.New(st, st.with(c.Settings()))
	if err != nil {
		return nil, nil, errors.Join(err, st.close())
	}
	return s, st, nil
}
