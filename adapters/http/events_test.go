package http_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// Whoever listens or waits is let go when the server shuts down, as that waits for them.
func TestStreamsAndWaitsEndWithTheServer(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/v1/events": ": duly",
		"/product/scheduler/wait/stream?user_name=ann&timeout_seconds=600": `"timed_out":true`,
		"/product/scheduler/wait?user_name=ann&timeout_seconds=600":        `"timed_out":true`,
	} {
		synctest.Test(t, func(t *testing.T) {
			s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
			require.NoError(t, err)
			_, err = s.Submit(t.Context(), core.NewTask{Agent: "ann", Kind: "k"})
			require.NoError(t, err)
			stopping := make(chan struct{})
			handler := httpadapter.New(s, httpadapter.Config{Events: httpadapter.NewEvents(), Stopping: stopping})
			w, done := httptest.NewRecorder(), make(chan struct{})
			method := http.MethodGet
			if path == "/product/scheduler/wait?user_name=ann&timeout_seconds=600" {
				method = http.MethodPost
			}
			go func() {
				handler.ServeHTTP(w, httptest.NewRequestWithContext(context.WithoutCancel(t.Context()), method, path, nil))
				close(done)
			}()
			synctest.Wait()
			stopped := time.Now()
			close(stopping)
			<-done
			assert.Less(t, time.Since(stopped), time.Second, path)
			assert.Contains(t, w.Body.String(), want, path)
			assert.Equal(t, 200, w.Code, path)
		})
	}
}

// Whoever comes back says the last id that it has got, and gets what has happened since, each event once; what was lost meanwhile it is told.
func TestAStreamGoesOnBehindAnID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, httpadapter.Config{Events: httpadapter.NewEvents(), Tokens: []string{"root"}, Scoped: []httpadapter.Token{
			{Token: "ann", Grant: httpadapter.Grant{Agents: []string{"ann"}}},
		}})
		listen := func(token, query, header string, d time.Duration) (ids, names []string) {
			ctx, end := context.WithTimeout(t.Context(), d)
			defer end()
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/events"+query, nil)
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Last-Event-ID", header)
			f.handler.ServeHTTP(w, r)
			require.Equal(t, 200, w.Code, w.Body)
			for line := range strings.Lines(w.Body.String()) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				switch name {
				case "id":
					ids = append(ids, value)
				case "event":
					names = append(names, value)
				case "data":
					names = append(names, value[:min(len(value), 13)])
				}
			}
			return ids, names
		}
		submit := func(agent, id string) {
			_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: agent, ID: id, Kind: "ok"})
			require.NoError(t, err)
			synctest.Wait()
		}
		ids, _ := listen("root", "", "", time.Second)
		submit("ann", "1")
		submit("bob", "2")
		submit("ann", "3")
		ids, names := listen("root", "?since_id="+ids[0], "", time.Second)
		require.Len(t, ids, 4)
		assert.Equal(t, []string{"enqueue", `{"event_id":"`, "enqueue", `{"event_id":"`, "enqueue", `{"event_id":"`}, names)
		_, names = listen("root", "?since_id="+ids[0], ids[2], time.Second)
		assert.Len(t, names, 2, "the header of a browser that comes back counts: what is behind the second")
		ids, _ = listen("root", "?kind=other", ids[3], time.Minute)
		_, names = listen("root", "", ids[len(ids)-1], time.Second)
		assert.Empty(t, names, "a sign of life says how far it has come")
		time.Sleep(time.Minute) // nobody listens
		submit("ann", "4")
		_, names = listen("root", "", ids[len(ids)-1], time.Second)
		assert.Equal(t, []string{"missed", "{}"}, names)
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/events?since_id=yesterday", nil)
		r.Header.Set("Authorization", "Bearer root")
		f.handler.ServeHTTP(w, r)
		assert.Equal(t, 400, w.Code)
		assert.Contains(t, w.Body.String(), `"field":"since_id"`)
		assert.Contains(t, w.Body.String(), `\"yesterday\" is not the id of an event`)
	})
}

// The ids of a tenant are the same each time, are gone on behind, and tell nothing of how many events others have.
func TestIDsOfATenantTellNothingOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, httpadapter.Config{Events: httpadapter.NewEvents(), Tokens: []string{"root"}, Scoped: []httpadapter.Token{
			{Token: "ann", Grant: httpadapter.Grant{Agents: []string{"ann"}}},
		}})
		ask := func(token, since string) *httptest.ResponseRecorder {
			ctx, end := context.WithTimeout(t.Context(), time.Second)
			defer end()
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/events", nil)
			r.Header.Set("Last-Event-ID", since)
			r.Header.Set("Authorization", "Bearer "+token)
			f.handler.ServeHTTP(w, r)
			return w
		}
		// listen returns where to begin, and the ids of events, as the stream and as their own text have them.
		listen := func(token, since string) (begin string, ids []string) {
			w := ask(token, since)
			require.Equal(t, 200, w.Code, w.Body)
			all := regexp.MustCompile(`(?m)^id: (.+)$`).FindAllStringSubmatch(w.Body.String(), -1)
			for _, m := range regexp.MustCompile(`id: (\S+)\nevent: \S+\ndata: {"event_id":"([^"]+)"`).FindAllStringSubmatch(w.Body.String(), -1) {
				assert.Equal(t, m[1], m[2])
				ids = append(ids, m[1])
			}
			assert.NotContains(t, w.Body.String(), "missed")
			return all[0][1], ids
		}
		plain, _ := listen("root", "")
		begin, _ := listen("ann", "")
		for i, agent := range []string{"ann", "bob", "bob", "bob", "ann"} {
			_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: agent, ID: strconv.Itoa(i), Kind: "ok"})
			require.NoError(t, err)
			synctest.Wait()
		}
		_, all := listen("root", plain)
		require.Len(t, all, 5)
		fresh, hers := listen("ann", begin)
		require.Len(t, hers, 2)
		another, again := listen("ann", begin)
		assert.Equal(t, hers, again, "an event has one id")
		assert.NotEqual(t, fresh, another, "and where nothing has happened that is not to be seen either")
		_, rest := listen("ann", hers[0])
		assert.Equal(t, hers[1:], rest)
		for _, id := range hers {
			number, _, _ := strings.Cut(all[0], "-")
			data, err := base64.RawURLEncoding.DecodeString(id)
			require.NoError(t, err)
			assert.NotContains(t, string(data), number, "nor is the number in it")
			assert.Len(t, id, len(begin))
		}
		for _, wrong := range []struct{ token, id string }{{"ann", all[0]}, {"root", hers[0]}, {"ann", "x"}} {
			assert.Equal(t, 400, ask(wrong.token, wrong.id).Code, wrong)
		}
		lost := ask("ann", hers[0][:len(hers[0])-2]+"AA")
		assert.Contains(t, lost.Body.String(), "event: missed\ndata: {}", "sealed with a secret that the store does not have")
	})
}

// With format=cloudevents each event is one of CloudEvents, which their own library reads; an end has the type that a callback of it has.
func TestTheFeedAsCloudEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, httpadapter.Config{Events: httpadapter.NewEvents()})
		ask := func(query string, d time.Duration) *httptest.ResponseRecorder {
			ctx, end := context.WithTimeout(t.Context(), d)
			defer end()
			w := httptest.NewRecorder()
			f.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/events"+query, nil))
			return w
		}
		begin := regexp.MustCompile(`(?m)^id: (.+)$`).FindStringSubmatch(ask("", time.Second).Body.String())[1]
		_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: "ann/b", ID: "1 2", Kind: "ok"}, core.NewTask{Agent: "ann/b", ID: "3", Kind: "ok", Delay: time.Hour})
		require.NoError(t, err)
		_, err = f.scheduler.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		_, err = f.scheduler.Cancel(t.Context(), "ann/b", "3", core.Order{})
		require.NoError(t, err)
		require.NoError(t, f.scheduler.Pause(t.Context(), core.Target{}, core.Pause{}))
		synctest.Wait()
		body := ask("?format=cloudevents&since_id="+begin, time.Second).Body.String()
		var types []string
		for _, m := range regexp.MustCompile(`(?m)^id: (\S+)\nevent: \S+\ndata: (.+)$`).FindAllStringSubmatch(body, -1) {
			e := cloudevents.NewEvent()
			require.NoError(t, json.Unmarshal([]byte(m[2]), &e), m[2])
			require.NoError(t, e.Validate())
			assert.Equal(t, m[1], e.ID())
			assert.False(t, e.Time().IsZero())
			types = append(types, e.Type()+" "+e.Source()+" "+e.Subject())
			assert.Contains(t, string(e.Data()), `"event_id":"`+m[1]+`"`)
		}
		for _, want := range []string{
			"duly.task.enqueue /v1/agents/ann%2Fb 1%202", "duly.task.completed /v1/agents/ann%2Fb 1%202", "duly.task.cancelled /v1/agents/ann%2Fb 3", "duly.pause /v1 ",
		} {
			assert.Contains(t, types, want)
		}
		time.Sleep(time.Minute)
		_, err = f.scheduler.Submit(t.Context(), core.NewTask{Agent: "ann", ID: "9", Kind: "ok"})
		require.NoError(t, err)
		assert.Contains(t, ask("?format=cloudevents&since_id="+begin, time.Second).Body.String(), `"type":"duly.missed","source":"/v1"`)
		w := ask("?format=xml", time.Second)
		assert.Equal(t, 400, w.Code)
		assert.Contains(t, w.Body.String(), "format must be cloudevents, or omitted")
	})
}
