package history_test

// The tests: rounds of tasks that clients and workers fall upon, and whether what they were told makes sense.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/cli"
	"github.com/seed-6f6f2c11/duly/internal/proof"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

const (
	kind       = "work"
	lease      = 300 * time.Millisecond
	commandEnv = "DULY_HISTORY_COMMAND"

	clients  = 6  // of each task
	commands = 14 // of each client
	atOnce   = 12 // tasks
)

// TestMain is duly itself in the processes that the command line's client starts.
func TestMain(m *testing.M) {
	if os.Getenv(commandEnv) != "" {
		os.Exit(cli.Main(context.Background(), "", os.Args[1:]))
	}
	logging.Disable()
	goleak.VerifyTestMain(m)
}

// Whatever many clients and workers do to a task at once, and though Redis is killed now and then, what each was told is what one
// after the other would have been told.
func TestHistories(t *testing.T) {
	t.Parallel()
	// With everysec, Redis puts off what it has answered already while an fsync takes long, and a kill loses it.
	redis := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	open := func() store.Store {
		st, err := redisstore.Open(t.Context(), redisstore.Config{URL: redis.URL})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, st.Close()) })
		return st
	}
	newBench(t, open, onCommandLine{redis.URL}, inSocket).histories(func() { redis.Kill(); redis.Restart(t) })
}

// The same on a store in a folder.
func TestHistoriesOfAFolder(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	// A call that has returned is over, and a death waits for those that are under way.
	newBench(t, func() store.Store { return m }, nil, 0).histories(m.die)
}

// histories makes histories and checks each, with an outage in one of five rounds.
func (b *bench) histories(outage func()) {
	t := b.t
	histories := proof.Size(150, 10_000)
	operations, longest, checked, undecided := 0, 0, 0, 0
	for round := 0; checked < histories; round++ {
		r := newRecorder("a"+strconv.Itoa(round)+"-", b.late)
		b.r.Store(r)
		if round%5 == 4 {
			b.round(round, r, outage)
		} else {
			b.round(round, r, nil)
		}
		for agent, history := range r.of {
			checked++
			operations += len(history)
			longest = max(longest, len(history))
			if !check(t, agent, history) {
				undecided++
			}
		}
	}
	assert.LessOrEqual(t, undecided, checked/100)
	proof.Figure(t, "%d histories of %d operations on average, %d at most: %d can be put in an order, none cannot, of %d this was not found out in time", checked, operations/checked, longest, checked-undecided, undecided)
}

// check looks for an order in which the model gives the same answers. It reports whether it was found out in time that there is one.
func check(t *testing.T, agent string, history []porcupine.Operation) bool {
	t.Helper()
	result, info := porcupine.CheckOperationsVerbose(model(), history, 20*time.Second)
	if result != porcupine.Illegal {
		return result == porcupine.Ok
	}
	if path := os.Getenv("DULY_HISTORY_FILE"); path != "" {
		require.NoError(t, porcupine.VisualizePath(model(), info, path))
	}
	explained := map[string]bool{}
	for _, some := range info.PartialLinearizationsOperations() {
		for _, ops := range some {
			if len(ops) > len(explained) {
				clear(explained)
				for _, op := range ops {
					explained[fmt.Sprint(op)] = true
				}
			}
		}
	}
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, op := range history {
		mark := "NOT "
		if explained[fmt.Sprint(op)] {
			mark = ""
		}
		t.Logf("%8d..%8d us, %s client %3d: %s", op.Call/1000, op.Return/1000, mark+"explained,", op.ClientId, describe(op.Input, op.Output))
	}
	require.Equal(t, porcupine.Ok, result, "%s: no order explains what its clients were told", agent)
	return false
}

// bench is a store, two workers, and clients of each sort.
type bench struct {
	t       *testing.T
	open    func() store.Store
	r       atomic.Pointer[recorder]
	clients []client
	line    client
	late    time.Duration // of recorders
	defs    atomic.Int64
}

// newBench begins. line is a client that is used now and then; nil for none.
func newBench(t *testing.T, open func() store.Store, line client, late time.Duration) *bench {
	t.Helper()
	b := &bench{t: t, open: open, line: line, late: late}
	b.r.Store(newRecorder("none", b.late))
	for i := range 2 {
		b.work(100 + i)
	}
	s := b.scheduler(open())
	server := httptest.NewServer(httpadapter.New(b.scheduler(open()), httpadapter.Config{}))
	t.Cleanup(server.Close)
	b.clients = []client{inGo{s}, inGo{s}, inGo{b.scheduler(open())}, overHTTP{server.URL}}
	return b
}

func (b *bench) scheduler(st store.Store) *core.Scheduler {
	s, err := core.New(st, core.Config{
		Concurrency: 20, Default: core.KindConfig{Lease: lease, Backoff: -1, MaxAttempts: 2}, MaxCrashes: 1000,
	})
	require.NoError(b.t, err)
	return s
}

// work starts a worker whose runs end in any way.
func (b *bench) work(client int) {
	st := b.open()
	s := b.scheduler(&worker{Store: st, r: &b.r, client: client, loses: 0.01})
	core.Handle(s, kind, func(ctx context.Context, _ *core.Task[numbered]) error {
		select {
		case <-time.After(time.Duration(rand.IntN(8)) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		switch n := rand.IntN(100); {
		case n < 55:
			return nil
		case n < 85:
			return errors.New("failed")
		case n < 92:
			return core.Cancel(errors.New("no more"))
		default:
			return core.Snooze(5 * time.Millisecond)
		}
	})
	waker, _ := st.(store.Waker)
	d, err := daemon.New(s, daemon.Config{Tick: 20 * time.Millisecond, Patrol: -1, Waker: waker})
	require.NoError(b.t, err)
	require.NoError(b.t, d.Start())
	b.t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		assert.NoError(b.t, d.Stop(ctx))
	})
}

// countdown is done after so many.
type countdown struct {
	left atomic.Int64
	done chan struct{}
}

func (c *countdown) one() {
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

// round lets clients fall upon new tasks, and something happen in the midst of it.
func (b *bench) round(n int, r *recorder, meanwhile func()) {
	var all sync.WaitGroup
	midst := &countdown{done: make(chan struct{})}
	each := commands
	if meanwhile != nil { // what is under way then may have been done or not, which makes the search long
		each /= 2
	}
	midst.left.Store(int64(atOnce * clients * each / 3))
	for i := range atOnce {
		agent := "a" + strconv.Itoa(n) + "-" + strconv.Itoa(i)
		for c := range clients {
			all.Go(func() { b.client(agent, c, each, r, midst) })
		}
	}
	if meanwhile != nil {
		<-midst.done
		r.outage(meanwhile)
	}
	close(r.back)
	all.Wait()
	// What still runs is not waited for, its history ends here; but what workers have done is recorded first.
	b.r.Store(newRecorder("none", b.late))
	r.calls.Lock()
	defer r.calls.Unlock()
}

// client gives commands about one task.
func (b *bench) client(agent string, number, commands int, r *recorder, midst *countdown) {
	for range commands {
		midst.one()
		c := b.clients[rand.IntN(len(b.clients))]
		if b.line != nil && rand.IntN(400) == 0 {
			c = b.line
		}
		in := input{verb: anyVerb(), def: int(b.defs.Add(1))}
		called := time.Now()
		out := c.do(b.t.Context(), agent, in)
		r.add(agent, number, called, in, out)
		if out.code == core.CodeUnavailable {
			<-r.back // what nobody knows the outcome of makes the search long
		}
	}
}

func anyVerb() string {
	for _, v := range []struct {
		verb  string
		share int
	}{{submitKeep, 18}, {submitReplace, 14}, {cancel, 8}, {pause, 7}, {resume, 9}, {remove, 7}, {runNow, 8}, {replay, 9}} {
		if rand.IntN(100) < v.share {
			return v.verb
		}
	}
	return get
}
