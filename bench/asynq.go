package main

// The peer asynq.

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

// Settings of the peer: what its documentation suggests for small tasks, with the finished ones kept as long as duly's.
const (
	asynqConcurrency = 50
	asynqRetention   = 7 * 24 * time.Hour
	asynqQueue       = "default"
	asynqCompleted   = "asynq:{" + asynqQueue + "}:completed"
)

// peer is asynq's client and how to start its server.
type peer struct {
	*asynq.Client
	r     *redisServer
	extra int // bytes of each payload
}

func openAsynq(r *redisServer, extra int) *peer {
	return &peer{Client: asynq.NewClient(asynqOptions(r)), r: r, extra: extra}
}

func asynqOptions(r *redisServer) asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Network: r.network, Addr: r.addr, PoolSize: 64}
}

// enqueue stores one task. asynq has no call for several.
func (p *peer) enqueue(ctx context.Context, n int, options ...asynq.Option) error {
	data, err := json.Marshal(newPayload(n, p.extra))
	if err != nil {
		return fmt.Errorf("encode payload: %w", err)
	}
	_, err = p.EnqueueContext(ctx, asynq.NewTask(kind, data), append(options, asynq.Retention(asynqRetention))...)
	return err
}

// serve starts a server whose handler calls ran with each task; queues is nil for the default one.
func (p *peer) serve(queues map[string]int, check time.Duration, ran func(n int)) (*asynq.Server, error) {
	s := asynq.NewServer(asynqOptions(p.r), asynq.Config{
		Concurrency: asynqConcurrency, Queues: queues, DelayedTaskCheckInterval: check, LogLevel: asynq.FatalLevel,
	})
	err := s.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		var body payload
		if err := json.Unmarshal(t.Payload(), &body); err != nil {
			return fmt.Errorf("decode payload: %w", err)
		}
		ran(body.N)
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("start asynq: %w", err)
	}
	return s, nil
}

func (p *peer) add(ctx context.Context, i int) error { return p.enqueue(ctx, i) }

func (p *peer) work(ran func(n int)) (func(), error) {
	server, err := p.serve(nil, 0, ran)
	if err != nil {
		return nil, err
	}
	return server.Shutdown, nil
}

// done reports whether n tasks are recorded as completed.
func (p *peer) done(ctx context.Context, n int) (bool, error) {
	done, err := p.r.client.ZCard(ctx, asynqCompleted).Result()
	return done == int64(n), err
}

func (p *peer) close() error { return p.Close() }
