package cli_test

// Calls of models over kills: at each command that a call sends, its server is killed, and another one answers.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// mcpKills is the variable with the number of kills; a few by default.
const mcpKills = "DULY_MCP_KILLS"

// modelSteps is how many sorts of commands a call of a model sends at most.
const modelSteps = 4

// knowsTasks is the part of a request by which a client says that it knows tasks.
var knowsTasks = map[string]any{
	"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
	"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "test", "version": "1"},
	"io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}},
}

// modelCalls calls a server as a model's client does. There is no result if the server does not answer.
func modelCalls(ctx context.Context, address, method string, params map[string]any) (result, refused map[string]any) {
	params["_meta"] = knowsTasks
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, address+"/mcp?agent=ada", bytes.NewReader(body))
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method} {
		r.Header.Set(name, value)
	}
	if name, ok := params["name"].(string); ok {
		r.Header.Set("Mcp-Name", name)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Result, Error map[string]any
	}
	if json.NewDecoder(res.Body).Decode(&answer) != nil {
		return nil, nil
	}
	return answer.Result, answer.Error
}

// A handle that was answered is known to every other server, and so is an answer to a question and a cancel, whichever command their server is killed at.
func TestCallsOfModelsSurviveKills(t *testing.T) {
	t.Parallel()
	rounds := 16
	if n, err := strconv.Atoi(os.Getenv(mcpKills)); err == nil {
		rounds = n
	}
	w := newWorld(t)
	config := file(t, `
lease: 1s
handlers:
  digest: { exec: [sh, -c, 'cat >/dev/null; echo "{\"ok\":true}"'], tool: { description: writes a digest } }
  later: { exec: ["true"], tool: { description: is not run here } }
  asks: { exec: [sh, -c, 'if grep -q heard; then echo "{\"heard\":true}"; else echo "duly-await: {\"key\":\"k\"}" >&3; fi'], tool: { description: asks } }
`)
	other := w.start(t, "daemon", "-c", config, "--http", "127.0.0.1:0")
	address := other.url(t)
	require.NoError(t, w.scheduler(t).Pause(t.Context(), core.Target{Kind: "later"}, core.Pause{Reason: "a test", Ahead: true}))
	var handles []string
	calls := []string{"digest", "tasks/get", "tasks/update", "tasks/cancel"}
	killed := map[string]int{}
	for i := range rounds {
		call, kill := calls[i%len(calls)], memosKill{at: 1 + i/len(calls)%modelSteps, before: i/len(calls)/modelSteps%2 == 0}
		var victim *running
		dies, ready := make(chan struct{}), make(chan struct{})
		g := newGate(t, w.redis.Addr, kill, func(string) {
			<-ready
			_ = victim.cmd.Process.Signal(syscall.SIGKILL)
			close(dies)
		})
		env := append(slices.Clone(w.env), "DULY_REDIS_URL=redis://"+g.Addr().String())
		victim = (&world{redis: w.redis, env: env}).start(t, "serve", "-c", config, "--http", "127.0.0.1:0")
		at := victim.url(t)
		close(ready)
		tool := map[string]string{"digest": "digest", "tasks/get": "digest", "tasks/update": "asks", "tasks/cancel": "later"}[call]
		begin := func() string {
			handle, _ := modelCalls(t.Context(), at, "tools/call", map[string]any{"name": tool, "arguments": map[string]any{"n": i}})
			id, _ := handle["taskId"].(string)
			return id
		}
		id := ""
		if call != "digest" {
			id = begin()
			require.NotEmpty(t, id, "nothing is in its way yet")
		}
		key := ""
		if call == "tasks/update" {
			key = asked(t, address, id)
		}
		g.armed.Store(true)
		var answered map[string]any
		switch call {
		case "digest":
			id = begin()
		case "tasks/get":
			answered, _ = modelCalls(t.Context(), at, call, map[string]any{"taskId": id})
		case "tasks/update":
			answered, _ = modelCalls(t.Context(), at, call, map[string]any{"taskId": id, "inputResponses": map[string]any{key: map[string]any{"action": "accept", "content": map[string]any{"answer": "x"}}}})
		case "tasks/cancel":
			answered, _ = modelCalls(t.Context(), at, call, map[string]any{"taskId": id})
		}
		select {
		case <-dies:
			killed[call]++
		default: // the call sends fewer sorts of commands
			g.once.Do(func() { g.victim("") })
		}
		<-victim.ended
		if id == "" {
			continue // no handle was answered: nothing is promised
		}
		handles = append(handles, id)
		// Each of these may be repeated at another server, as a client does that has got no answer.
		if answered == nil && (call == "tasks/update" || call == "tasks/cancel") {
			params := map[string]any{"taskId": id}
			if key != "" {
				params["inputResponses"] = map[string]any{key: map[string]any{"action": "accept", "content": map[string]any{"answer": "x"}}}
			}
			_, refused := modelCalls(t.Context(), address, call, params)
			require.Nil(t, refused)
		}
		want := map[string]string{"tasks/cancel": "cancelled"}[call]
		if want == "" {
			want = "completed"
		}
		require.Eventually(t, func() bool {
			task, refused := modelCalls(t.Context(), address, "tasks/get", map[string]any{"taskId": id})
			require.Nil(t, refused, "a handle that was answered is not known")
			return task["status"] == want
		}, 30*time.Second, 20*time.Millisecond, "%s of round %d", call, i)
	}
	for _, id := range handles {
		_, refused := modelCalls(t.Context(), address, "tasks/get", map[string]any{"taskId": id})
		assert.Nil(t, refused)
	}
	code, _ := other.stop(t, syscall.SIGTERM)
	assert.Zero(t, code)
	t.Logf("figure: %d kills, of them in the midst of a call: %v; %d handles, all of them answered by another server", rounds, killed, len(handles))
}

// asked is the key of what a task asks, once it does.
func asked(t *testing.T, address, id string) (key string) {
	t.Helper()
	require.Eventually(t, func() bool {
		task, _ := modelCalls(t.Context(), address, "tasks/get", map[string]any{"taskId": id})
		requests, _ := task["inputRequests"].(map[string]any)
		for key = range requests {
		}
		return key != ""
	}, 30*time.Second, 20*time.Millisecond, fmt.Sprintf("task %s asks nothing", id))
	return key
}
