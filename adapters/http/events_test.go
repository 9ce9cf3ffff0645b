package http_test

import (
	"context"
	"net/http"
	"net/http/httptest"
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
			handler := httpadapter.New(s, httpadapter.Config{Events: &httpadapter.Events{}, Stopping: stopping})
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
