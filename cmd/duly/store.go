package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// redisEnv names the Redis, if no flag does.
const redisEnv = "DULY_REDIS_URL"

// reachIn is how long Redis has to answer at the start.
const reachIn = 4 * time.Second

// override puts flags, then the environment, over what the file says.
func (c *config) override(o *options) {
	if env := os.Getenv(redisEnv); env != "" {
		c.redis = env
	}
	if o.redis != "" {
		c.redis = o.redis
	}
	if o.prefix != "" {
		c.prefix = o.prefix
	}
}

// storage is a store that is open.
type storage struct {
	core.Store
	core.Waker

	name  string // for people, without a password
	close func() error
}

// end closes the store: what was written has been written.
func (s *storage) end() { _ = s.close() }

// openStore opens the Redis that is configured, or a store in memory if there is none.
func (c *config) openStore(ctx context.Context, logger *slog.Logger) (*storage, error) {
	if c.redis == "" {
		s := memstore.New(memstore.Config{Partitions: c.partitions})
		return &storage{Store: s, Waker: s, name: "memory", close: func() error { return nil }}, nil
	}
	u, err := url.Parse(c.redis)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" {
		return nil, usage("use one such as redis://127.0.0.1:6379/0", "the URL of Redis must begin with redis://, rediss:// or unix://")
	}
	ctx, cancel := context.WithTimeout(ctx, reachIn)
	defer cancel()
	s, err := redisstore.Open(ctx, redisstore.Config{URL: c.redis, Prefix: c.prefix, Partitions: c.partitions, Logger: logger})
	if err != nil {
		f := &failure{why: err, code: exitFailed}
		switch {
		case strings.HasPrefix(err.Error(), "redisstore: "): // a setting, not the server
			f.code, f.why, f.todo = exitUsage, errors.New(strings.TrimPrefix(err.Error(), "redisstore: ")), "see duly --help"
		case strings.HasPrefix(err.Error(), "cannot reach"):
			f.todo = "start it, or name another with --redis"
		}
		return nil, f
	}
	u.User, u.RawQuery = nil, ""
	return &storage{Store: s, Waker: s, name: u.String(), close: s.Close}, nil
}

// needRedis fails for a command that makes no sense on a store that ends with it.
func (c *config) needRedis() error {
	if c.redis != "" {
		return nil
	}
	return usage("pass --redis URL, set $"+redisEnv+", or use the HTTP API of a running duly daemon",
		"no Redis is configured, and tasks in memory would end with this command")
}

// onStore loads the configuration and opens the store for a command that runs nothing.
func (o *options) onStore(ctx context.Context, do func(s *core.Scheduler) error) error {
	c, err := loadConfig(ctx, o)
	if err != nil {
		return err
	}
	s, store, err := c.scheduler(ctx)
	if err != nil {
		return err
	}
	defer store.end()
	return do(s)
}

// scheduler opens the store and makes a scheduler for commands that run nothing.
func (c *config) scheduler(ctx context.Context) (*core.Scheduler, *storage, error) {
	if err := c.needRedis(); err != nil {
		return nil, nil, err
	}
	store, err := c.openStore(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	s, err := core.New(store, c.settings(nil, nil))
	if err != nil {
		return nil, nil, errors.Join(err, store.close())
	}
	return s, store, nil
}
