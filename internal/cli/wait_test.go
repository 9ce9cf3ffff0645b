package cli_test

// What commands wait for, and what waits for a person; the zones of what they show: on the store and through a server alike.

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

const waitedFor = `
handlers:
  fine: { exec: ["sh", "-c", 'echo "{\"n\":1}"'] }
  bad: { exec: ["sh", "-c", "echo no such model >&2; exit 65"], max_attempts: 1 }
  ask: { exec: ["sh", "-c", 'echo "duly-await: {\"key\":\"k\",\"from\":\"approval\",\"question\":\"Refund?\",\"timeout\":\"48h\"}" >&3; exit 76'] }
  hear: { exec: ["sh", "-c", 'echo "duly-await: {\"key\":\"done\"}" >&3; exit 76'] }
`

// A command waits until tasks have ended, and says how: by its exit code, too.
func TestWaitPrintsTheEnds(t *testing.T) {
	t.Parallel()
	local, far := served(t, "")
	for agent, w := range map[string]*world{"near": local, "far": far} {
		w.ok(t, "submit", "--agent", agent, "--id", "f", "--kind", "fine")
		w.ok(t, "submit", "--agent", agent, "--id", "b", "--kind", "bad", "--delay", "300ms")
		w.ok(t, "submit", "--agent", agent, "--id", "later", "--kind", "fine", "--delay", "1h")
		w.ok(t, "submit", "--agent", agent, "--id", "poll", "--kind", "fine", "--every", "1s")
	}
	late := local.duly(t, "wait", "near", "f", "--timeout", "200ms", "--json")
	assert.Equal(t, said{"unavailable", "", "task f of agent near has not ended within 200ms", "wait again with duly wait near f, or see duly explain near f", 5}, parse[said](t, late.stderr))

	d := local.start(t, "daemon", "-c", file(t, waitedFor))
	d.line(t, "duly is running")
	for agent, w := range map[string]*world{"near": local, "far": far} {
		assert.Equal(t, "task f of agent "+agent+" completed: {\"n\":1}\n", w.ok(t, "wait", agent, "f"))
		assert.Equal(t, "completed", w.object(t, "wait", "--agent", agent, "f")["status"])
		assert.Contains(t, w.ok(t, "wait", agent, "poll", "--timeout", "20s"), "task poll of agent "+agent+" ran: {\"n\":1}\n")
		r := w.duly(t, "wait", agent, "f", "b")
		assert.Equal(t, 4, r.code, r.stderr)
		assert.Equal(t, "task f of agent "+agent+" completed: {\"n\":1}\ntask b of agent "+agent+" failed: exit status 65: no such model\n", r.stdout)
		assert.Equal(t, "duly: wait: task b of agent "+agent+" failed: exit status 65: no such model; see duly explain "+agent+" b\n", r.stderr)
		assert.Equal(t, "runs_failed", w.fails(t, "wait", agent, "b").Code)
		w.ok(t, "cancel", agent, "later", "--reason", "not needed")
		assert.Equal(t, 4, w.duly(t, "wait", agent, "later").code)
		oneLine(t, w.duly(t, "wait", agent, "none"), 3, "has no task")
		oneLine(t, w.duly(t, "wait", agent), 2, "name them as AGENT ID")
	}
}

// A submit can wait for the end, and prints that in place of what it has stored.
func TestSubmitWaits(t *testing.T) {
	t.Parallel()
	local, far := served(t, "")
	late := local.duly(t, "submit", "--agent", "a", "--id", "late", "--kind", "fine", "--wait", "200ms")
	assert.Equal(t, 5, late.code)
	assert.Contains(t, late.stderr, "task late of agent a has not ended within 200ms; wait again with duly wait a late")
	d := local.start(t, "daemon", "-c", file(t, waitedFor))
	d.line(t, "duly is running")
	for agent, w := range map[string]*world{"near": local, "far": far} {
		assert.Equal(t, "task f of agent "+agent+" completed: {\"n\":1}\n", w.ok(t, "submit", "--agent", agent, "--id", "f", "--kind", "fine", "--wait", "20s"))
		assert.Equal(t, "task f of agent "+agent+" completed: {\"n\":1}\n", w.ok(t, "submit", "--agent", agent, "--id", "f", "--kind", "fine", "--wait", "20s"), "it has ended already")
		assert.Equal(t, "task poll of agent "+agent+" ran: {\"n\":1}\n", w.ok(t, "submit", "--agent", agent, "--id", "poll", "--kind", "fine", "--every", "1h", "--wait", "20s"))
		r := w.duly(t, "submit", "--agent", agent, "--id", "b", "--kind", "bad", "--wait", "20s", "--json")
		assert.Equal(t, 4, r.code, r.stderr)
		assert.Equal(t, "failed", parse[map[string]any](t, r.stdout)["status"])
	}
}

// What waits for a person is listed with its question, whoever asks where.
func TestApprovalsAreListed(t *testing.T) {
	t.Parallel()
	local, far := served(t, "")
	assert.Equal(t, "no task waits for a person\n", local.ok(t, "approvals"))
	for _, args := range [][]string{{"ann", "r", "ask"}, {"bob", "s", "hear"}, {"cleo", "u", "ask"}} {
		local.ok(t, "submit", "--agent", args[0], "--id", args[1], "--kind", args[2])
	}
	local.ok(t, "run-due", "--all", "-c", file(t, waitedFor))
	for _, more := range [][]string{{}, {"--agent", "ann"}, {"--agent", "bob"}, {"--kind", "ask", "--limit", "1"}} {
		alike(t, local, far, true, append([]string{"approvals"}, more...)...)
		alike(t, local, far, true, append([]string{"approvals", "--json"}, more...)...)
	}
	asked := local.objects(t, "approvals", "approvals")
	require.Len(t, asked, 2, "one that waits for any signal is not for a person")
	q := asked[0]
	if q["agent_id"] != "ann" { // partitions have no order
		q = asked[1]
	}
	assert.Equal(t, []any{"ann", "r", "ask", "Refund?", "k", "approval"}, []any{q["agent_id"], q["id"], q["kind"], q["question"], q["key"], q["from"]})
	since, err := time.Parse(time.RFC3339, q["since"].(string))
	require.NoError(t, err)
	until, err := time.Parse(time.RFC3339, q["until"].(string))
	require.NoError(t, err)
	assert.InDelta(t, 48*time.Hour, until.Sub(since), float64(time.Minute))
	assert.Regexp(t, `(?m)^AGENT +ID +QUESTION +KEY +SINCE +UNTIL\n(.*\n)?ann +r +Refund\? +k +20`, local.ok(t, "approvals"))
}

// A stream of events ends after a time or a number of events, with exit code 0.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	local, far := served(t, "")
	s := local.scheduler(t)
	for _, w := range []*world{local, far} {
		begun := time.Now()
		assert.Empty(t, w.ok(t, "events", "--for", "1s"))
		assert.Less(t, time.Since(begun), 20*time.Second)
		follower := w.start(t, "events", "--count", "2", "--json")
		follower.line(t, "following")
		submitted := make(chan error, 1)
		go func() {
			var err error
			for err == nil {
				select {
				case <-follower.ended:
					submitted <- nil
					return
				case <-time.After(20 * time.Millisecond):
					_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", Kind: "note", Delay: time.Hour})
				}
			}
			submitted <- err
		}()
		<-follower.ended
		require.NoError(t, <-submitted)
		assert.Zero(t, follower.cmd.ProcessState.ExitCode(), follower.log())
		assert.Equal(t, 2, strings.Count(follower.log(), `"event":"`), follower.log())
	}
}

// The zone of a cron expression is shown, also where none was named: by commands and in JSON.
func TestTheZoneOfACronIsShown(t *testing.T) {
	t.Parallel()
	local, far := served(t, "")
	local.ok(t, "submit", "--agent", "ada", "--id", "bare", "--kind", "note", "--cron", "0 1 * * *")
	local.ok(t, "submit", "--agent", "ada", "--id", "there", "--kind", "note", "--cron", "0 2 * * *", "--zone", "Asia/Tokyo")
	local.ok(t, "submit", "--agent", "ada", "--id", "poll", "--kind", "note", "--every", "1h")
	for _, w := range []*world{local, far} {
		for id, cron := range map[string]string{"bare": "0 1 * * * UTC", "there": "0 2 * * * Asia/Tokyo"} {
			assert.Regexp(t, "(?m)^cron +"+regexp.QuoteMeta(cron)+"$", w.ok(t, "status", "ada", id))
			assert.Regexp(t, "(?m)^cron +"+regexp.QuoteMeta(cron)+"$", w.ok(t, "explain", "ada", id))
			assert.Contains(t, w.ok(t, "jobs", "ada"), cron)
			zone := cron[len("0 1 * * * "):]
			assert.Equal(t, zone, w.object(t, "status", "ada", id)["zone"])
			assert.Equal(t, zone, w.object(t, "explain", "ada", id)["task"].(map[string]any)["zone"])
		}
		assert.NotContains(t, w.ok(t, "status", "ada", "poll"), "UTC")
		assert.Nil(t, w.object(t, "status", "ada", "poll")["zone"])
	}
}
