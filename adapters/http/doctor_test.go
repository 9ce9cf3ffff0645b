package http_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
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
	assert.Regexp(t, "^failed: .* has neither files nor a replica", found["persistence"])
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
