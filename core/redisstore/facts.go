package redisstore

// Facts about a server, for commands that look after it: nothing here is needed to run tasks.

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/server"
)

// Facts are what one server reports about itself.
type Facts = server.Facts

// Facts asks every server that has tasks, or may have once a master is lost. A server that does not answer is left out; the first
// error is returned if none answers.
func (s *Store) Facts(ctx context.Context) ([]Facts, error) {
	if s.db.Cluster == nil {
		f, err := factsOf(ctx, s.db.Client, s.name)
		if err != nil {
			return nil, call.Wrap(call.VerbLook, err)
		}
		return []Facts{f}, nil
	}
	var mu sync.Mutex
	var all []Facts
	var first error
	err := s.db.Cluster.Client.ForEachShard(ctx, func(ctx context.Context, node *redis.Client) error {
		f, err := factsOf(ctx, node, node.Options().Addr)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			all = append(all, f)
		case first == nil:
			first = err
		}
		return nil // the others are asked all the same
	})
	if len(all) > 0 {
		return all, nil
	}
	if err == nil {
		err = first
	}
	return nil, call.Wrap(call.VerbLook, err)
}

// factsOf asks one server.
func factsOf(ctx context.Context, node redis.UniversalClient, name string) (Facts, error) {
	info, err := node.Do(ctx, "INFO").Text()
	if err != nil {
		return Facts{}, err
	}
	v := parseInfo(info)
	number := func(key string) int64 {
		n, _ := strconv.ParseInt(v[key], 10, 64) // a missing value is zero
		return n
	}
	f := Facts{
		Node: name, Version: v["redis_version"], Eviction: v["maxmemory_policy"], Replicas: int(number("connected_slaves")),
		AppendOnly: map[string]string{"1": "yes", "0": "no"}[v["aof_enabled"]],
		Memory:     number("used_memory"), MaxMemory: number("maxmemory"), Commands: number("total_commands_processed"), Up: time.Duration(number("uptime_in_seconds")) * time.Second,
	}
	asked := node.Do(ctx, "CONFIG", "GET", "save") // managed services refuse it
	if save := layout.FieldsOf(asked); asked.Err() == nil && len(save) > 0 {
		f.Save, f.SaveKnown = save["save"], true
	}
	return f, nil
}

// Secure reports whether the connection to Redis is encrypted.
func (s *Store) Secure() bool { return s.secure }

// User is the name of the ACL's user that the store logs in as: "default" if the URL names none.
func (s *Store) User() string {
	if s.user == "" {
		return "default"
	}
	return s.user
}

// Tick is the cost of a tick that finds nothing.
type Tick struct {
	Commands int // that the client sends
	Took     time.Duration
}

// IdleTick measures a tick that finds nothing due: it opens the store again, with a client of its own whose commands it counts, and
// looks at every partition, as a pull does. It claims nothing.
func IdleTick(ctx context.Context, config Config) (Tick, error) {
	counter := new(counting)
	config.hook = counter
	s, err := Open(ctx, config)
	if err != nil {
		return Tick{}, err
	}
	defer func() { _ = s.Close() }() // nothing was written
	requests := make([]store.LookRequest, s.Partitions())
	for i := range requests {
		requests[i].Partition = i
	}
	look := func() error {
		_, err := s.Look(ctx, requests)
		return err
	}
	if err := look(); err != nil { // which opens the connections
		return Tick{}, err
	}
	before, begun := counter.sent.Load(), time.Now() //nolint:forbidigo // it measures a call; no task depends on it
	if err := look(); err != nil {
		return Tick{}, err
	}
	return Tick{Commands: int(counter.sent.Load() - before), Took: time.Since(begun)}, nil //nolint:forbidigo // as above
}

// counting counts the commands that a client sends.
type counting struct{ sent atomic.Int64 }

// DialHook does not change dialling.
func (*counting) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook counts a command.
func (c *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.sent.Add(1)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook counts those of a pipeline.
func (c *counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.sent.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}
