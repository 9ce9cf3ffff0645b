package adaptertest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/adaptertest"
	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/adapters/gcf"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

var drivers = map[string]func(tb testing.TB, w *adaptertest.World) adaptertest.Adapter{
	"daemon": func(_ testing.TB, w *adaptertest.World) adaptertest.Adapter { return daemonDriver{w} },
	"http": func(_ testing.TB, w *adaptertest.World) adaptertest.Adapter {
		return httpDriver{httpadapter.New(w.Scheduler, httpadapter.Config{})}
	},
	"lambda": func(tb testing.TB, w *adaptertest.World) adaptertest.Adapter {
		tb.Helper()
		f, err := lambdaadapter.New(w.Scheduler, lambdaadapter.Config{})
		require.NoError(tb, err)
		return lambdaDriver{f}
	},
	"gcf": func(tb testing.TB, w *adaptertest.World) adaptertest.Adapter {
		tb.Helper()
		f, err := gcf.New(w.Scheduler, gcf.Config{Verify: gcf.Private, DeadLetter: true})
		require.NoError(tb, err)
		return gcfDriver{f}
	},
}

func open(t *testing.T, srv *redistest.Server) core.Store {
	t.Helper()
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func TestEveryAdapterTellsTheStory(t *testing.T) {
	t.Parallel()
	for name, driver := range drivers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := adaptertest.NewWorld(t, name, open(t, redistest.Start(t)), new(adaptertest.Starts))
			adaptertest.Run(t, w, driver(t, w))
		})
	}
}

// All adapters serve one Redis at once, each with connections of its own.
func TestAllAdaptersTogetherRunEachTaskOnce(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	starts := new(adaptertest.Starts)
	worlds, adapters := map[string]*adaptertest.World{}, map[string]adaptertest.Adapter{}
	for name, driver := range drivers {
		w := adaptertest.NewWorld(t, name, open(t, srv), starts)
		worlds[name], adapters[name] = w, driver(t, w)
	}
	adaptertest.Together(t, 1000, starts, worlds, adapters)
}

// daemonDriver runs a daemon until nothing more is claimed.
type daemonDriver struct{ world *adaptertest.World }

func (daemonDriver) Submit(context.Context, string) error { return adaptertest.ErrUnsupported }
func (daemonDriver) Malformed(context.Context) error      { return adaptertest.ErrUnsupported }

func (d daemonDriver) Trigger(ctx context.Context, pull adaptertest.Pull) (adaptertest.Result, error) {
	if pull.Max != 0 {
		return adaptertest.Result{}, adaptertest.ErrUnsupported
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	d.world.OnClaim(d.whenIdle(pull.Agents, stop))
	config := daemon.Config{Agents: pull.Agents, Tick: 10 * time.Millisecond, Safety: 20 * time.Millisecond}
	config.Grace = 100 * time.Millisecond // when it looks again all but what is slow has ended
	x, err := daemon.New(d.world.Scheduler, config)
	if err != nil {
		return adaptertest.Result{}, err
	}
	unhook := context.AfterFunc(ctx, stop)
	defer unhook()
	return adaptertest.Result{}, x.Run(run)
}

// whenIdle calls stop when every partition that these agents are in has answered that it has no more.
func (d daemonDriver) whenIdle(agents []string, stop func()) func(store.Claim) {
	var mu sync.Mutex
	left := map[int]bool{}
	for i := range d.world.Scheduler.Partitions() {
		left[i] = agents == nil
	}
	for _, agent := range agents {
		left[store.PartitionOf(agent, d.world.Scheduler.Partitions())] = true
	}
	maps.DeleteFunc(left, func(_ int, busy bool) bool { return !busy })
	return func(c store.Claim) {
		mu.Lock()
		defer mu.Unlock()
		if len(c.Tasks) == 0 && c.Err == nil && (c.NextDue == 0 || c.NextDue > c.Now) {
			delete(left, c.Partition)
		}
		if len(left) == 0 {
			stop()
		}
	}
}

// post serves a request and returns the answer, or an error that holds it.
func post(ctx context.Context, h http.Handler, path, body string, headers ...string) ([]byte, error) {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, name := range headers {
		r.Header.Set(name, "true")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code >= 300 {
		var problem struct{ Detail string }
		_ = json.Unmarshal(w.Body.Bytes(), &problem)
		return nil, fmt.Errorf("%d: %s", w.Code, problem.Detail)
	}
	return w.Body.Bytes(), nil
}

// tick is a pull as JSON, with members in front.
func tick(members string, pull adaptertest.Pull) string {
	agents := `"all":true`
	if pull.Agents != nil {
		names, _ := json.Marshal(pull.Agents)
		agents = `"agent_ids":` + string(names)
	}
	if pull.Max == 0 { // no limit, which is said by saying nothing
		return fmt.Sprintf(`{%s%s}`, members, agents)
	}
	return fmt.Sprintf(`{%s%s,"max":%d}`, members, agents, pull.Max)
}

func report(data []byte, err error) (adaptertest.Result, error) {
	if err != nil {
		return adaptertest.Result{}, err
	}
	return adaptertest.Decode(data)
}

type httpDriver struct{ handler http.Handler }

func (d httpDriver) Submit(ctx context.Context, tasks string) error {
	_, err := post(ctx, d.handler, "/v1/tasks", tasks)
	return err
}

func (d httpDriver) Trigger(ctx context.Context, pull adaptertest.Pull) (adaptertest.Result, error) {
	return report(post(ctx, d.handler, "/v1/run-due", tick("", pull)))
}

func (d httpDriver) Malformed(ctx context.Context) error {
	_, err := post(ctx, d.handler, "/v1/run-due", `{"everything":true}`)
	return err
}

type lambdaDriver struct{ function *lambdaadapter.Function }

func (d lambdaDriver) Submit(ctx context.Context, tasks string) error {
	body, _ := json.Marshal(tasks)
	answer, err := d.function.Invoke(ctx, json.RawMessage(`{"Records":[{"eventSource":"aws:sqs","messageId":"m","body":`+string(body)+`}]}`))
	if err == nil && strings.Contains(string(answer), "itemIdentifier") {
		err = errors.New("the record failed")
	}
	return err
}

func (d lambdaDriver) Trigger(ctx context.Context, pull adaptertest.Pull) (adaptertest.Result, error) {
	return report(d.function.Invoke(ctx, json.RawMessage(tick(`"kind":"tick",`, pull))))
}

func (d lambdaDriver) Malformed(ctx context.Context) error {
	_, err := d.function.Invoke(ctx, json.RawMessage(`{"kind":"tock"}`))
	return err
}

type gcfDriver struct{ function *gcf.Function }

func (d gcfDriver) push(ctx context.Context, data string) error {
	_, err := post(ctx, d.function, "/", fmt.Sprintf(`{"message":{"messageId":"m","data":%q},"subscription":"s"}`,
		base64.StdEncoding.EncodeToString([]byte(data))))
	return err
}

func (d gcfDriver) Submit(ctx context.Context, tasks string) error { return d.push(ctx, tasks) }

func (d gcfDriver) Trigger(ctx context.Context, pull adaptertest.Pull) (adaptertest.Result, error) {
	return report(post(ctx, d.function, "/", tick("", pull), "X-CloudScheduler"))
}

func (d gcfDriver) Malformed(ctx context.Context) error { return d.push(ctx, `{"kind":"tock"}`) }
