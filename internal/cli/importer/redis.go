package importer

// Schedulers that keep their schedules in Redis, which is read and never written.

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core"
)

// IsRedis reports whether a format is read from a Redis, whose URL is given in place of a file.
func IsRedis(format string) bool { return format == "asynq" || format == "bullmq" }

// mostKeys is how many keys of another program are looked at.
const mostKeys = 100_000

// ReadRedis reads the schedules of a format from the Redis at a URL, and writes nothing to it. Its errors do not show the URL, which may contain a password.
func ReadRedis(ctx context.Context, format, url, agent string) (*Found, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, &core.InvalidError{Field: "URL", Reason: "must be that of a Redis, such as redis://localhost:6379/0"}
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	f := &Found{Kinds: map[string]Handler{}}
	if format == "asynq" {
		err = f.asynq(ctx, client, agent)
	} else {
		err = f.bullmq(ctx, client, agent)
	}
	if err != nil {
		return nil, fmt.Errorf("read the Redis of %s: %w", format, err)
	}
	return f.some(format)
}
