package http_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// diagnosis is an answer of GET /v1/doctor.
type diagnosis struct {
	OK     bool
	Checks []struct {
		Check, Severity, Message, Hint string
		OK                             bool
	}
}

// checks are what it has found, by name.
func (d *diagnosis) checks() map[string]string {
	all := map[string]string{}
	for _, c := range d.Checks {
		all[c.Check] = c.Severity + ": " + c.Message
	}
	return all
}

// onRedis is a handler on a Redis of its own, with a handler of the kind ok.
func onRedis(t *testing.T, config httpadapter.Config, arguments ...string) (*fixture, *redistest.Server) {
	t.Helper()
	server := redistest.Start(t, arguments...)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: server.URL, AllowEviction: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	f := &fixture{store: counting(st)}
	f.scheduler, err = core.New(f.store, core.Config{Servers: st, Presence: st, Recent: st})
	require.NoError(t, err)
	f.handler = httpadapter.New(f.scheduler, config)
	return f, server
}

// What is wrong is said with what to do, by the process that answers.
func TestDoctor(t *testing.T) {
	t.Parallel()
	f, _ := onRedis(t, httpadapter.Config{}, "--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb", "--save", "")
	res, answer := f.call(t, "GET", "/v1/doctor", "")
	assert.Equal(t, 200, res.StatusCode)
	d := get[diagnosis](t, answer)
	found := d.checks()
	assert.False(t, d.OK)
	assert.Regexp(t, "^failed: .* has maxmemory-policy allkeys-lru", found["eviction"])
	assert.Regexp(t, "^warning: .* has neither files nor a replica", found["persistence"])
	for _, name := range []string{"process", "store", "memory", "work", "handlers", "processes", "pauses", "failures", "failing", "limits", "budgets", "history"} {
		assert.Regexp(t, "^ok: ", found[name], name)
	}
	for _, c := range d.Checks {
		assert.Equal(t, c.Severity == "ok", c.OK, c.Check)
		assert.Equal(t, c.Severity == "ok", c.Hint == "", c.Check)
	}

	_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: "ann", ID: "1", Kind: "foreign", Delay: time.Hour}, core.NewTask{Agent: "ann", ID: "2", Kind: "foreign"})
	require.NoError(t, err)
	require.NoError(t, f.scheduler.Pause(t.Context(), core.Target{Agent: "ann", ID: "2"}, core.Pause{}))
	_, answer = f.call(t, "GET", "/v1/doctor", "")
	d = get[diagnosis](t, answer)
	assert.Equal(t, "warning: no process that is known has a handler for these kinds of live tasks: foreign (2)", d.checks()["handlers"])

	res, answer = f.call(t, "GET", "/v1/doctor?host=lambda", "")
	_, field, _ := problem(t, res, answer)
	assert.Equal(t, "host", field)
}

// A store that does not answer is a finding, and its error is for the log.
func TestDoctorOfAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.store.err = &store.Error{Verb: "stats", Err: errors.New("secret-host:6379 refused")}
	res, answer := f.call(t, "GET", "/v1/doctor", "")
	assert.Equal(t, 200, res.StatusCode)
	d := get[diagnosis](t, answer)
	assert.False(t, d.OK)
	assert.Regexp(t, "^failed: the store does not answer", d.checks()["store"])
	assert.NotContains(t, answer, "secret-host")
}

// step is an answer of POST /v1/audit.
type step struct {
	Tasks, Found, Repairable int
	Faults                   []audit.Fault
	Next                     string `json:"next_cursor"`
}

// audits sends steps until the last one, and sums them up.
func (f *fixture) audits(t *testing.T, repair bool) (sum step, steps int) {
	t.Helper()
	for cursor := ""; ; steps++ {
		body := map[string]any{"repair": repair, "pages": 1}
		if cursor != "" {
			body["cursor"] = cursor
		}
		data, err := json.Marshal(body)
		require.NoError(t, err)
		res, answer := f.call(t, "POST", "/v1/audit", string(data))
		require.Equal(t, 200, res.StatusCode, answer)
		one := get[step](t, answer)
		sum.Tasks, sum.Found, sum.Repairable, sum.Faults = sum.Tasks+one.Tasks, sum.Found+one.Found, sum.Repairable+one.Repairable, append(sum.Faults, one.Faults...)
		if cursor = one.Next; cursor == "" {
			return sum, steps + 1
		}
	}
}

// An audit in steps looks at every task, finds what was lost, and puts it back.
func TestAuditInSteps(t *testing.T) {
	t.Parallel()
	f, server := onRedis(t, httpadapter.Config{}, "--save", "")
	var tasks []core.NewTask
	for i := range 300 {
		tasks = append(tasks, core.NewTask{Agent: fmt.Sprintf("agent-%d", i%50), Kind: "ok", Delay: time.Hour})
	}
	_, err := f.scheduler.Submit(t.Context(), tasks...)
	require.NoError(t, err)
	sum, steps := f.audits(t, false)
	assert.GreaterOrEqual(t, sum.Tasks, 300)
	assert.Zero(t, sum.Found, sum.Faults)
	assert.Greater(t, steps, 3)

	client := server.Client(t)
	agendas, err := client.Keys(t.Context(), "duly:*:agenda").Result()
	require.NoError(t, err)
	require.NoError(t, client.Del(t.Context(), agendas...).Err())
	sum, _ = f.audits(t, true)
	assert.GreaterOrEqual(t, sum.Found, 50, "at least a task of each agent")
	assert.Equal(t, sum.Found, sum.Repairable)
	sum, _ = f.audits(t, false)
	assert.Zero(t, sum.Found, sum.Faults)

	// A cursor that is none is a mistake of the client, whoever would meet it.
	for _, cursor := range []string{"x", "0", "-1.t0", "9.t0", "0.x0", "0.t", "0.tx", "0.t99999999999999999999", "0.t0@ \n", "0.t0@" + strings.Repeat("x", 200), "0.\u00e9"} {
		data, err := json.Marshal(map[string]any{"cursor": cursor, "repair": true})
		require.NoError(t, err)
		res, answer := f.call(t, "POST", "/v1/audit", string(data))
		_, field, _ := problem(t, res, answer)
		assert.Equal(t, []any{400, "cursor"}, []any{res.StatusCode, field}, "%q: %s", cursor, answer)
	}
	for body, want := range map[string]string{`{"pages":0}`: "pages", `{"pages":1001}`: "pages", `{"pages":-1}`: "pages", `{"repair":1}`: "repair", `{"all":true}`: "all"} {
		res, answer := f.call(t, "POST", "/v1/audit", body)
		_, field, _ := problem(t, res, answer)
		assert.Equal(t, []any{400, want}, []any{res.StatusCode, field}, "%s: %s", body, answer)
	}
}
