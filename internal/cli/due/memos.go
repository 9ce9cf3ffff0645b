package due

// The streams of MemOS that a daemon reads, if the file says so.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/seed-6f6f2c11/duly/adapters/memosstream"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// intake makes the reader of the streams, and passes it the scheduler's events; nil if no streams are read. For TLS it uses the files of
// the store's Redis, as for its URL.
//
// A process that runs tasks on request reads no streams: its host may freeze it midway.
func intake(ctx context.Context, c *dulyfile.File, onRequest bool, settings *core.Config, logger *slog.Logger) (*memosstream.Intake, error) {
	switch {
	case c.MemOS == nil:
		return nil, nil //nolint:nilnil // no streams are wanted
	case onRequest:
		logger.LogAttrs(ctx, slog.LevelWarn, "memos.stream is not read: start a duly daemon for it")
		return nil, nil //nolint:nilnil // no streams are wanted
	}
	config := memosstream.Config{
		URL: cmp.Or(c.MemOS.URL, c.Redis.URL), Prefix: c.MemOS.Prefix, Dead: cmp.Or(c.Redis.Prefix, redisstore.DefaultPrefix) + "memos:dead", Logger: logger,
		CAFile: c.Redis.CAFile, CertFile: c.Redis.CertFile, KeyFile: c.Redis.KeyFile,
	}
	if config.URL == "" {
		return nil, c.MemOS.Fail("needs url, as no Redis is configured")
	}
	i, err := memosstream.New(config) //nolint:contextcheck // it ends with Close
	if wrong, ok := errors.AsType[*core.ConfigError](err); ok {
		return nil, c.MemOS.Fail("%s %s", cmp.Or(streamSettings[wrong.Field], wrong.Field), wrong.Reason)
	}
	if err != nil {
		return nil, err
	}
	log := settings.OnEvent
	settings.OnEvent = func(e core.Event) {
		log(e)
		i.Event(e)
	}
	return i, nil
}

// streamSettings are the keys of the file, by the field of a memosstream.Config.
var streamSettings = map[string]string{"URL": "url", "CAFile": "redis_ca", "CertFile": "redis_cert"}

// reading is the service that reads the streams, if any are read.
func reading(i *memosstream.Intake, s *core.Scheduler) []func(context.Context) error {
	if i == nil {
		return nil
	}
	return []func(context.Context) error{func(ctx context.Context) error { return i.Run(ctx, s) }}
}

// closeIntake ends it after the last run, if any streams are read.
func closeIntake(i *memosstream.Intake) {
	if i != nil {
		i.Close()
	}
}
