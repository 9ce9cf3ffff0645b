package main

// The peer gocraft/work.

import (
	"context"
	"fmt"

	"github.com/gocraft/work"
	"github.com/gomodule/redigo/redis"
)

// Settings of gocraft/work: it is at its best with few workers, as each asks Redis by itself.
const (
	gocraftWorkers   = 10
	gocraftNamespace = "bench"
	gocraftJobs      = gocraftNamespace + ":jobs:" + kind
)

// gocraftQueue is gocraft/work. It keeps nothing of what has ended.
type gocraftQueue struct {
	*work.Enqueuer
	pool  *redis.Pool
	extra int // bytes of each payload
}

func openGocraft(r *redisServer, extra int) (queue, error) {
	pool := &redis.Pool{MaxActive: callers, MaxIdle: callers, Wait: true, Dial: func() (redis.Conn, error) {
		conn, err := redis.Dial(r.network, r.addr)
		if err != nil {
			return nil, fmt.Errorf("dial: %w", err)
		}
		return conn, nil
	}}
	return &gocraftQueue{work.NewEnqueuer(gocraftNamespace, pool), pool, extra}, nil
}

func (q *gocraftQueue) add(_ context.Context, i int) error {
	body := newPayload(i, q.extra)
	args := work.Q{"n": body.N, "text": body.Text, "user": body.User}
	if q.extra > 0 {
		args["more"] = body.More
	}
	_, err := q.Enqueue(kind, args)
	return err
}

func (q *gocraftQueue) work(ran func(n int)) (func(), error) {
	pool := work.NewWorkerPool(struct{}{}, gocraftWorkers, gocraftNamespace, q.pool)
	pool.Job(kind, func(job *work.Job) error {
		n := job.ArgInt64("n")
		ran(int(n))
		return job.ArgError()
	})
	pool.Start()
	return pool.Stop, nil
}

// done: nothing waits, and no worker holds a job.
func (q *gocraftQueue) done(context.Context, int) (bool, error) {
	conn := q.pool.Get()
	defer func() { _ = conn.Close() }()
	left, err := redis.Int(conn.Do("LLEN", gocraftJobs))
	if err != nil || left > 0 {
		return false, err
	}
	held, err := redis.Int(conn.Do("GET", gocraftJobs+":lock"))
	return held == 0, err
}

func (q *gocraftQueue) close() error { return q.pool.Close() }
