package command

// The settings of a process: the file, then the environment, then flags.

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/internal/cli/clouds"
	"github.com/seed-6f6f2c11/duly/internal/cli/doors"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// LoadFile reads the file that the options name, if any, and puts the environment and the flags over it.
// Every command begins here, so that all of them find the same Redis.
func LoadFile(ctx context.Context, o *Options) (*dulyfile.File, error) {
	c, err := o.parseFile(ctx)
	if err != nil {
		return nil, err
	}
	at, err := o.Place(ctx)
	if err != nil {
		return nil, err
	}
	o.override(c)
	o.ofContext(c, &at)
	return c, breaker(c)
}

// parseFile reads the file alone.
func (o *Options) parseFile(ctx context.Context) (*dulyfile.File, error) {
	if o.File == "" {
		return &dulyfile.File{}, nil
	}
	data, err := os.ReadFile(o.File)
	if err != nil {
		return nil, exit.Misuse("name a file that can be read", "%w", err)
	}
	c, err := dulyfile.Parse(ctx, o.File, data, o.defaults(), clouds.Targets()...)
	if err == nil {
		err = doors.Speak(c)
	}
	return c, err
}

// ofContext puts the store that was found in place of what the file says, and the Redis of a context over the environment and the file, if a flag names the context, and else below them.
func (o *Options) ofContext(c *dulyfile.File, at *Place) {
	switch {
	case at.Store != "":
		c.Redis.URL, c.Store = "", at.Store
	case at.redis == "":
	case o.Context != "":
		c.Redis.URL, c.Redis.Prefix = at.redis, cmp.Or(o.Redis.Prefix, at.prefix, c.Redis.Prefix)
	default:
		c.Redis.URL, c.Redis.Prefix = at.redis, cmp.Or(c.Redis.Prefix, at.prefix)
	}
}

// defaults are those of the flags, else of the environment.
func (o *Options) defaults() dulyfile.Defaults {
	return dulyfile.Defaults{
		Zone: strings.TrimSpace(os.Getenv(envZone)), Agent: cmp.Or(o.DefaultAgent, strings.TrimSpace(os.Getenv(envDefaultAgent))),
	}
}

// override puts the environment over what the file says, and flags over both.
func (o *Options) override(c *dulyfile.File) {
	c.Redis = c.Redis.With(os.Getenv)
	if o.File == "" { // else the file has been read with them
		c.Defaults = o.defaults()
	}
	c.Name = cmp.Or(o.ProcessName, strings.TrimSpace(os.Getenv(EnvName)), c.Name)
	for _, f := range []struct{ flag, field *string }{
		{&o.Redis.URL, &c.Redis.URL},
		{&o.Redis.Prefix, &c.Redis.Prefix},
		{&o.Redis.CAFile, &c.Redis.CAFile},
		{&o.Redis.CertFile, &c.Redis.CertFile},
		{&o.Redis.KeyFile, &c.Redis.KeyFile},
	} {
		// An empty flag is one that was not given: saysSomething refuses it otherwise.
		*f.field = cmp.Or(*f.flag, *f.field)
	}
}

// The variables of max_depth: and max_spawned: in the file, which count before those.
const (
	envMaxDepth   = "DULY_MAX_DEPTH"
	envMaxSpawned = "DULY_MAX_SPAWNED"
)

// breaker puts the bounds of the environment over those of the file. A scheduler checks them.
func breaker(c *dulyfile.File) error {
	for _, bound := range []struct {
		name string
		into *int
	}{{envMaxDepth, &c.MaxDepth}, {envMaxSpawned, &c.MaxSpawned}} {
		text := strings.TrimSpace(os.Getenv(bound.name))
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return exit.Misuse("set it to a number, or to -1 for no bound", "%s must be a whole number, not %q", bound.name, text)
		}
		*bound.into = n
	}
	return nil
}
