package main

// The peer taskq, on Redis streams.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/redis/go-redis/v9"
	"github.com/vmihailenco/taskq/redisq/v4"
	"github.com/vmihailenco/taskq/v4"
)

// Settings of taskq: enough workers, and as many messages a read as its streams give well.
const (
	taskqWorkers = 50
	taskqReserve = 100
	taskqName    = "bench"
	taskqStream  = "taskq:{" + taskqName + "}:stream"
)

// taskqQueue is taskq on Redis streams. It keeps nothing of what has ended.
type taskqQueue struct {
	client *redis.Client
	queue  taskq.Queue
	tasks  taskq.TaskMap
	task   *taskq.Task
	ran    func(n int)
	extra  int // bytes of each payload
}

func openTaskq(r *redisServer, extra int) (queue, error) {
	taskq.SetLogger(logr.Discard()) // its chores complain until there is a stream
	q := &taskqQueue{client: redis.NewClient(&redis.Options{Network: r.network, Addr: r.addr, PoolSize: callers}), extra: extra}
	var err error
	q.task, err = q.tasks.Register(kind, &taskq.TaskConfig{Handler: func(body payload) error {
		q.ran(body.N)
		return nil
	}})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("register task: %w", err), q.client.Close())
	}
	q.queue = redisq.NewQueue(&taskq.QueueConfig{
		Name: taskqName, Redis: q.client, Handler: &q.tasks, NumWorker: taskqWorkers, ReservationSize: taskqReserve, WaitTimeout: time.Second,
	})
	return q, nil
}

func (q *taskqQueue) add(ctx context.Context, i int) error {
	return q.queue.AddJob(ctx, q.task.NewJob(newPayload(i, q.extra)))
}

func (q *taskqQueue) work(ran func(n int)) (func(), error) {
	q.ran = ran
	if err := q.queue.Consumer().Start(context.Background()); err != nil {
		return nil, fmt.Errorf("start taskq: %w", err)
	}
	return func() { _ = q.queue.Consumer().Stop() }, nil
}

func (q *taskqQueue) done(ctx context.Context, _ int) (bool, error) {
	left, err := q.client.XLen(ctx, taskqStream).Result()
	return left == 0, err
}

func (q *taskqQueue) close() error { return errors.Join(q.queue.Close(), q.client.Close()) }
