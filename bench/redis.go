package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisServer is a redis-server of the bench's own, without persistence. Both sides of a comparison use it, one after
// the other.
type redisServer struct {
	network, addr string // "tcp" or "unix"
	client        *redis.Client
	cmd           *exec.Cmd
	dir           string
}

// startRedis starts the server named by $DULY_TEST_REDIS_SERVER, or the one on the PATH, on a free port of the loopback
// interface or on a unix socket.
func startRedis(ctx context.Context, network string) (*redisServer, error) {
	binary, err := redisBinary()
	if err != nil {
		return nil, err
	}
	return startServer(ctx, network, []string{binary})
}

func redisBinary() (string, error) {
	if binary := os.Getenv("DULY_TEST_REDIS_SERVER"); binary != "" {
		return binary, nil
	}
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return "", errors.New("no redis-server: run `make bench`, which gets one, or set DULY_TEST_REDIS_SERVER to its path")
	}
	return binary, nil
}

// startServer starts a server with a command line, which may begin with the program that watches it, and settings of its own.
func startServer(ctx context.Context, network string, line []string, settings ...string) (*redisServer, error) {
	dir, err := os.MkdirTemp("", "duly-bench") // not under a long name: a socket's path has a limit
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	r := &redisServer{network: network, addr: filepath.Join(dir, "s"), dir: dir}
	args := []string{"--port", "0", "--unixsocket", r.addr}
	if network == "tcp" {
		port, err := freePort(ctx)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		r.addr = net.JoinHostPort(loopback, port)
		args = []string{"--port", port, "--bind", loopback}
	}
	args = slices.Concat(line[1:], args, []string{"--save", "", "--dir", dir, "--logfile", "redis.log"}, settings)
	r.cmd = exec.Command(line[0], args...) //nolint:gosec,noctx // the server that the user chose; it outlives ctx by a stop
	r.cmd.SysProcAttr = childAttributes()
	if err := r.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start redis: %w", err), os.RemoveAll(dir))
	}
	r.client = redis.NewClient(&redis.Options{Network: network, Addr: r.addr, DisableIdentity: true, ReadTimeout: time.Minute})
	for wait := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if err = r.listens(ctx); err == nil {
			err = r.client.Ping(ctx).Err()
		}
		if err == nil {
			return r, nil
		}
		if ctx.Err() != nil || time.Now().After(wait) {
			return nil, errors.Join(fmt.Errorf("redis did not start: %w", err), r.stop())
		}
	}
}

// listens fails until the server can be reached: the client would log each failure to dial.
func (r *redisServer) listens(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, r.network, r.addr)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	return conn.Close()
}

const loopback = "127.0.0.1"

func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// stop kills the server and removes its folder.
func (r *redisServer) stop() error {
	_ = r.client.Close()
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait() // it was killed: the error says so
	return os.RemoveAll(r.dir)
}

func (r *redisServer) url() string {
	if r.network == "tcp" {
		return "redis://" + r.addr
	}
	return "unix://" + r.addr
}

// flush empties the server. Scripts stay loaded.
func (r *redisServer) flush(ctx context.Context) error { return r.client.FlushAll(ctx).Err() }

// appendOnly switches the append-only file, synced every second, on or off, and waits until it is as asked.
func (r *redisServer) appendOnly(ctx context.Context, on bool) error {
	value := map[bool]string{true: "yes", false: "no"}[on]
	for _, setting := range [][2]string{{"appendfsync", "everysec"}, {"appendonly", value}} {
		if err := r.client.ConfigSet(ctx, setting[0], setting[1]).Err(); err != nil {
			return fmt.Errorf("config set %s %s: %w", setting[0], setting[1], err)
		}
	}
	for {
		writing, err := r.number(ctx, "persistence", "aof_rewrite_in_progress", "aof_rewrite_scheduled")
		if err != nil || writing == 0 {
			return err
		}
		if !pause(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// info reads fields of one section of INFO.
func (r *redisServer) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := r.client.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("info %s: %w", section, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// number reads one field of INFO as a number.
func (r *redisServer) number(ctx context.Context, section string, names ...string) (float64, error) {
	fields, err := r.info(ctx, section)
	if err != nil {
		return 0, err
	}
	var sum float64
	for _, name := range names {
		n, err := strconv.ParseFloat(fields[name], 64)
		if err != nil {
			return 0, fmt.Errorf("info %s: %s is %q", section, name, fields[name])
		}
		sum += n
	}
	return sum, nil
}

// usedMemory is the memory that the data takes, in bytes.
func (r *redisServer) usedMemory(ctx context.Context) (float64, error) {
	if err := r.client.Do(ctx, "MEMORY", "PURGE").Err(); err != nil {
		return 0, fmt.Errorf("memory purge: %w", err)
	}
	return r.number(ctx, "memory", "used_memory")
}

// meter is a moment that spending is counted from.
type meter struct {
	r        *redisServer
	wall     time.Time
	redis    float64 // seconds
	client   float64 // seconds
	commands float64
}

// spent is what was used up since then.
type spent struct {
	wall     time.Duration
	redis    float64 // CPU microseconds of the server
	client   float64 // CPU microseconds of this process
	commands float64 // as the server counts them: those inside scripts too
}

// meterCommands is how many commands a meter itself adds to the count.
const meterCommands = 3

// meter begins to count. The order of reads keeps the cost of the costlier one out of the CPU time.
func (r *redisServer) meter(ctx context.Context) (*meter, error) {
	m := &meter{r: r}
	var err error
	if m.commands, err = r.number(ctx, "stats", "total_commands_processed"); err != nil {
		return nil, err
	}
	if m.redis, err = r.number(ctx, "cpu", "used_cpu_user", "used_cpu_sys"); err != nil {
		return nil, err
	}
	m.client = ownCPU()
	m.wall = time.Now()
	return m, nil
}

// read tells what was used up so far.
func (m *meter) read(ctx context.Context) (spent, error) {
	s := spent{wall: time.Since(m.wall), client: 1e6 * (ownCPU() - m.client)}
	cpu, err := m.r.number(ctx, "cpu", "used_cpu_user", "used_cpu_sys")
	if err != nil {
		return s, err
	}
	commands, err := m.r.number(ctx, "stats", "total_commands_processed")
	s.redis = 1e6 * (cpu - m.redis)
	s.commands = commands - m.commands - meterCommands
	return s, err
}

// metered runs work and tells what it used up.
func (r *redisServer) metered(ctx context.Context, work func() error) (spent, error) {
	m, err := r.meter(ctx)
	if err != nil {
		return spent{}, err
	}
	if err := work(); err != nil {
		return spent{}, err
	}
	return m.read(ctx)
}

func (s spent) plus(o spent) spent {
	return spent{wall: s.wall + o.wall, redis: s.redis + o.redis, client: s.client + o.client, commands: s.commands + o.commands}
}

// ownCPU is the CPU time of this process, in seconds.
func ownCPU() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// countSent counts the commands that clients send, without those inside scripts, until the returned function is
// called. It watches with MONITOR, which tells the two apart.
func (r *redisServer) countSent(ctx context.Context) (func() (int64, error), error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, r.network, r.addr)
	if err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		return nil, errors.Join(fmt.Errorf("monitor: %w", err), conn.Close())
	}
	lines := bufio.NewReaderSize(conn, 1<<20)
	if answer, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(answer, "+OK") {
		return nil, errors.Join(fmt.Errorf("monitor: %q %w", answer, err), conn.Close())
	}
	var sent atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if !strings.Contains(line, " lua] ") && !strings.Contains(line, `] "info" `) { // "info" is the meter's
				sent.Add(1)
			}
		}
	}()
	return func() (int64, error) {
		err := conn.Close()
		<-done
		return sent.Load(), err
	}, nil
}
