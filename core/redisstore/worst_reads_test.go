package redisstore_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/race"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// worst is a store with a tenant that has as much of everything as it can, written past the scripts, as these would take too long.
type worst struct {
	*testing.T

	st    *redisstore.Store
	c     *redis.Client
	agent string // its name, as long as a name can be
	now   int64
	seq   int64
}

// mostTime is what a script may take.
const mostTime = 5 * time.Millisecond

// mostRounds is how often a measurement that is too slow is repeated: other processes share the machine, for seconds at a time.
const mostRounds = 60

// A tenant's numbers.
const (
	worstTasks   = 100_000
	worstKinds   = 5_000
	worstKept    = 10_000
	worstHolds   = 1_000
	worstGroups  = 10_000
	worstLarge   = 400 // of payloads and records of a quarter of a mebibyte
	largePayload = 256 << 10
)

func newWorst(t *testing.T) *worst {
	t.Helper()
	srv := redistest.Start(t)
	w := &worst{T: t, c: srv.Client(t), agent: strings.Repeat("a", 256), now: time.Now().UnixMilli()}
	w.st = open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	return w
}

// fill sends commands in pipelines.
func (w *worst) fill(n, each int, add func(p redis.Pipeliner, i int)) {
	w.Helper()
	for from := 0; from < n; from += each {
		p := w.c.Pipeline()
		for i := from; i < min(n, from+each); i++ {
			add(p, i)
		}
		_, err := p.Exec(w.Context())
		require.NoError(w, err)
	}
}

// id is as long as an id can be.
func id(prefix string, i int) string {
	return prefix + strings.Repeat("i", 250-len(prefix)) + fmt.Sprintf("%06d", i)
}

// live is a task as layout.lua describes it, and the member of its queue.
func (w *worst) live(id, kind string, body []byte) (live, member string) {
	w.seq++
	seq := binary.BigEndian.AppendUint64(nil, uint64(w.now*1024+w.seq))[1:]
	b := append(append([]byte(nil), seq...), '3')
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(id))), id...)
	b = append(append(b, byte(len(kind))), kind...)
	b = append(b, 0, 0)
	return string(append(b, body...)), string(seq) + id
}

// waiting gives an agent waiting tasks that are due in an hour, all in the same millisecond.
func (w *worst) waiting(agent string, n int, body []byte) {
	w.fill(n, 1000, func(p redis.Pipeliner, i int) {
		live, member := w.live(id("w", i), "k", body)
		p.HSet(w.Context(), part+"tasks", agent+":"+id("w", i), live)
		p.ZAdd(w.Context(), part+"queue:3:"+agent, redis.Z{Score: float64(w.now + 3_600_000), Member: member})
	})
	w.do("HSET", part+"agents", agent, fmt.Sprintf("M4%d", n))
	w.do("ZADD", part+"agenda", w.now+3_600_000, agent)
}

// parked gives an agent tasks of unknown kinds, beside some of another agent in each.
func (w *worst) parked(agent string, kinds int) {
	w.fill(kinds, 500, func(p redis.Pipeliner, i int) {
		kind := fmt.Sprint(strings.Repeat("k", 120), i)
		for k, name := range []string{agent, "other", "other2"} {
			live, _ := w.live(id("p", i), kind, nil)
			p.HSet(w.Context(), part+"tasks", name+":"+id("p", i), live)
			p.ZAdd(w.Context(), part+"parked:"+kind, redis.Z{Score: float64(w.now + int64(k)), Member: name + ":" + id("p", i)})
		}
		p.HIncrBy(w.Context(), part+"parked", kind, 3)
	})
	for _, name := range []string{agent, "other", "other2"} {
		w.do("HSET", part+"agents", name, fmt.Sprintf("M4%d", kinds))
	}
}

// history gives an agent finished tasks that ended a while ago.
func (w *worst) history(agent, prefix, verb string, n int, data []byte, ago time.Duration) {
	line := map[string]string{"f": "dead:", "c": "ends:"}[verb] + agent
	w.fill(n, 100, func(p redis.Pipeliner, i int) {
		at := w.now - ago.Milliseconds() + int64(i)
		p.HSet(w.Context(), part+"history:"+agent, id(prefix, i), fmt.Sprintf("%s%013d", verb, at)+string(data))
		if verb == "f" {
			p.ZAdd(w.Context(), part+"failed", redis.Z{Score: float64(at), Member: agent + ":" + id(prefix, i)})
		}
		p.LPush(w.Context(), part+line, string(binary.BigEndian.AppendUint64(nil, uint64(at))[2:])+id(prefix, i))
		if kib := len(data) >> 10; kib >= 4 {
			p.HIncrBy(w.Context(), part+"bytes", line, int64(kib))
		}
	})
	w.do("HSET", part+"finished", agent, "*")
}

func (w *worst) do(args ...any) {
	w.Helper()
	require.NoError(w, w.c.Do(w.Context(), args...).Err())
}

// scripts runs calls and returns how long each script took in Redis, and which it was.
func (w *worst) scripts(call func()) (took []time.Duration, names []string) {
	w.Helper()
	name := map[string]string{}
	for _, s := range redisstore.ScriptFiles() {
		name[s.SHA] = s.Name
	}
	w.do("CONFIG", "SET", "slowlog-log-slower-than", 0, "slowlog-max-len", 100_000)
	w.do("SLOWLOG", "RESET")
	call()
	entries, err := w.c.SlowLogGet(w.Context(), -1).Result()
	require.NoError(w, err)
	slices.Reverse(entries) // the newest comes first
	for _, e := range entries {
		if len(e.Args) > 1 && strings.EqualFold(e.Args[0], "evalsha") {
			took, names = append(took, e.Duration), append(names, name[e.Args[1]])
		}
	}
	require.NotEmpty(w, took)
	return took, names
}

// bounded demands that no script of some calls is slow. Calls that only read nearly always make the same scripts: while one of them is
// too slow they are made again, and the best time of each counts, as the machine is busy now and then.
func (w *worst) bounded(name string, call func()) {
	w.Helper()
	var best []time.Duration
	var names []string
	for i := 0; i == 0 || i < mostRounds && slices.Max(best) > mostTime; i++ {
		took, these := w.scripts(call)
		if !slices.Equal(names, these) { // the first time, or while Redis rehashes: then a scan has other pages
			best, names = took, these
		}
		for i := range took {
			best[i] = min(best[i], took[i])
		}
	}
	w.report(name, best, names)
}

// boundedInAll is bounded for calls that change what there is: the best of the rounds counts.
func (w *worst) boundedInAll(name string, call func(round int)) {
	w.Helper()
	var best []time.Duration
	var names []string
	for round := 0; round == 0 || round < mostRounds && slices.Max(best) > mostTime; round++ {
		took, these := w.scripts(func() { call(round) })
		if best == nil || slices.Max(took) < slices.Max(best) {
			best, names = took, these
		}
	}
	w.report(name, best, names)
}

func (w *worst) report(name string, took []time.Duration, names []string) {
	w.Helper()
	slowest := slices.Max(took)
	w.Logf("figure: %-26s %6d us in %s", name, slowest.Microseconds(), names[slices.Index(took, slowest)])
	assert.LessOrEqual(w, slowest, mostTime, name)
}

// walk reads all pages, and returns how many tasks they have.
func (w *worst) walk(q store.List) int {
	w.Helper()
	seen := map[string]int{}
	for {
		page, err := w.st.List(w.Context(), q)
		require.NoError(w, err)
		for _, s := range page.Tasks {
			seen[s.ID]++
			require.Equal(w, 1, seen[s.ID], "%s comes twice", s.ID)
		}
		if q.After = page.Next; q.After == "" {
			return len(seen)
		}
	}
}

// Nor does a step that drops what is too old, too much or too heavy, whatever the records are like.
func TestTrimsOfTheWorstTenant(t *testing.T) { //nolint:paralleltest // it measures
	if testing.Short() || race.Enabled {
		t.Skip("it takes a while, and what it measures is Redis: .ci/run makes it without the race detector")
	}
	w := newWorst(t)
	large := make([]byte, largePayload)
	w.history("old", "d", "f", worstLarge, large, 8*24*time.Hour)
	w.history("mixed", "s", "f", worstKept, []byte("small"), 2*time.Hour)
	w.history("mixed", "d", "f", worstLarge, large, time.Hour)
	w.history("small", "d", "f", worstKept+64, []byte("small"), time.Hour)
	for i := range 100 { // finished tasks of agents that have one each
		w.do("HSET", part+"finished", fmt.Sprint("single", i), "\x00\x011"+fmt.Sprintf("f%013d", w.now-3_600_000)+string(large))
	}
	for i := range 60 { // histories without an index, as a version before has left them, beside which no other has its turn
		w.fill(100, 100, func(p redis.Pipeliner, k int) {
			p.HSet(t.Context(), part+"history:"+fmt.Sprint("bare", i), id("b", k), fmt.Sprintf("c%013d", w.now-3_600_000))
		})
		w.do("HSET", part+"finished", fmt.Sprint("bare", i), "*")
	}
	n := 0
	w.boundedInAll("a sweep", func(int) {
		for range 8 {
			n++
			w.st.Sweep()
			claim(t, w.st, fmt.Sprint("sweep", n), 1)
		}
	})
	for _, agent := range []string{"mixed", "small"} {
		w.boundedInAll("a task ends, "+agent, func(round int) {
			for i := range 20 {
				s := sub(agent, fmt.Sprint("new", round, "-", i))
				_, err := w.st.Submit(t.Context(), []store.Submission{s})
				require.NoError(t, err)
				c := claim(t, w.st, fmt.Sprint(agent, round, "-", i), 1)
				require.Len(t, c.Tasks, 1)
				settle(t, w.st, store.VerbFail, c.Tasks...)
			}
		})
	}
	stats, err := w.st.Stats(t.Context())
	require.NoError(t, err)
	assert.Greater(t, stats.Trimmed, int64(100), "they did drop something")
}

// No read takes Redis long, however much a tenant has.
func TestReadsOfTheWorstTenant(t *testing.T) { //nolint:paralleltest // it measures
	if testing.Short() || race.Enabled {
		t.Skip("it takes a while, and what it measures is Redis: .ci/run makes it without the race detector")
	}
	w := newWorst(t)
	w.waiting(w.agent, worstTasks, []byte("body"))
	w.waiting("large", worstLarge, make([]byte, largePayload))
	w.parked("parked", worstKinds)
	w.history(w.agent, "d", "f", worstKept, make([]byte, 100), time.Hour)
	w.history(w.agent, "c", "c", worstKept, make([]byte, 100), time.Hour)
	w.history("large", "d", "f", worstLarge, make([]byte, largePayload), time.Hour)
	w.fill(worstGroups, 1000, func(p redis.Pipeliner, i int) {
		p.HSet(t.Context(), part+"group:"+w.agent+":"+id("g", i), "live", 1)
	})
	w.fill(worstHolds, 1000, func(p redis.Pipeliner, i int) {
		hold := fmt.Sprintf("%013d%013d", w.now+3_600_000, w.now) + strings.Repeat("r", 1000)
		p.HSet(t.Context(), part+"holds", "t:"+w.agent+":"+id("w", i), hold, "k:"+strings.Repeat("k", 120)+fmt.Sprint(i), hold)
		p.ZAdd(t.Context(), part+"leases", redis.Z{Score: float64(w.now + 3_600_000), Member: "@t:" + w.agent + ":" + id("w", i)})
	})
	w.fill(worstKinds, 500, func(p redis.Pipeliner, i int) {
		kind := fmt.Sprint(strings.Repeat("k", 120), i)
		p.HSet(t.Context(), part+"kinds", "l"+kind, 1, "r"+kind, 0, "s"+kind, strings.Repeat("s", 60))
		for range 20 * max(1-i/200, 0) {
			p.LPush(t.Context(), part+"failures:"+kind, fmt.Sprintf("%013d", w.now)+strings.Repeat("e", 1600))
		}
	})
	for i := range worstLarge { // agents that have one task, whole
		live, _ := w.live("1", "k", make([]byte, largePayload))
		w.do("HSET", part+"agents", fmt.Sprint("single", i), "S"+live)
		w.do("ZADD", part+"agenda", w.now-int64(i), fmt.Sprint("single", i))
	}
	w.fill(3000, 1000, func(p redis.Pipeliner, i int) {
		live, _ := w.live("1", "k", []byte("small"))
		p.HSet(t.Context(), part+"agents", id("small", i), "S"+live)
	})

	for limit, all := range map[int]string{100: "pages of 100", 1000: "pages of 1000"} {
		w.bounded("waiting, "+all, func() {
			q := store.List{Agent: w.agent, Limit: limit}
			for range 3 {
				page, err := w.st.List(t.Context(), q)
				require.NoError(t, err)
				require.Len(t, page.Tasks, limit)
				q.After = page.Next
			}
		})
	}
	w.bounded("finished, the first page", func() {
		for _, statuses := range [][]store.Status{{store.StatusFailed}, {store.StatusCompleted}, {store.StatusCancelled}} {
			_, err := w.st.List(t.Context(), store.List{Agent: w.agent, Limit: 1000, Statuses: statuses})
			require.NoError(t, err)
		}
	})
	w.bounded("running", func() {
		_, err := w.st.List(t.Context(), store.List{Agent: w.agent, Limit: 1000, Statuses: []store.Status{store.StatusInProgress}})
		require.NoError(t, err)
	})
	w.bounded("a group", func() {
		counts, err := w.st.Group(t.Context(), w.agent, id("g", 1))
		require.NoError(t, err)
		require.Equal(t, int64(1), counts.Live)
	})
	w.bounded("parked", func() { assert.Equal(t, worstKinds, w.walk(store.List{Agent: "parked", Limit: 1000, Brief: true})) })
	w.bounded("parked, whole", func() { assert.Equal(t, worstKinds, w.walk(store.List{Agent: "parked", Limit: 1000})) })
	w.bounded("large", func() { assert.Equal(t, 2*worstLarge, w.walk(store.List{Agent: "large", Limit: 1000})) })
	w.bounded("large, by id", func() {
		ids := make([]string, 100)
		for i := range ids {
			ids[i] = id("w", i)
		}
		_, err := w.st.Get(t.Context(), store.Get{Agent: "large", IDs: ids})
		require.NoError(t, err)
	})
	w.bounded("a large one, explained", func() {
		_, err := w.st.Get(t.Context(), store.Get{Agent: "large", IDs: []string{id("w", 1)}, Explain: true})
		require.NoError(t, err)
	})
	w.bounded("agents", func() {
		for q := (store.PageOf{Limit: 1000}); ; {
			page, err := w.st.Agents(t.Context(), q)
			require.NoError(t, err)
			if q.After = page.Next; q.After == "" {
				break
			}
		}
	})
	for _, c := range []struct {
		name   string
		place  store.Place
		member string // that the last page goes on behind, which is there no more
		most   int
	}{
		{"dead letters of all", store.PlaceFailed, "nobody:none", worstKept + worstLarge},
		{"what runs of all", store.PlaceRunning, "1", 0},
		{"what is overdue of all", store.PlaceOverdue, "nobody", worstLarge},
	} {
		w.bounded(c.name, func() {
			n := 0
			for q := (store.Find{Place: c.place, Limit: 1000}); ; {
				page, err := w.st.Find(t.Context(), q)
				require.NoError(t, err)
				n += len(page.Tasks)
				if q.After = page.Next; q.After == "" {
					break
				}
			}
			assert.Equal(t, c.most, n)
			_, err := w.st.Find(t.Context(), store.Find{Place: c.place, Limit: 100, After: fmt.Sprintf("%d.0.%s.", w.now-1, base64.RawURLEncoding.EncodeToString([]byte(c.member)))})
			require.NoError(t, err)
		})
	}
	w.bounded("pauses", func() {
		for q := (store.PageOf{Limit: 1000}); ; {
			page, err := w.st.Holds(t.Context(), q)
			require.NoError(t, err)
			if q.After = page.Next; q.After == "" {
				break
			}
		}
	})
	w.bounded("counters of kinds", func() {
		stats, err := w.st.Stats(t.Context())
		require.NoError(t, err)
		assert.Len(t, stats.Kinds, worstKinds)
	})
	assert.Equal(t, worstTasks+2*worstKept, w.walk(store.List{Agent: w.agent, Limit: 1000, Brief: true}), "a walk finds every task once")
}
