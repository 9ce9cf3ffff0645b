// Package stores has the stores that a history is played on: one in memory, one in a folder whose process dies now and then, and one on a Redis outside of the bubble.
package stores

// The stores that a history can be played on: in memory, in a folder, and the real scripts in a Redis of their own, which are given the time of the history
// instead of the machine's.

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/filestore"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// Open makes an empty store whose clock is the given one.
// It is called once for a history, and once more for each time that the store is restored.
type Open func(settings *draw.Settings, clock Clock) (store.Store, error)

// Clock tells a store its time.
type Clock interface{ Now() time.Time }

// Mortal is a store that ends in the middle of a history, and is opened again from what it has kept.
type Mortal interface {
	Next()
	End()
}

// The lines of layout.lua that ask Redis for the time, and what replaces them here.
const (
	realTime = "local now = redis.call('TIME')\nnow = now[1] * 1000 + math.floor(now[2] / 1000)\n"
	heldTime = "local now = tonumber(redis.call('GET', 'history:time') or 1e12)\n"
	timeKey  = "history:time"
)

// Redis opens a store on a Redis of its own for each history. Calls leave the bubble, as a bubble's time stops while one of its
// goroutines waits for a network: they are made by a goroutine outside, one at a time.
func Redis(t *testing.T) Open {
	t.Helper()
	server := redistest.Start(t)
	o, err := redis.ParseURL(server.URL)
	require.NoError(t, err)
	// The client must not retry by itself: the bus alone repeats calls, and shows each to the auditor.
	o.DisableIdentity, o.ContextTimeoutEnabled, o.MaxRetries = true, true, -1
	hook := &timeHook{shas: map[string]string{}}
	client := redis.NewClient(o)
	client.AddHook(hook)
	t.Cleanup(func() { _ = client.Close() })
	// The channels are made outside of the bubble, so that a goroutine of the bubble that waits for
	// them does not count as blocked for good, and the time of the bubble waits with it.
	jobs, done := make(chan func()), make(chan struct{})
	go func() {
		for job := range jobs {
			job()
			done <- struct{}{}
		}
	}()
	t.Cleanup(func() { close(jobs) })
	n, ctx := 0, t.Context()
	return func(settings *draw.Settings, clock Clock) (store.Store, error) {
		// A restore opens a second store in the middle of a history: the prefix keeps what the client
		// may remember of the first apart.
		n++
		out := &outside{ctx: ctx, client: client, hook: hook, clock: clock, jobs: jobs, done: done}
		var err error
		out.do(func() {
			err = client.FlushDB(ctx).Err()
			if err != nil {
				return
			}
			if err = client.Set(ctx, timeKey, hook.now, 0).Err(); err != nil {
				return
			}
			out.store, err = redisstore.New(ctx, client, redisstore.Config{
				Prefix: fmt.Sprintf("h%d:", n), Partitions: settings.Partitions, Retention: settings.Retention, Kept: settings.Kept, MaxTasks: settings.MaxTasks,
			})
		})
		return out, err
	}
}

// timeHook gives scripts, and who asks Redis itself, the time of the history.
// It needs no lock, as jobs are done one after the other.
type timeHook struct {
	now  int64             // in milliseconds
	shas map[string]string // of scripts: of what they are sent as
}

// DialHook changes nothing.
func (*timeHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook changes one command.
func (h *timeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		asked := h.change(cmd)
		err := next(ctx, cmd)
		h.tell(asked)
		return err
	}
}

// ProcessPipelineHook changes the commands of a pipeline.
func (h *timeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var asked []*redis.Cmd
		for _, cmd := range cmds {
			if c := h.change(cmd); c != nil {
				asked = append(asked, c)
			}
		}
		err := next(ctx, cmds)
		for _, c := range asked {
			h.tell(c)
		}
		return err
	}
}

// change changes a command before it is sent. It returns it if it asks for the time.
// A script is sent by its hash first. Only the changed text is ever loaded, so that the hash of the
// real one is unknown to the server until the text has followed, and is mapped from then on.
func (h *timeHook) change(cmd redis.Cmder) *redis.Cmd {
	args := cmd.Args()
	name, _ := args[0].(string)
	switch strings.ToLower(name) {
	// A PING is sent in its place, so that the client still waits for an answer; tell then writes the
	// time into it.
	case "time":
		args[0] = "PING"
		c, _ := cmd.(*redis.Cmd)
		return c
	case "eval":
		text, _ := args[1].(string)
		if !strings.Contains(text, realTime) {
			// With the real time the history would not be the same again, which no test would notice.
			panic("layout.lua asks for the time in another way")
		}
		changed := strings.Replace(text, realTime, heldTime, 1)
		h.shas[sha(text)] = sha(changed)
		args[1] = changed
	case "evalsha":
		old, _ := args[1].(string)
		if changed, ok := h.shas[old]; ok {
			args[1] = changed
		}
	}
	return nil
}

// The answer has the form of TIME: seconds, and the microseconds of the current one.
func (h *timeHook) tell(c *redis.Cmd) {
	if c != nil && c.Err() == nil {
		c.SetVal([]any{fmt.Sprint(h.now / 1000), fmt.Sprint(h.now % 1000 * 1000)})
	}
}

func sha(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// outside is a store whose calls are made outside of the bubble.
type outside struct {
	ctx    context.Context //nolint:containedctx // of the calls: those of the bubble have timers of the bubble
	client *redis.Client
	hook   *timeHook
	clock  Clock
	jobs   chan func()
	done   chan struct{}
	store  store.Store
	set    int64
}

// do has a job done outside, at the time of the history.
// The key with the time is written only when that has changed, as most calls of a step share one.
func (o *outside) do(job func()) {
	now := o.clock.Now().UnixMilli()
	o.jobs <- func() {
		if o.hook.now = now; o.set != now && o.store != nil {
			o.set = now
			o.client.Set(o.ctx, timeKey, now, 0)
		}
		job()
	}
	<-o.done
}

func on[A any](o *outside, call func() (A, error)) (answer A, err error) {
	o.do(func() { answer, err = call() })
	return answer, err
}

// Folder opens a store in a folder. Its process dies between two calls now and then, or ends, and another one goes on from the files. No promise may show that.
func Folder(t *testing.T) Open {
	t.Helper()
	root, last := t.TempDir(), (*folder)(nil)
	return func(o *draw.Settings, clock Clock) (store.Store, error) {
		if last != nil { // a restore gives the history another store
			last.End()
		}
		f := &folder{root: root, config: filestore.Config{
			Clock: clock, Partitions: o.Partitions, Retention: o.Retention, Kept: o.Kept, MaxTasks: o.MaxTasks, SnapshotAfter: 16 << 10, Reserve: 1, Logger: slog.New(slog.DiscardHandler),
			Elsewhere: true, // it is the store's process alone that dies
		}}
		last = f
		return f, f.open(false)
	}
}

// folder is a store in a folder whose process is mortal.
type folder struct {
	*filestore.Store

	root   string
	config filestore.Config
	calls  int
}

// deathEvery is after how many calls its process dies, or ends.
const deathEvery = 60

// open opens a folder: an empty one, or a copy of what the last process has left in this moment, as a kill would have it.
func (f *folder) open(copied bool) error {
	dir, err := os.MkdirTemp(f.root, "")
	if err != nil {
		return err
	}
	if copied {
		err = os.CopyFS(dir, os.DirFS(f.config.Dir))
	}
	f.config.Dir = dir
	if err == nil {
		f.Store, err = filestore.Open(f.config)
	}
	return err
}

// Next counts a call, before which the process may have died or ended.
func (f *folder) Next() {
	if f.calls++; f.calls%deathEvery != 0 {
		return
	}
	dies, old, dir := f.calls/deathEvery%3 > 0, f.Store, f.config.Dir
	if !dies {
		f.must(old.Close())
	}
	f.must(f.open(true))
	if dies {
		f.must(old.Close()) // it has lost its files, and only its goroutines are left
	}
	f.must(os.RemoveAll(dir))
}

// End ends the last process.
func (f *folder) End() {
	f.must(f.Close())
	f.must(os.RemoveAll(f.config.Dir))
}

// must ends the history: there is no other disk.
func (*folder) must(err error) {
	if err != nil {
		panic(err)
	}
}

// Memory opens a store in memory.
func Memory(o *draw.Settings, clock Clock) (store.Store, error) {
	return memstore.New(memstore.Config{Partitions: o.Partitions, Retention: o.Retention, Kept: o.Kept, MaxTasks: o.MaxTasks, Clock: clock}), nil
}
