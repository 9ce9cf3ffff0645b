package cli_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// lineOf is the next line of JSON that has all of some parts.
func lineOf(t *testing.T, r *running, parts ...string) map[string]any {
	t.Helper()
	return parse[map[string]any](t, r.line(t, parts...))
}

// What commands do, each a process of its own, reaches another process that reads the store, with and without a server between them; on a server and
// on a cluster. One that is killed leaves nothing behind that lasts, and who comes back goes on where it was.
func TestEventsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) (*redistest.Server, string){
		"server": func(t *testing.T) (*redistest.Server, string) {
			t.Helper()
			srv := redistest.Start(t)
			return srv, srv.URL
		},
		"cluster": func(t *testing.T) (*redistest.Server, string) {
			t.Helper()
			srv := redistest.StartCluster(t)
			return srv, "redis+cluster://" + srv.Addr
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, url := start(t)
			w := noRedis()
			w.env = append(w.env, "DULY_REDIS_URL="+url)
			config := file(t, handlersFile)
			api := w.start(t, "serve", "-c", config, "--http", "127.0.0.1:0") // it runs nothing by itself
			direct := w.start(t, "events", "--json")
			direct.line(t, "following")
			served := w.start(t, "events", "--server", api.url(t), "--json", "--agent", "ada")
			served.line(t, "following")
			for _, cmd := range [][]string{
				{"submit", "--agent", "ada", "--id", "one", "--kind", "note"},
				{"pause", "ada", "one", "--reason", "why"},
				{"resume", "ada", "one"},
				{"run-due", "-c", config, "--all"},
			} {
				w.ok(t, cmd...)
			}
			var last string
			for _, r := range []*running{direct, served} {
				ids := map[any]bool{}
				for _, event := range []string{"enqueue", "pause", "resume", "dequeue", "start", "finish"} {
					e := lineOf(t, r, `"event":"`+event+`"`)
					assert.Equal(t, []any{"ada", "one"}, []any{e["agent_id"], e["id"]})
					last, _ = e["event_id"].(string)
					ids[last] = true
				}
				assert.Len(t, ids, 6)
			}
			require.NoError(t, direct.cmd.Process.Signal(syscall.SIGKILL))
			<-direct.ended
			w.ok(t, "submit", "--agent", "ada", "--id", "two", "--kind", "note")
			enveloped := w.start(t, "events", "--cloudevents", "--since-id", last)
			c := lineOf(t, enveloped, `"type":"duly.task.enqueue"`)
			assert.Equal(t, []any{"1.0", "/v1/agents/ada", "two"}, []any{c["specversion"], c["source"], c["subject"]})
			code, _ := enveloped.stop(t, syscall.SIGINT)
			assert.Equal(t, 0, code)
			back := w.start(t, "events", "--json", "--since-id", last)
			e := lineOf(t, back, `"event_id"`)
			assert.Equal(t, []any{"enqueue", "two"}, []any{e["event"], e["id"]}, "nothing twice, and nothing left out")
			assert.NotContains(t, back.log(), "missed")
			code, _ = back.stop(t, syscall.SIGINT)
			assert.Equal(t, 0, code)
			require.NoError(t, served.cmd.Process.Signal(syscall.SIGKILL))
			<-served.ended
			_, _ = api.stop(t, syscall.SIGKILL)
			nobodyListens(t, srv.Client(t), func() { w.ok(t, "submit", "--agent", "ada", "--id", "three", "--kind", "note") })
		})
	}
}

// nobodyListens checks that what said that somebody does goes by itself, and that nothing is published from then on.
func nobodyListens(t *testing.T, c *redis.Client, do func()) {
	t.Helper()
	watched := c.Keys(t.Context(), "*:watched").Val()
	require.NotEmpty(t, watched)
	for _, key := range watched {
		left := c.PTTL(t.Context(), key).Val()
		assert.Positive(t, left)
		assert.LessOrEqual(t, left, 30*time.Second)
		require.NoError(t, c.PExpire(t.Context(), key, time.Millisecond).Err()) // the test does not wait for so long
	}
	require.Eventually(t, func() bool { return c.Exists(t.Context(), watched[0]).Val() == 0 }, 10*time.Second, time.Millisecond)
	stream := c.Keys(t.Context(), "*:events").Val()
	require.Len(t, stream, 1)
	kept := c.XLen(t.Context(), stream[0]).Val()
	do()
	assert.Equal(t, kept, c.XLen(t.Context(), stream[0]).Val())
}

func TestEventsOfAStoreSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	oneLine(t, w.duly(t, "events", "--since-id", "yesterday"), 2, `--since-id "yesterday" is not the id of an event: take one that was sent with an event`)
	c := w.redis.Client(t)
	l := w.start(t, "events")
	l.line(t, "following")
	require.NoError(t, c.Do(t.Context(), "ACL", "SETUSER", "default", "-xrevrange").Err())
	<-l.ended
	assert.Equal(t, 5, l.cmd.ProcessState.ExitCode())
	assert.Contains(t, l.log(), "the Redis user lacks a permission that events need")
	assert.Contains(t, l.log(), "try again once it is back, with --since-id ")
}
