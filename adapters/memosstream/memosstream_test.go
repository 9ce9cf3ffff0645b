package memosstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/memosstream"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A message of MemOS is the task that the HTTP API makes of it, and MemOS's tracker says what becomes of it.
func TestAMessageBecomesATask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, redistest.Start(t))
	prefix := memosstream.DefaultPrefix
	w.fate = func(id string) error {
		if id == "bad" {
			return errors.New("no such memory")
		}
		return nil
	}
	first, id := produce(t, w.redis, prefix, "ann", "cube:1", "query", "i1", "task_id", "business", "new_field", "kept")
	stop := w.start(t, "", w.options)
	defer stop()
	drained(t, w.redis, first)
	// A stream that appears later is found too: this one is waited for, which ends the wait of the first.
	second, _ := produce(t, w.redis, prefix, "ann", "cube:1", "query", "bad")
	drained(t, w.redis, second)

	info, err := w.scheduler.Task(t.Context(), "ann", "i1")
	require.NoError(t, err)
	assert.Equal(t, []any{"query", "ann", "business", core.Level(1), "trace-i1", "s1", "cube:1", "Ann"},
		[]any{info.Kind, info.UserID, info.Group, info.Level, info.TraceID, info.SessionID, info.Labels["mem_cube_id"], info.Labels["user_name"]})
	assert.JSONEq(t, `{"monitor_flag":"x"}`, string(info.Info))
	var payload map[string]any
	require.NoError(t, json.Unmarshal(info.Payload, &payload))
	assert.Equal(t, map[string]any{
		"item_id": "i1", "user_id": "ann", "cube_id": "cube:1", "mem_cube_id": "cube:1", "trace_id": "trace-i1", "session_id": "s1", "label": "query",
		"cube": "Not Applicable", "content": "remember i1", "timestamp": "2026-11-22T10:00:00.123456+00:00", "user_name": "Ann",
		"info": map[string]any{"monitor_flag": "x"}, "task_id": "business", "chat_history": []any{}, "stream_key": first, "redis_message_id": id,
		"new_field": "kept",
	}, payload)
	items, err := w.redis.SMembers(t.Context(), "memos:task_items:ann:business").Result()
	require.NoError(t, err)
	assert.Equal(t, []string{"i1"}, items)
	assert.Equal(t, "waiting", record(t, w.redis, "i1")["status"])

	w.runDue(t)
	require.Eventually(t, func() bool {
		return record(t, w.redis, "bad")["status"] == "failed" && record(t, w.redis, "i1")["status"] == "completed"
	},
		5*time.Second, time.Millisecond)
	r := record(t, w.redis, "i1")
	assert.Equal(t, []any{"query", "cube:1", "2026-11-22T10:00:00.000000+00:00"}, []any{r["task_type"], r["mem_cube_id"], r["submitted_at"]})
	assert.NotEmpty(t, r["started_at"])
	assert.NotEmpty(t, r["completed_at"])
	assert.Equal(t, "no such memory", record(t, w.redis, "bad")["error"])
	for _, key := range []string{"memos:task_meta:ann", "memos:task_items:ann:business"} {
		ttl, err := w.redis.TTL(t.Context(), key).Result()
		require.NoError(t, err)
		assert.InDelta(t, 7*24*3600, ttl.Seconds(), 60, key)
	}
}

// Wherever a process dies, before or after a command has reached Redis, the next one loses nothing and runs nothing twice.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, late := range []bool{false, true} {
		for at := int64(1); ; at++ {
			w := newWorld(t, server)
			prefix := fmt.Sprintf("kill:%d:%v", at, late)
			want := map[string]int{}
			var names []string
			for _, user := range []string{"ann", "bob"} {
				for i := range 3 {
					user := fmt.Sprint(user, at, late)
					item := fmt.Sprint("item-", i)
					name, _ := produce(t, w.redis, prefix, user, "c", "mem_read", item)
					names = append(names, name)
					want[user+"/"+item] = 1
				}
			}
			c := &cutter{at: at, late: late, cut: make(chan struct{})}
			stop := w.start(t, prefix, c.options(w.options))
			require.Eventually(t, func() bool { return c.dead.Load() || left(w.redis, names) == 0 }, 10*time.Second, time.Millisecond)
			stop()
			w.runDue(t) // in between: what was stored and not acknowledged has ended by then
			died := c.dead.Load()
			stop = w.start(t, prefix, w.options)
			drained(t, w.redis, names...)
			stop()
			w.runDue(t)
			require.Equal(t, want, w.runs, "killed at write %d, late %v", at, late)
			if !died {
				require.Greater(t, at, int64(8), "there are more steps than that")
				break
			}
		}
	}
}

// A reply that is lost loses no entry: the same process reads again what it was sent.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for at := int64(1); at <= 12; at++ {
		w := newWorld(t, server)
		prefix := fmt.Sprintf("lost:%d", at)
		user := fmt.Sprint("user", at)
		name, _ := produce(t, w.redis, prefix, user, "c", "mem_read", "i1")
		c := &cutter{at: at, late: true, once: true, cut: make(chan struct{})}
		stop := w.start(t, prefix, c.options(w.options))
		drained(t, w.redis, name)
		stop()
		w.runDue(t)
		require.Equal(t, map[string]int{user + "/i1": 1}, w.runs, at)
	}
}

// left is how many entries streams have.
func left(c *redis.Client, names []string) (n int64) {
	for _, name := range names {
		one, err := c.XLen(context.Background(), name).Result()
		if err != nil {
			return 1
		}
		n += one
	}
	return n
}

// A message that makes no sense is set aside with the reason, and the others of its stream become tasks.
func TestPoisonIsSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, redistest.Start(t))
	name, _ := produce(t, w.redis, "p", "ann", "c", "query", "before")
	_, _ = produce(t, w.redis, "p", "ann", "c", "query", "bad-utf8", "user_name", "\xff")
	_, _ = produce(t, w.redis, "p", "ann", "c", "query", "no-user", "user_id", "")
	_, _ = produce(t, w.redis, "p", "ann", "c", "query", "disabled", "label", "mem_archive")
	_, _ = produce(t, w.redis, "p", "ann", "c", "query", "bad\x00id")
	bare, err := w.redis.XAdd(t.Context(), &redis.XAddArgs{Stream: name, Values: []any{"hello", "world"}}).Result()
	require.NoError(t, err)
	_, _ = produce(t, w.redis, "p", "ann", "c", "query", "broken-json", "info", "{", "chat_history", "no", "user_context", "{")
	nameless, err := w.redis.XAdd(t.Context(), &redis.XAddArgs{Stream: name, Values: []any{"user_id", "ann", "label", "query", "content", ""}}).Result()
	require.NoError(t, err)
	require.NoError(t, w.redis.Set(t.Context(), "p:a:b:string", "no stream", 0).Err())
	stop := w.start(t, "p", w.options)
	defer stop()
	drained(t, w.redis, name)
	tasks, _, err := w.scheduler.Tasks(t.Context(), core.List{Agent: "ann"})
	require.NoError(t, err)
	var ids []string
	for i := range tasks {
		ids = append(ids, tasks[i].ID)
	}
	require.Len(t, ids, 3)
	assert.Subset(t, ids, []string{"before", "broken-json"})
	assert.Contains(t, fmt.Sprint(ids), "memos-"+nameless)
	dead, err := w.redis.XRange(t.Context(), memosstream.DeadStream, "-", "+").Result()
	require.NoError(t, err)
	require.Len(t, dead, 5)
	reasons := map[any]any{}
	for _, d := range dead {
		assert.Equal(t, name, d.Values["duly_stream"])
		reasons[d.Values["duly_entry"]] = d.Values["duly_reason"]
	}
	assert.Equal(t, "user_id is required", fmt.Sprint(reasons[bare]), "the first that is missing, in one order")
	assert.Contains(t, w.logs.text(), "set aside")
}

// While the store is away, or an agent may have no more tasks, messages stay pending; streams of others are read.
func TestMessagesWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, redistest.Start(t))
	var full string
	for i := range 55 { // MaxTasks is 50
		full, _ = produce(t, w.redis, "p", "ann", "c", "query", fmt.Sprint("item-", i))
	}
	other, _ := produce(t, w.redis, "p", "bob", "c", "query", "b1")
	failure := error(&store.Error{Verb: "submit", Err: errors.New("away")})
	w.fail.Store(&failure)
	stop := w.start(t, "p", w.options)
	require.Eventually(t, func() bool {
		p, err := w.redis.XPending(t.Context(), full, "scheduler_group").Result()
		q, err2 := w.redis.XPending(t.Context(), other, "scheduler_group").Result()
		return err == nil && err2 == nil && p.Count+q.Count > 0
	}, 5*time.Second, time.Millisecond)
	stop()
	w.fail.Store(nil)
	stop = w.start(t, "p", w.options)
	drained(t, w.redis, other)
	require.Eventually(t, func() bool { return left(w.redis, []string{full}) == 5 }, 5*time.Second, time.Millisecond)
	w.runDue(t)
	more := 0
	require.Eventually(t, func() bool { // each message of bob ends a wait for what does not rest
		more++
		_, _ = produce(t, w.redis, "p", "bob", "c", "query", fmt.Sprint("more-", more))
		return left(w.redis, []string{full}) == 0
	}, 5*time.Second, 10*time.Millisecond)
	stop()
	w.runDue(t)
	for i := range 55 {
		assert.Equal(t, 1, w.runs[fmt.Sprint("ann/item-", i)], i)
	}
	for id, n := range w.runs {
		assert.Equal(t, 1, n, id)
	}
}

// Two live messages with one item_id are two tasks; one that was sent again is one.
func TestAnItemSentTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, redistest.Start(t))
	_, _ = produce(t, w.redis, "p", "ann", "c", "query", "i1")
	name, id := produce(t, w.redis, "p", "ann", "c", "query", "i1", "content", "something else")
	stop := w.start(t, "p", w.options)
	defer stop()
	drained(t, w.redis, name)
	assert.Equal(t, 2, w.runDue(t).Completed)
	assert.Len(t, w.runs, 2)
	assert.Contains(t, w.logs.text(), id)
}

// A message that needs an id of its own stays pending as any other does while its agent may have no more tasks.
func TestAnItemSentTwiceToAFullAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, redistest.Start(t))
	var name string
	for i := range 50 { // MaxTasks is 50
		name, _ = produce(t, w.redis, "p", "ann", "c", "query", fmt.Sprint("item-", i))
	}
	stop := w.start(t, "p", w.options)
	drained(t, w.redis, name)
	_, _ = produce(t, w.redis, "p", "ann", "c", "query", "item-49", "content", "something else")
	require.Eventually(t, func() bool { return strings.Contains(w.logs.text(), "has the item_id of another one") }, 5*time.Second, time.Millisecond)
	stop()
	require.EqualValues(t, 1, left(w.redis, []string{name}), "it is stored nowhere else")
	// One of the others ends, so that there is room.
	report, err := w.scheduler.RunDue(t.Context(), core.Scope{MaxTasks: 1})
	require.NoError(t, err)
	require.Equal(t, 1, report.Ran)
	stop = w.start(t, "p", w.options)
	drained(t, w.redis, name)
	stop()
	w.runDue(t)
	assert.Len(t, w.runs, 51)
	for id, n := range w.runs {
		assert.Equal(t, 1, n, id)
	}
}

// What a consumer of MemOS has read and not finished is its own for as long as MemOS says, and then it is taken over. A stream that is
// deleted is forgotten, and found when it is made again.
func TestOtherConsumers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, redistest.Start(t))
	ctx := t.Context()
	name, old := produce(t, w.redis, "p", "ann", "c", "mem_read", "old")
	_, _ = produce(t, w.redis, "p", "ann", "c", "mem_read", "young")
	pref, _ := produce(t, w.redis, "p", "ann", "c", "pref_add", "pref")
	require.NoError(t, w.redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: "scheduler_group", Consumer: "scheduler_consumer_1234abcd", Streams: []string{name, pref, ">", ">"}, Count: 10,
	}).Err())
	prefs, err := w.redis.XRange(ctx, pref, "-", "+").Result()
	require.NoError(t, err)
	for stream, one := range map[string]struct{ id, idle string }{name: {old, "3700000"}, pref: {prefs[0].ID, "700000"}} {
		require.NoError(t, w.redis.Do(ctx, "XCLAIM", stream, "scheduler_group", "scheduler_consumer_1234abcd", 0, one.id, "IDLE", one.idle, "JUSTID").Err())
	}
	stop := w.start(t, "p", w.options)
	drained(t, w.redis, pref)
	require.Eventually(t, func() bool { return left(w.redis, []string{name}) == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, w.redis.Del(ctx, pref).Err())
	_, _ = produce(t, w.redis, "p", "ann", "c", "mem_read", "next")
	require.Eventually(t, func() bool {
		_, err := w.scheduler.Task(ctx, "ann", "next")
		return err == nil
	}, 15*time.Second, time.Millisecond)
	stop()
	assert.EqualValues(t, 1, left(w.redis, []string{name}), "young is not ours")
	exists, err := w.redis.Exists(ctx, pref).Result()
	require.NoError(t, err)
	assert.Zero(t, exists, "a stream that MemOS deletes stays deleted")
}

// Settings that cannot work are refused, and no error shows a password.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "redis+cluster://:hunter2@a:1,b:2", "http://:hunter2@a", "redis://:hunter2@a:1/%zz"} {
		_, err := memosstream.New(memosstream.Config{URL: url})
		require.Error(t, err, url)
		assert.NotContains(t, err.Error(), "hunter2")
	}
	_, err := memosstream.New(memosstream.Config{URL: "rediss://a:1", CAFile: "/nowhere"})
	require.Error(t, err)
}

// A record that a dead process has left behind gets the end that its task has; one of a task that has not ended, and what is not MemOS's, stay.
func TestRecordsThatWereLeftBehindAreMended(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	w := newWorld(t, server)
	w.fate = func(id string) error {
		if id == "bad" {
			return core.SkipRetry(errors.New("no"))
		}
		return nil
	}
	var name string
	for _, item := range []string{"done", "bad"} {
		name, _ = produce(t, w.redis, "p", "a:b", "cube", "query", item)
	}
	stop := w.start(t, "p", w.options)
	drained(t, w.redis, name)
	stop()
	w.runDue(t)
	_, err := w.scheduler.Submit(t.Context(), core.NewTask{Agent: "a:b", ID: "later", Kind: "query", Delay: time.Hour})
	require.NoError(t, err)
	before := map[string]any{
		"done": `{"status": "in_progress", "task_type": "query", "started_at": "x"}`, "bad": `{"status":"waiting"}`, "later": `{"status":"waiting"}`, "odd": "{", "none": `{"status":"waiting"}`,
	}
	require.NoError(t, w.redis.HSet(t.Context(), "memos:task_meta:a:b", before).Err())
	stop = w.start(t, "p", w.options)
	defer stop()
	record := func(item string) string {
		text, err := w.redis.HGet(t.Context(), "memos:task_meta:a:b", item).Result()
		require.NoError(t, err)
		return text
	}
	require.Eventually(t, func() bool {
		return strings.Contains(record("bad"), `"failed"`) && strings.Contains(record("done"), `"completed"`)
	}, 10*time.Second, 5*time.Millisecond)
	assert.Contains(t, record("bad"), `"error":"no"`)
	assert.Contains(t, record("done"), `"started_at":"x"`)
	for _, item := range []string{"later", "odd", "none"} {
		assert.Equal(t, before[item], record(item))
	}
}

// MemOS's own variables name its streams, and two stores on one Redis set messages aside apart.
func TestStreamsAreNamedByTheEnvironment(t *testing.T) {
	w := newWorld(t, redistest.Start(t))
	t.Setenv("MEMSCHEDULER_REDIS_STREAM_KEY_PREFIX", "renamed")
	name, _ := produce(t, w.redis, "renamed", "ann", "c", "query", "1")
	_, _ = produce(t, w.redis, "renamed", "ann", "c", "query", "late", "timestamp", "yesterday")
	w.dead = "own:memos:dead"
	stop := w.start(t, "", w.options)
	defer stop()
	drained(t, w.redis, name)
	tasks, _, err := w.scheduler.Tasks(t.Context(), core.List{Agent: "ann"})
	require.NoError(t, err)
	require.Len(t, tasks, 1)
	assert.Equal(t, int64(1), w.redis.XLen(t.Context(), "own:memos:dead").Val())
	assert.Zero(t, w.redis.Exists(t.Context(), memosstream.DeadStream).Val())
}

// A key of the tracker that is none of MemOS's makes each write fail: the messages run, and the log is not flooded.
func TestATrackerOfAnotherTypeIsLoggedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, redistest.Start(t))
	var name string
	for i := range 40 {
		name, _ = produce(t, w.redis, "p", "ann", "c", "query", fmt.Sprint(i))
	}
	require.NoError(t, w.redis.Del(t.Context(), "memos:task_meta:ann").Err())
	require.NoError(t, w.redis.Set(t.Context(), "memos:task_meta:ann", "no hash", 0).Err())
	w.clock = core.SystemClock{}
	stop := w.start(t, "p", w.options)
	drained(t, w.redis, name)
	assert.Equal(t, 40, w.runDue(t).Completed)
	stop()
	assert.Equal(t, 1, strings.Count(w.logs.text(), "status tracker cannot be written"))
}
