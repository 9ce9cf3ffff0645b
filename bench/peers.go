package main

// Peers: queues that are measured beside duly, each behind the same few calls.

import (
	"context"
	"errors"
	"time"
)

// queue is a peer's: one client, on an empty server.
type queue interface {
	// add stores task i, due now.
	add(ctx context.Context, i int) error
	// work starts workers that call ran with each task. The function that it returns stops them.
	work(ran func(n int)) (stop func(), err error)
	// done reports whether all of n tasks have ended, and Redis knows.
	done(ctx context.Context, n int) (bool, error)
	// close ends the client.
	close() error
}

// peers are the queues by their sides.
var peers = []struct {
	side side
	open func(r *redisServer, extra int) (queue, error)
}{
	{sideAsynq, func(r *redisServer, extra int) (queue, error) { return openAsynq(r, extra), nil }},
	{sideTaskq, openTaskq},
	{sideGocraft, openGocraft},
}

// peerContestants are a contestant for each peer, whose payloads have so many bytes more.
func (b *bench) peerContestants(label string, extra int, run func(ctx context.Context, q queue) ([]sample, error)) []contestant {
	contestants := make([]contestant, 0, len(peers))
	for _, p := range peers {
		contestants = append(contestants, contestant{p.side, label, func(ctx context.Context) (_ []sample, err error) {
			q, err := p.open(b.redis, extra)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, q.close()) }()
			return run(ctx, q)
		}})
	}
	return contestants
}

// whole submits n tasks one by one, as no peer has a call for several, and then runs them.
func (b *bench) whole(ctx context.Context, q queue, n int) (submit, drain spent, err error) {
	ran := make(ledger, n)
	submit, err = b.redis.metered(ctx, func() error { return spread(ctx, producers, n, q.add) })
	if err != nil {
		return submit, drain, err
	}
	stop := func() {}
	drain, err = b.redis.metered(ctx, func() (err error) {
		if stop, err = q.work(ran.mark); err != nil {
			return err
		}
		return drained(ctx, q, n)
	})
	stop() // it may take seconds, which are no part of the work
	if err != nil {
		return submit, drain, err
	}
	return submit, drain, ran.check()
}

// drained waits until all tasks have ended.
func drained(ctx context.Context, q queue, n int) error {
	for {
		if done, err := q.done(ctx, n); err != nil || done {
			return err
		}
		if !pause(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
}
