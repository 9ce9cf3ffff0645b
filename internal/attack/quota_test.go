package attack_test

// Quotas: one credential of one agent calls what it can, ten thousand times, with what it likes.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/mcp"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/internal/race"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// tight is the quota of the attacker.
var tight = store.Quota{
	Live: 12, Recurring: 4, Bytes: 40 << 10, Submits: 5000, Interval: time.Minute, Horizon: 24 * time.Hour, Kinds: []string{"k", "safe-*"}, Depth: 2, Spawned: 3000,
}

// requests makes random calls of an agent that knows the whole API.
type requests struct{ *rand.Rand }

func (r requests) of(some ...string) string { return some[r.IntN(len(some))] }

func (r requests) id() string { return fmt.Sprint("t", r.IntN(25)) }

// task is a task in JSON.
func (r requests) task() string {
	fields := []string{
		`"agent_id":` + r.of(`"ada"`, `"ada"`, `"ada"`, `"ada"`, `"ada"`, `"ada"`, `"bob"`), `"kind":"` + r.of("k", "k", "k", "safe-1", "other", "safe") + `"`,
		r.of(`"id":"`+r.id()+`"`, `"unique_key":"`+r.id()+`"`, `"labels":{"x":"y"}`),
	}
	if when := r.of("", "", `"every":"1s"`, `"every":"5m"`, `"every":"2m"`, `"cron":"* * * * * *"`, `"cron":"0,30 0 9 * * *"`, `"cron":"0 9 * * *"`, `"delay":"1h"`, `"delay":"9000h"`,
		`"at":"2090-01-01T00:00:00Z"`, `"when":"every 10 minutes"`, `"when":"every 2 seconds"`, `"manual":true`, `"every":"72h"`, `"cron":"0 0 29 2 *"`); when != "" {
		fields = append(fields, when)
	}
	if r.IntN(3) == 0 {
		fields = append(fields, `"on_conflict":"`+r.of("replace", "keep", "fail")+`"`)
	}
	if r.IntN(5) == 0 {
		fields = append(fields, `"payload":"`+strings.Repeat("x", r.IntN(30<<10))+`"`)
	}
	if r.IntN(5) == 0 {
		fields = append(fields, r.of(`"level":1`, `"overlap":"allow"`, `"from":"start"`, `"paused":true`, `"jitter":"50s"`))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// next is a random request.
func (r requests) next() (method, path, body string) {
	at := "/v1/agents/" + r.of("ada", "ada", "ada", "ada", "ada", "bob") + "/tasks/" + r.id()
	switch r.IntN(20) {
	case 0, 1, 2, 3, 4:
		return "POST", "/v1/tasks", r.task()
	case 5, 6:
		tasks := []string{r.task(), r.task(), r.task(), r.task()}
		return "POST", "/v1/tasks", `{"tasks":[` + strings.Join(tasks[:1+r.IntN(4)], ",") + "]}"
	case 7:
		return "PATCH", at, "{" + r.of(`"every":"1s"`, `"delay":"1ms"`, `"cron":"* * * * *"`, `"kind":"other"`, `"every":"3m"`, `"payload":"`+strings.Repeat("y", 20<<10)+`"`, `"at":"2090-01-01T00:00:00Z"`) + "}"
	case 8:
		return "POST", at + "/" + r.of("pause", "resume", "run", "cancel", "replay", "replay", "replay"), "{}"
	case 9:
		return "DELETE", at, ""
	case 10:
		return "PUT", r.of("/v1/agents/ada", "/v1/agents/ada", "/v1/agents/bob"), r.of(`{"quota":{"live":100000}}`, `{"zone":"UTC"}`, `{"quota":{}}`, `{"quota_used":{"live":0}}`, `{"quota":{"kinds":["other"]}}`)
	case 11:
		return "DELETE", r.of("/v1/agents/ada/profile", "/v1/agents/ada", "/v1/agents/bob"), ""
	case 12:
		return "POST", "/v1/agents/" + r.of("ada", "ada", "bob") + "/import", `{"task":` + r.task() + `,"due_at":"` + r.of("2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z") + `"}` + "\n"
	case 13:
		return "POST", "/v1/activity", `{"kind":"` + r.of("k", "seen", "other") + `","agent_id":"ada","user_id":"` + r.of("ada", "u1", "bob") + `"}`
	case 14:
		return "GET", r.of("/v1/tasks?agent_id=bob", "/v1/agents/bob/export", "/v1/agents/bob/tasks/secret", "/v1/agents/ada", "/v1/tasks", "/v1/agents", "/v1/tasks?agent_id=ada"), ""
	case 15, 16, 17, 18:
		return "POST", r.of("/mcp", "/mcp", "/mcp", "/mcp", "/mcp?agent=bob", "/mcp?agent=ada"), r.model()
	default:
		return "POST", "/v1/tasks/" + r.of("replay", "delete", "cancel"), `{"agent_id":"` + r.of("ada", "bob", "ada") + `"}`
	}
}

// model is a call of a model, which does as it likes.
func (r requests) model() string {
	id := r.of("secret", r.id(), r.id(), r.id())
	tool, arguments := "schedule", `{"kind":"`+r.of("k", "k", "k", "safe-1", "other")+`","id":"`+r.id()+`"`
	if when := r.of("", `"every":"1s"`, `"every":"5m"`, `"every":"2m"`, `"cron":"* * * * * *","zone":"UTC"`, `"cron":"0 9 * * *","zone":"UTC"`, `"at":"2090-01-01T00:00:00Z"`, `"when":"every 10 minutes"`,
		`"when":"every 2 seconds"`, `"when":"every day at 9am in Asia/Tokyo"`, `"when":"tomorrow at 8am in UTC"`, `"agent_id":"bob"`, `"payload":"`+strings.Repeat("x", r.IntN(30<<10))+`"`); when != "" {
		arguments += "," + when
	}
	arguments += r.of("", `,"replace":true`) + "}"
	switch r.IntN(10) {
	case 0:
		tool, arguments = r.of("explain", "pause", "resume", "run_now", "cancel"), `{"id":"`+id+`"}`
	case 1:
		tool, arguments = r.of("list_tasks", "signal", "preview", "k", "nothing"), r.of(`{}`, `{"key":"x"}`, `{"limit":100}`, `{"when":"every day at 9am"}`, `{"cursor":"f2|bob|"}`, `[]`, `{"agent":"bob"}`)
	case 2:
		return `{"jsonrpc":"2.0","id":1,"method":"` + r.of("tasks/get", "tasks/cancel", "tasks/update") + `","params":{"taskId":"` + id + `","inputResponses":{"x#1":{"action":"accept","content":{}}}}}`
	case 3:
		return `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"` + r.of("duly://agents/bob/tasks", "duly://agents/ada/tasks", "duly://agents/../bob/tasks") + `"}}`
	}
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}

// walled is a store with two agents, an API for one of them, and a scheduler of the operator.
type walled struct {
	*testing.T

	operator, api *core.Scheduler
	h             http.Handler
}

func newWalled(t *testing.T) *walled {
	t.Helper()
	srv := redistest.Start(t)
	w := &walled{T: t}
	for _, to := range []**core.Scheduler{&w.operator, &w.api} {
		st, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL})
		require.NoError(t, err)
		t.Cleanup(func() { _ = st.Close() })
		*to, err = core.New(st, core.Config{Kinds: map[string]core.KindConfig{"seen": {Activity: &core.Activity{Dimensions: 3}}, "k": {Activity: &core.Activity{Dimensions: 3}}}})
		require.NoError(t, err)
	}
	var runs atomic.Int64
	core.Handle(w.operator, "k", func(ctx context.Context, t *core.Task[any]) error { // what a run submits is bound as well
		n := runs.Add(1)
		if n%3 == 0 {
			return core.SkipRetry(errors.New("no"))
		}
		_, err := w.operator.Submit(ctx, core.NewTask{Agent: t.Agent, Kind: "k", ID: fmt.Sprint("s", n%30), MaxAttempts: 1, OnConflict: core.OnConflictReplace}, core.NewTask{Agent: t.Agent, Kind: "k", ID: fmt.Sprint("r", n%9), Every: time.Minute, OnConflict: core.OnConflictReplace})
		return err
	})
	_, err := w.operator.Submit(t.Context(), core.NewTask{Agent: "bob", ID: "secret", Kind: "none", Payload: marker, Delay: time.Hour}, core.NewTask{Agent: "bob", ID: "t1", Kind: "none", Every: time.Hour, Payload: marker})
	require.NoError(t, err)
	_, err = w.operator.SetProfile(t.Context(), core.Profile{Agent: "ada", Quota: tight})
	require.NoError(t, err)
	w.h = httpadapter.New(w.api, httpadapter.Config{Scoped: []httpadapter.Token{{Token: "one", Grant: httpadapter.Grant{Name: "ada", Agents: []string{"ada"}}}}, MCP: mcp.New(w.api, mcp.Config{})})
	return w
}

// bobs is all that the store has of the other agent.
func (w *walled) bobs() string {
	var b bytes.Buffer
	n, err := w.operator.Export(w.Context(), "bob", &b)
	require.NoError(w, err)
	require.Equal(w, 2, n)
	return b.String()
}

// holds looks at what the store has of the attacker.
func (w *walled) holds() (live int) {
	w.Helper()
	p, err := w.operator.Profile(w.Context(), "ada")
	require.NoError(w, err)
	require.Equal(w, tight, p.Quota)
	tasks, _, err := w.operator.Tasks(w.Context(), core.List{Agent: "ada", Status: []core.Status{core.StatusWaiting, core.StatusInProgress}, Limit: 200})
	require.NoError(w, err)
	recurring, size := 0, 0
	for i := range tasks {
		t := &tasks[i]
		if t.Every > 0 && !t.Manual || t.Cron != "" {
			recurring++
			require.NotContains(w, []string{"* * * * * *", "0,30 0 9 * * *", "0 0 29 2 *"}, t.Cron)
		}
		if n := len(t.Payload); n >= 4<<10 {
			size += n >> 10 << 10 // stores count each in whole KiB
		}
		require.True(w, t.Kind == "k" || strings.HasPrefix(t.Kind, "safe-"), t.Kind)
		require.False(w, t.Every > 0 && !t.Manual && (t.Every < time.Minute || t.Every > 24*time.Hour), "%s", t.Every)
		require.False(w, !t.Manual && time.Until(t.NextRun) > 25*time.Hour, "%s", t.NextRun)
	}
	require.LessOrEqual(w, len(tasks), tight.Live)
	require.LessOrEqual(w, recurring, tight.Recurring)
	require.LessOrEqual(w, size, int(tight.Bytes))
	require.Equal(w, store.QuotaUse{Live: len(tasks), Recurring: recurring, Bytes: p.Used.Bytes, Submits: p.Used.Submits}, *p.Used, "what is counted is what is there")
	return len(tasks)
}

// Ten thousand hostile calls with one credential pass no quota, and neither read nor write anything of another agent.
func TestNoCallPassesAQuota(t *testing.T) {
	t.Parallel()
	calls, looks := 10_000, 20 // how often it is looked what the agent holds
	if testing.Short() || race.Enabled {
		// They come one after the other: .ci/run makes all without the race detector.
		calls, looks = 2500, 1
	}
	w := newWalled(t)
	before := w.bobs()
	r := requests{rand.New(rand.NewPCG(48, 1))}
	codes, most := map[int]int{}, 0
	for i := range calls {
		method, path, body := r.next()
		req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer one")
		req.Header.Set("Content-Type", map[bool]string{true: "application/x-ndjson", false: "application/json"}[strings.HasSuffix(path, "/import")])
		req.Header.Set("Accept", "application/json, text/event-stream")
		res := httptest.NewRecorder()
		w.h.ServeHTTP(res, req)
		codes[res.Code]++
		require.Less(t, res.Code, 500, "%s %s %s: %s", method, path, body, res.Body)
		require.NotContains(t, res.Body.String(), marker, "%s %s", method, path)
		if i%5 == 0 {
			_, err := w.operator.RunDue(t.Context(), core.Scope{Agents: []string{"ada"}})
			if _, failed := errors.AsType[*core.RunsError](err); !failed {
				require.NoError(t, err)
			}
		}
		if i%looks == 0 || res.Code == http.StatusTooManyRequests { // at the wall
			most = max(most, w.holds())
		}
	}
	assert.Equal(t, tight.Live, most, "the attack has come to the wall")
	assert.Equal(t, before, w.bobs(), "what another agent has")
	for _, code := range []int{200, 403, 429} {
		assert.Greater(t, codes[code], calls/50, "%v", codes)
	}
	report, err := w.operator.Audit(t.Context(), inspect.AuditOptions{})
	require.NoError(t, err)
	assert.Empty(t, slices.DeleteFunc(report.Faults, func(f audit.Fault) bool { return f.Code == audit.Gone }))
	t.Logf("%d calls with one credential: %v; the agent had %d live tasks at most", calls, codes, most)
}
