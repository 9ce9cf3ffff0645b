package http_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		_, names = listen("ann", "", ids[1], time.Second)
		assert.Len(t, names, 2, "the other agent's are not for it")
		ids, _ = listen("ann", "?kind=other", ids[1], time.Minute)
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
