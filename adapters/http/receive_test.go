package http_test

// Messages of senders: each is carried out once, by whichever process gets it.

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// The official library says the same of each request.
func TestSignaturesOfTheOfficialLibrary(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/senders/webhooks.json")
	require.NoError(t, err)
	var v struct {
		Now      int64
		Secret   string
		Messages []struct {
			Name    string
			Headers map[string]string
			Body    string
			Good    bool
		}
	}
	require.NoError(t, json.Unmarshal(data, &v))
	require.NotEmpty(t, v.Messages)
	f := setup(t, httpadapter.Config{Clock: &heldClock{time.Unix(v.Now, 0)}, Signed: []httpadapter.Signed{{Secrets: []string{v.Secret}}}})
	for _, m := range v.Messages {
		r := httptest.NewRequest(http.MethodPost, "/v1/tasks", strings.NewReader(m.Body))
		r.Header.Set("Content-Type", "application/json")
		for name, value := range m.Headers {
			r.Header.Set(name, value)
		}
		res, text := f.do(t, r)
		assert.Equal(t, m.Good, res.StatusCode == http.StatusCreated, "%s: %s", m.Name, text)
		assert.Equal(t, m.Good, res.StatusCode != http.StatusUnauthorized, "%s: %s", m.Name, text)
	}
}

// message is a signed request for a path.
func message(id, path, body string, at time.Time) *http.Request {
	r := signed(id, unix(at), body)
	r.URL.Path = path
	return r
}

// What a sender sends again is not done again, in whichever process and by whichever call; a read shows nothing.
func TestAMessageIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	one := signedAs(t, &heldClock{now})
	other := httpadapter.New(one.scheduler, signing(&heldClock{now.Add(-9 * time.Minute)}, nil))
	for i, path := range []string{"/v1/pause", "/v1/run-due", "/v1/tasks"} {
		body := []string{`{"all":true}`, `{"all":true}`, `{"agent_id":"a","kind":"ok","id":"1","on_conflict":"replace"}`}[i]
		res, text := one.do(t, message(path, path, body, now))
		require.Less(t, res.StatusCode, 208, text)
		w := httptest.NewRecorder()
		other.ServeHTTP(w, message(path, path, body, now.Add(-9*time.Minute)))
		assert.Equal(t, 208, w.Code, "%s: %s", path, w.Body)
		assert.JSONEq(t, `{"duplicate":true}`, w.Body.String())
	}
	r := message("read", "/v1/stats", "", now)
	r.Method = http.MethodGet
	res, text := one.do(t, r)
	require.Equal(t, 200, res.StatusCode, text)
	r = message("read", "/v1/stats", "", now)
	r.Method = http.MethodGet
	res, text = one.do(t, r)
	assert.Equal(t, 208, res.StatusCode)
	assert.NotContains(t, text, "agents")
}

// signing are the settings of a handler that takes what signingKey signs, for everything.
func signing(clock core.Clock, change func(c *httpadapter.Config)) httpadapter.Config {
	c := httpadapter.Config{Clock: clock, Signed: []httpadapter.Signed{{Secrets: []string{base64.StdEncoding.EncodeToString(signingKey)}, Grant: httpadapter.Grant{Name: "sender"}}}}
	if change != nil {
		change(&c)
	}
	return c
}

func signedAs(t *testing.T, clock core.Clock) *fixture {
	t.Helper()
	return setup(t, signing(clock, nil))
}

// While the store cannot say whether a message was carried out nothing is done for it, and it may come again. What was refused or has failed may
// come again as well, with a new signature or the same.
func TestAMessageThatFailedMayComeAgain(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	f := signedAs(t, &heldClock{now})
	const body = `{"agent_id":"a","kind":"ok"}`
	var verbs []string
	away := &store.Error{Verb: "x", Err: errors.New("away")}
	fails := ""
	f.store.Before = func(_ context.Context, verb string) error {
		if verbs = append(verbs, verb); verb == fails {
			return away
		}
		return nil
	}
	fails = "Receive"
	res, text := f.do(t, message("m", "/v1/tasks", body, now))
	require.Equal(t, 503, res.StatusCode, text)
	assert.Equal(t, []string{"Receive"}, verbs, "nothing was done")
	fails = "Submit"
	res, text = f.do(t, message("m", "/v1/tasks", body, now))
	require.Equal(t, 503, res.StatusCode, text)
	fails, verbs = "", nil
	res, text = f.do(t, message("m", "/v1/tasks", body, now))
	require.Equal(t, 201, res.StatusCode, text)
	res, _ = f.do(t, message("m", "/v1/tasks", body, now))
	require.Equal(t, 208, res.StatusCode)
	assert.Equal(t, []string{"Receive", "Get", "Submit", "Book", "Receive", "Receive"}, verbs, "a message costs two calls, the first another one for alarms, and a duplicate one")
	res, _ = f.do(t, message("bad", "/v1/tasks", `{"agent_id":"","kind":"ok"}`, now))
	require.Equal(t, 400, res.StatusCode)
	res, _ = f.do(t, message("bad", "/v1/tasks", body, now))
	assert.Equal(t, 201, res.StatusCode, "what was refused did not count")
}

// A panic of a call does not use a message up.
func TestAMessageSurvivesAPanic(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	f := signedAs(t, &heldClock{now})
	const body = `{"agent_id":"a","kind":"ok"}`
	panics := true
	f.store.Before = func(_ context.Context, verb string) error {
		if panics && verb == "Submit" {
			panic("no")
		}
		return nil
	}
	res, _ := f.do(t, message("m", "/v1/tasks", body, now))
	require.Equal(t, 500, res.StatusCode)
	panics = false
	res, text := f.do(t, message("m", "/v1/tasks", body, now))
	assert.Equal(t, 201, res.StatusCode, text)
}

// While a message is being carried out, another delivery of it is told to come back; once its process must be dead, it is taken.
func TestAMessageUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := signedAs(t, nil)
		hangs := make(chan struct{})
		f.store.Before = func(_ context.Context, verb string) error {
			if verb == "Submit" {
				<-hangs
			}
			return nil
		}
		const body = `{"agent_id":"a","kind":"ok"}`
		go f.do(t, message("m", "/v1/tasks", body, time.Now()))
		synctest.Wait()
		res, text := f.do(t, message("m", "/v1/tasks", body, time.Now()))
		assert.Equal(t, 503, res.StatusCode)
		assert.Equal(t, "5", res.Header.Get("Retry-After"))
		assert.Contains(t, text, "under way; retry later")
		close(hangs)
		synctest.Wait()
		res, _ = f.do(t, message("m", "/v1/tasks", body, time.Now()))
		assert.Equal(t, 208, res.StatusCode)

		// The process of this one has died: nothing notes what became of it.
		_, receipt, err := f.scheduler.Receive(t.Context(), core.Message{
			Sender: "sender", ID: "n", Content: []byte("POST /v1/tasks\n" + body), Until: time.Now().Add(5 * time.Minute), Within: time.Minute,
		})
		require.NoError(t, err)
		require.NotNil(t, receipt)
		res, _ = f.do(t, message("n", "/v1/tasks", body, time.Now()))
		assert.Equal(t, 503, res.StatusCode)
		time.Sleep(time.Minute)
		res, text = f.do(t, message("n", "/v1/tasks", body, time.Now()))
		assert.Equal(t, 201, res.StatusCode, text)
	})
}

// A secret of GET /v1/cron may be for some agents only.
func TestCronsOfSomeAgents(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Tokens: []string{"root"}, Crons: []httpadapter.Token{
		{Token: "some", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeTrigger}, Agents: []string{"a"}}},
	}})
	f.with(t, "root", "POST", "/v1/tasks", `{"tasks":[{"agent_id":"a","kind":"ok"},{"agent_id":"b","kind":"ok"}]}`)
	res, text := f.with(t, "some", "GET", "/v1/cron", "")
	require.Equal(t, 200, res.StatusCode, text)
	assert.EqualValues(t, 1, get[map[string]any](t, text)["ran"])
	assert.Panics(t, func() {
		httpadapter.New(nil, httpadapter.Config{Crons: []httpadapter.Token{{Token: "x", Grant: httpadapter.Grant{Patterns: []string{"a*"}}}}})
	})
}

// GET /v1/stats?window=1h is what ran in the last hour.
func TestStatsOfAWindow(t *testing.T) {
	t.Parallel()
	st := memstore.New(memstore.Config{})
	f := setupWith(t, core.Config{Recent: st}, httpadapter.Config{})
	f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","kind":"ok"}`)
	f.call(t, "POST", "/v1/run-due", `{"all":true}`)
	res, text := f.call(t, "GET", "/v1/stats?window=1h", "")
	require.Equal(t, 200, res.StatusCode, text)
	assert.Equal(t, "1h", get[map[string]any](t, text)["window"])
	assert.Contains(t, text, `"kind":"ok","runs":1`)
	for _, bad := range []string{"hour", "1m", "25h", "-1h"} {
		res, _ = f.call(t, "GET", "/v1/stats?window="+bad, "")
		assert.Equal(t, 400, res.StatusCode, bad)
	}
	res, _ = f.call(t, "GET", "/v1/stats?windows=1h", "")
	assert.Equal(t, 400, res.StatusCode, "an unknown parameter")
}
