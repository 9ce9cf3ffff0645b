package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core"
)

// backlogAgents is how many agents a backlog belongs to.
const backlogAgents = 100_000

// measureCatchUp drains a backlog while another client, a process of its own, sends a PING every few milliseconds.
func measureCatchUp(ctx context.Context, b *bench) error {
	return b.compare(ctx, 1, contestant{sideDuly, fmt.Sprintf("catch-up, %s tasks", digits(b.catchUp)), b.dulyCatchUp})
}

func (b *bench) dulyCatchUp(ctx context.Context) (_ []sample, err error) {
	ran := make(ledger, b.catchUp)
	d, err := openDuly(ctx, b.redis, b.concurrency, func(t *core.Task[payload]) { ran.mark(t.Payload.N) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	err = d.submit(ctx, 0, b.catchUp, func(i int) core.NewTask { return newTask(i, backlogAgents, 0) })
	if err != nil {
		return nil, err
	}
	rest, err := b.redis.pinged(ctx, func() error {
		pause(ctx, time.Second)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	var s spent
	busy, err := b.redis.pinged(ctx, func() (err error) {
		s, err = b.redis.metered(ctx, func() error { return d.drain(ctx, b.catchUp) })
		return err
	})
	if err != nil {
		return nil, err
	}
	n := float64(b.catchUp)
	figure := func(name, unit string, better better, value float64, target target) sample {
		group := fmt.Sprintf("catch-up of %s overdue tasks, %s", digits(b.catchUp), ofAgents(backlogAgents))
		return sample{spec{"catchup", group, name, unit, better, target}, value}
	}
	return []sample{
		figure("drain", "tasks/s", higher, n/s.wall.Seconds(), atLeast(10_000)),
		figure("Redis CPU", "us/task", lower, s.redis/n, target{}),
		figure("another client's PING p50", "ms", lower, quantile(busy, 0.5), target{}),
		figure("another client's PING p99", "ms", lower, quantile(busy, 0.99), atMost(10)),
		figure("PING p50 before", "ms", lower, quantile(rest, 0.5), target{}),
		figure("PING p99 before", "ms", lower, quantile(rest, 0.99), target{}),
	}, ran.check()
}

// pingVariable names the network and address to a child of ours that is to do nothing but PING.
const pingVariable = "DULY_BENCH_PING"

// pingEvery is the pause between two PINGs.
const pingEvery = 2 * time.Millisecond

// pinged runs work, and tells what another process's PINGs took meanwhile, in ms. A goroutine of this process would
// measure how busy this process is.
func (r *redisServer) pinged(ctx context.Context, work func() error) ([]float64, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("ping: %w", err)
	}
	child := exec.CommandContext(ctx, self) //nolint:gosec // this program
	child.Env = append(os.Environ(), pingVariable+"="+r.network+" "+r.addr)
	child.SysProcAttr = childAttributes()
	var answer strings.Builder
	child.Stdout, child.Stderr = &answer, os.Stderr
	enough, err := child.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("ping: %w", err)
	}
	if err := child.Start(); err != nil {
		return nil, fmt.Errorf("ping: %w", err)
	}
	err = work()
	if err := errors.Join(err, enough.Close(), child.Wait()); err != nil {
		return nil, err
	}
	var took []float64
	for line := range strings.Lines(answer.String()) {
		ms, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		if err != nil {
			return nil, fmt.Errorf("ping: %w", err)
		}
		took = append(took, ms)
	}
	return took, nil
}

// ping is the child: it sends PINGs until its input is closed, then prints what each took in ms.
func ping(ctx context.Context, server string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	network, addr, _ := strings.Cut(server, " ")
	client := redis.NewClient(&redis.Options{Network: network, Addr: addr, DisableIdentity: true})
	defer func() { _ = client.Close() }()
	var took []float64
	for ok := true; ok; ok = pause(ctx, pingEvery) {
		begun := time.Now()
		if err := client.Ping(context.WithoutCancel(ctx)).Err(); err != nil {
			return fmt.Errorf("ping: %w", err)
		}
		took = append(took, milliseconds(time.Since(begun)))
	}
	lines := bufio.NewWriter(out)
	for _, ms := range took[min(1, len(took)-1):] { // the first one connects
		_, _ = fmt.Fprintln(lines, ms)
	}
	return lines.Flush()
}
