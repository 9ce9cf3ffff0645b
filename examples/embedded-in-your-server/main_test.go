package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheServerRemindsInMemoryAndOnRedis(t *testing.T) {
	t.Parallel()
	for name, redisURL := range map[string]string{"memory": "", "redis": redistest.Start(t).URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, listener, redisURL) }()
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			call := func(method, path, contentType, body string) string {
				r, err := http.NewRequestWithContext(t.Context(), method, "http://"+listener.Addr().String()+path, strings.NewReader(body))
				require.NoError(t, err)
				r.Header.Set("Content-Type", contentType)
				res, err := client.Do(r)
				require.NoError(t, err)
				defer res.Body.Close()
				data, err := io.ReadAll(res.Body)
				require.NoError(t, err)
				require.Less(t, res.StatusCode, 300, "%s", data)
				return string(data)
			}
			form := url.Values{"agent": {"ada"}, "text": {"stretch"}}.Encode()
			id := strings.TrimSpace(call("POST", "/remind", "application/x-www-form-urlencoded", form))
			task := "/duly/v1/agents/ada/tasks/" + id
			call("POST", task+"/run", "application/json", "") // ten minutes are long for a test
			status := ""
			for status != "completed" {
				call("POST", "/duly/v1/run-due", "application/json", `{"agent_ids":["ada"]}`)
				var got struct{ Status, Result string }
				require.NoError(t, json.Unmarshal([]byte(call("GET", task, "", "")), &got))
				if status = got.Status; status == "completed" {
					assert.Equal(t, "ada: stretch", got.Result)
				}
			}
			stop()
			require.NoError(t, <-ended)
		})
	}
}
