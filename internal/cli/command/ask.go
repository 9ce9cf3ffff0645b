package command

// What a command asks: a server, or the store.

import (
	"context"
	"errors"
	"net/url"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/filestore"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/storage"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// AddressOf is the address of a server, if a token may be sent there.
func AddressOf(at *Place) (*url.URL, error) {
	u, err := remote.Address(at.Server)
	if wrong, ok := errors.AsType[*core.InvalidError](err); ok {
		if wrong.Field != "server" {
			return nil, exit.Misuse("check it", "%s %s", at.TokenBy, wrong.Reason)
		}
		return nil, exit.Misuse("use one such as "+DefaultServer+", https:// for another machine, or --insecure-http where nobody else can listen", "%s %s", at.By, wrong.Reason)
	}
	return u, err
}

// OnServer makes a client of a server for a command.
func OnServer(at *Place, do func(c *remote.Client) error) error {
	if _, err := AddressOf(at); err != nil {
		return err
	}
	c, err := remote.New(at.Server)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// OnStore finds the server, or loads the configuration and opens the store, for a command that runs nothing.
// Most commands are this: one question or one order, and then the end.
func (o *Options) OnStore(ctx context.Context, do func(s Scheduler) error) error {
	at, err := o.Place(ctx)
	if err != nil {
		return err
	}
	if at.Server.URL != "" {
		return OnServer(&at, func(c *remote.Client) error { return o.again(ctx, func() error { return do(c) }) })
	}
	c, err := LoadFile(ctx, o)
	if err != nil {
		return err
	}
	s, st, err := storage.OpenScheduler(ctx, c)
	// A daemon that was starting has it now.
	if _, busy := errors.AsType[*filestore.InUseError](err); busy {
		if at, other := o.Place(ctx); other == nil && at.Server.URL != "" {
			return OnServer(&at, func(c *remote.Client) error { return o.again(ctx, func() error { return do(c) }) })
		}
	}
	if err != nil {
		return err
	}
	defer st.End(ctx)
	return o.again(ctx, func() error { return do(s) })
}

// SayLimits says what a user of a store without a Redis has to know, once and plainly: a user who expects tasks to survive would lose them without having been warned, and
// one who looks for them has to know where.
func SayLimits(o *Options, s *storage.Store) {
	switch {
	case s.Folder != "":
		o.Say("tasks are kept in " + table.ShellWord(s.Folder) + ", for this process alone; duly store copy moves them to a Redis, which any number of processes share")
	case s.Redis == nil:
		o.Say("tasks are kept in memory and are lost when this process ends; leave out --store to keep them")
	}
}
