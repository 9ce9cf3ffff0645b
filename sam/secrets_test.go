package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// secretsManager stands in for AWS Secrets Manager: it has secrets by their names, and counts how often one is read.
type secretsManager struct {
	mu     sync.Mutex
	values map[string]map[string]string
	reads  int
	url    string
}

func newSecretsManager(t *testing.T) *secretsManager {
	t.Helper()
	m := &secretsManager{values: map[string]map[string]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		var asked struct{ SecretId string } //nolint:revive // AWS' name
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &asked)
		keys, ok := m.values[asked.SecretId]
		if !ok {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"ResourceNotFoundException","Message":"Secrets Manager can't find the specified secret."}`)
			return
		}
		m.reads++
		value, _ := json.Marshal(keys)
		_ = json.NewEncoder(w).Encode(map[string]string{"SecretString": string(value)})
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func (m *secretsManager) put(name string, keys map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] = keys
}

// read is how often a secret was read.
func (m *secretsManager) read() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}

// vars are those of an environment that reads its secrets there.
func (m *secretsManager) vars(more ...string) []string {
	return append([]string{
		"DULY_REDIS_URL=", "AWS_ENDPOINT_URL_SECRETS_MANAGER=" + m.url, "AWS_REGION=eu-north-1", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE",
		"AWS_SECRET_ACCESS_KEY=secret", "AWS_SESSION_TOKEN=session",
	}, more...)
}

// changePassword changes the password of the Redis of a world, and ends all connections that were made with the old one.
func (w *world) changePassword(password string) {
	w.Helper()
	require.NoError(w, w.redis.Client(w).Do(w.Context(), "CONFIG", "SET", "requirepass", password).Err())
	w.redis.Password = password
	require.NoError(w, w.redis.Client(w).Do(w.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
}

// The password of Redis is changed while the function is warm: the same process reads the secret again and goes on.
func TestAPasswordIsRotatedWhileTheFunctionIsWarm(t *testing.T) {
	t.Parallel()
	m := newSecretsManager(t)
	w := newWorld(t, m.vars("DULY_REDIS_SECRET_ID=duly/redis")...)
	login := func(password string) string {
		return strings.Replace(w.redis.URL, "redis://", "redis://:"+password+"@", 1)
	}
	w.restartOnTCP()
	m.put("duly/redis", map[string]string{"url": login("first")})
	w.changePassword("first")
	e := w.environment(20 * time.Second)
	assert.EqualValues(t, 0, w.answer(e, tick)["ran"])
	assert.Equal(t, 1, m.reads)

	for _, keys := range []map[string]string{
		{"url": login("second")},
		{"url": login("old"), "username": "default", "password": "third"}, // as a rotation of AWS keeps them
	} {
		password := keys["password"]
		if password == "" {
			password = "second"
		}
		m.put("duly/redis", keys)
		w.changePassword(password)
		require.Eventually(t, func() bool { // two changes within a second have one reading
			r, err := e.Invoke(t.Context(), []byte(tick))
			require.NoError(t, err)
			require.False(t, r.Exited, "%s", r.Payload)
			return !r.Failed
		}, 20*time.Second, 100*time.Millisecond)
	}
	assert.Equal(t, 3, m.read(), "once at the start, and once for each change")
	assert.NotContains(t, w.logs.String(), "second")
}

// restartOnTCP gives the world a Redis that has a password of its own.
func (w *world) restartOnTCP() {
	w.Helper()
	w.redis = redistest.StartTCP(w)
}

func TestSecretsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	m := newSecretsManager(t)
	m.put("empty", map[string]string{"uri": "redis://:hunter2@h"})
	m.put("wrong", map[string]string{"url": "http://:hunter2@h"})
	m.put("right", map[string]string{"url": "redis://:hunter2@127.0.0.1:1"})
	for _, c := range []struct{ vars, want string }{
		{"DULY_REDIS_SECRET_ID=missing", `DULY_REDIS_SECRET_ID: read the secret \"missing\": Secrets Manager answered 400 ResourceNotFoundException`},
		{"DULY_REDIS_SECRET_ID=empty", `DULY_REDIS_SECRET_ID: the secret \"empty\" has no key \"url\"`},
		{"DULY_REDIS_SECRET_ID=wrong", `DULY_REDIS_SECRET_ID: the secret \"wrong\": URL must begin with`},
		{"DULY_REDIS_SECRET_ID=right DULY_WEBHOOK_SECRET_ID=right", `DULY_WEBHOOK_SECRET_ID: the secret \"right\" has no key \"key\"`},
		{"DULY_REDIS_SECRET_ID=right", "cannot reach"},
		{"DULY_REDIS_URL=redis://h DULY_ELASTICACHE=replicationgroup:x", "set DULY_ELASTICACHE and DULY_ELASTICACHE_USER together"},
		{"DULY_REDIS_URL=redis://h DULY_ELASTICACHE_USER=duly DULY_ELASTICACHE=x", `DULY_ELASTICACHE: \"x\" is no ElastiCache`},
	} {
		w := newWorld(t, m.vars(strings.Fields(c.vars)...)...)
		r, err := w.environment(20*time.Second).Invoke(t.Context(), []byte(tick))
		require.NoError(t, err)
		assert.True(t, r.Failed && r.Exited)
		assert.Contains(t, string(r.Payload), c.want)
		assert.NotContains(t, string(r.Payload)+w.logs.String(), "hunter2")
	}
}

// A user of ElastiCache logs in by a token: Redis gets it as the password of that user.
func TestATokenOfIAMIsThePassword(t *testing.T) {
	t.Parallel()
	m := newSecretsManager(t)
	w := newWorld(t, m.vars("DULY_ELASTICACHE=replicationgroup:mine", "DULY_ELASTICACHE_USER=duly")...)
	w.vars = append(w.vars, "DULY_REDIS_URL="+w.redis.URL)
	r, err := w.environment(20*time.Second).Invoke(t.Context(), []byte(tick))
	require.NoError(t, err)
	assert.True(t, r.Failed, "this server knows no such user")
	log, err := w.redis.Client(t).Do(t.Context(), "ACL", "LOG").Slice()
	require.NoError(t, err)
	require.NotEmpty(t, log)
	assert.Contains(t, fmt.Sprint(log[0]), "username:duly")
	assert.NotContains(t, string(r.Payload)+w.logs.String(), "X-Amz-Signature")
	assert.Zero(t, m.read(), "a token needs no call")
}

// A kind that cannot be registered says so in the error of the start, which whoever invokes the function sees.
func TestKindsThatCannotBeRegistered(t *testing.T) {
	t.Parallel()
	for vars, want := range map[string]string{
		"DULY_TEST_KIND=count": `the handlers cannot be registered: duly: Handle: the kind \"count\" already has a handler`,
		"DULY_TEST_KIND=":      "the handlers cannot be registered: duly: Handle: kind ",
		`DULY_WEBHOOKS={"note":"https://agents.example"}`:                               `DULY_WEBHOOKS: duly: Handle: the kind \"note\" already has a handler`,
		`DULY_WEBHOOKS={"":"https://agents.example"}`:                                   "DULY_WEBHOOKS: duly: Handle: kind ",
		`DULY_WEBHOOKS={"a":"https://agents.example/1","a":"https://agents.example/2"}`: `DULY_WEBHOOKS: the kind \"a\" exists twice`,
	} {
		w := newWorld(t, vars)
		r, err := w.environment(20*time.Second).Invoke(t.Context(), []byte(tick))
		require.NoError(t, err)
		assert.True(t, r.Failed && r.Exited, vars)
		assert.Contains(t, string(r.Payload), want)
		assert.Contains(t, string(r.Payload), "Duly.InitError")
	}
}

// Each line of the log that belongs to an invocation has its id, also those of handlers; the line of a tick is a metric.
func TestTheLogHasTheRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "AWS_LAMBDA_LOG_FORMAT=JSON", "AWS_LAMBDA_FUNCTION_NAME=mine")
	e := w.environment(20 * time.Second)
	w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "note"}, core.NewTask{Agent: "ada", ID: "2", Kind: "panics", MaxAttempts: 1})
	w.answer(e, tick)
	seen := map[string]bool{}
	ids := map[any]bool{}
	for line := range strings.Lines(w.logs.String()) {
		var logged map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &logged), line)
		message, _ := logged["message"].(string)
		if message == "note" || message == "tick" || message == "a run failed" {
			seen[message] = true
			assert.NotEmpty(t, logged["requestId"], line)
			ids[logged["requestId"]] = true
		}
		if message == "tick" {
			assert.Equal(t, "mine", logged["function_name"])
			assert.EqualValues(t, 0, logged["oldest_due"])
		}
	}
	assert.Len(t, seen, 3)
	assert.Len(t, ids, 1, "of one invocation")
}
