package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
)

// ownRedis starts a redis-server that keeps nothing, and notes its URL. It returns what ends it.
func ownRedis(ctx context.Context, o *options) (end func(), err error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("there is no redis-server here: name a Redis with --redis, such as redis://127.0.0.1:6379/1")
	}
	dir, err := os.MkdirTemp("", "duly-verify")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "redis.sock")
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "") //nolint:gosec // found in the path
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	end = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	o.redis = "unix://" + socket
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	defer func() { _ = client.Close() }()
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for client.Ping(within).Err() != nil {
		select {
		case <-within.Done():
			end()
			return nil, fmt.Errorf("redis-server does not answer: %w", within.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return end, nil
}
