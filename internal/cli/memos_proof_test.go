package cli_test

// MemOS's producer, a real Redis and daemons that are killed at each of their commands.

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// memosSteps is how many sorts of commands a daemon sends once it was sent a message, until that has ended: more come only when it has nothing to
// do. Two of three are tried, each before Redis gets it or after that in turn; all of them, both ways, with the variable.
const (
	memosSteps     = 17
	allKills       = "DULY_TEST_MEMOS_ALL_KILLS"
	memosStream    = "scheduler:messages:stream:v2.0:ann:cube:note"
	memosProducer  = "../../adapters/memosstream/testdata/producer.py"
	messageArrives = "item_id" // is in the answer that does
	noSuchStep     = 5 * time.Second
)

// memosKill is a command to kill a daemon at.
type memosKill struct {
	at     int
	before bool
}

// memosKills are those that are tried.
func memosKills() (all []memosKill) {
	for at := 1; at <= memosSteps; at++ {
		switch {
		case os.Getenv(allKills) != "":
			all = append(all, memosKill{at, false}, memosKill{at, true})
		case at%3 != 0:
			all = append(all, memosKill{at, len(all)%2 == 0})
		}
	}
	return all
}

// gate is a proxy in front of Redis that kills a daemon at one of its commands, before Redis gets it or before its answer comes back.
type gate struct {
	net.Listener

	to     string
	conns  sync.WaitGroup
	armed  atomic.Bool
	mu     sync.Mutex
	seen   map[string]bool // commands since then, each script by itself
	at     int
	before bool
	victim func(command string)
	once   sync.Once
}

// newGate opens a gate to a Unix socket, which calls victim at the command that is meant, if it is set. It closes with the test.
func newGate(t *testing.T, to string, kill memosKill, victim func(command string)) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &gate{Listener: l, to: to, at: kill.at, before: kill.before, victim: victim, seen: map[string]bool{}}
	var open sync.Map
	g.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("unix", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			open.Store(c, s)
			end := sync.OnceFunc(func() { _ = c.Close(); _ = s.Close() })
			g.conns.Go(func() { defer end(); g.commands(c, s) })
			g.conns.Go(func() { defer end(); g.answers(s, c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Range(func(c, s any) bool { _ = c.(net.Conn).Close(); _ = s.(net.Conn).Close(); return true })
		g.conns.Wait()
	})
	return g
}

// answers passes answers on. The first one with a message arms the gate.
func (g *gate) answers(from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if strings.Contains(string(buffer[:n]), messageArrives) {
			g.armed.Store(true)
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// commands passes commands on one by one, and kills at the one that is meant.
func (g *gate) commands(from, to net.Conn) {
	r := bufio.NewReader(from)
	for {
		raw, name, err := New(r)
		if err != nil {
			return
		}
		kills := g.victim != nil && g.armed.Load() && g.meant(name)
		if kills && g.before {
			g.once.Do(func() { g.victim(name) })
			return
		}
		if _, err := to.Write(raw); err != nil {
			return
		}
		if kills { // Redis has it, and the answer finds nobody
			g.once.Do(func() { g.victim(name) })
			return
		}
	}
}

// meant reports whether a command is the one to kill at: the n-th that is not like one before it.
func (g *gate) meant(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen[name] {
		return false
	}
	g.seen[name] = true
	return len(g.seen) == g.at
}

// New reads one command in RESP, and its name: with its hash if it is a script.
func New(r *bufio.Reader) (raw []byte, name string, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, "", err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	raw = line
	for i := 0; i < n && err == nil; i++ {
		if line, err = r.ReadBytes('\n'); err != nil {
			break
		}
		size, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
		value := make([]byte, size+2)
		_, err = io.ReadFull(r, value)
		switch {
		case i == 0:
			name = strings.ToUpper(string(value[:size]))
		case i == 1 && name == "EVALSHA":
			name += " " + string(value[:min(size, 8)])
		}
		raw = append(append(raw, line...), value...)
	}
	return raw, name, err
}

// What MemOS's producer writes, by a client that knows nothing of duly, is run, however daemons die: each item once, and once more only if the
// daemon that ran it was killed. Its tracker says so in the end.
func TestMemOSMessagesSurviveKills(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there: nothing produces what MemOS's producer does")
	}
	kills := memosKills()
	w := newWorld(t)
	c := w.redis.Client(t)
	log := filepath.Join(t.TempDir(), "starts")
	config := file(t, fmt.Sprintf(`
lease: 1s
max_crashes: 50
handlers:
  note: { exec: ["sh", "-c", 'echo "$DULY_TASK_ID $DAEMON" >>"$0"', %s] }
memos: { stream: {} }
`, log))
	produce := func(first, n int) {
		out, err := exec.Command(python, memosProducer, w.redis.Addr, "scheduler:messages:stream:v2.0", "ann", "cube", "note",
			strconv.Itoa(first), strconv.Itoa(n)).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	daemon := func(number int, g *gate) *running {
		env := append(slices.Clone(w.env), fmt.Sprint("DAEMON=", number), "DULY_REDIS_URL=redis://"+g.Addr().String())
		return (&world{redis: w.redis, env: env}).start(t, "daemon", "-c", config)
	}
	produce(0, 1)
	for i, kill := range kills {
		n := i + 1
		var d *running
		dies, ready := make(chan string, 1), make(chan struct{})
		g := newGate(t, w.redis.Addr, kill, func(name string) {
			<-ready
			_ = d.cmd.Process.Signal(syscall.SIGKILL)
			dies <- name
		})
		produce(n, 1)
		d = daemon(n, g)
		close(ready)
		select {
		case name := <-dies:
			t.Logf("daemon %d was killed at its command %d, %s, before Redis had it: %t", n, g.at, name, g.before)
		case <-time.After(noSuchStep):
			t.Logf("daemon %d sent fewer sorts of commands than %d, and was killed while it had nothing to do", n, g.at)
			g.once.Do(func() { g.victim("") })
		}
		<-d.ended
	}
	d := daemon(len(kills)+1, newGate(t, w.redis.Addr, memosKill{}, nil))
	s := w.scheduler(t)
	for n := range len(kills) + 1 {
		id := fmt.Sprint("item-", n)
		settled(t, s, "ann", id, "completed")
		require.Eventually(t, func() bool {
			record, err := c.HGet(t.Context(), "memos:task_meta:ann", id).Result()
			return err == nil && strings.Contains(record, `"status":"completed"`)
		}, 20*time.Second, 10*time.Millisecond, "the tracker of MemOS does not say that %s is completed", id)
	}
	left, err := c.XLen(t.Context(), memosStream).Result()
	require.NoError(t, err)
	assert.Zero(t, left)
	code, _ := d.stop(t, syscall.SIGTERM)
	assert.Zero(t, code)
	runs := map[string][]string{}
	for line := range strings.Lines(read(t, log)) {
		id, by, _ := strings.Cut(strings.TrimSpace(line), " ")
		runs[id] = append(runs[id], by)
	}
	assert.Len(t, runs, len(kills)+1, "nothing was lost")
	for id, by := range runs {
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(by))), len(by), "%s was run twice by one daemon: %v", id, by)
	}
	t.Logf("figure: %d messages, %d kills, %d starts", len(kills)+1, len(kills), strings.Count(read(t, log), "\n"))
}
