package examples_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// buildpackMain is what Google's buildpack adds to a function that registers itself, on loopback only.
const buildpackMain = `package main

import (
	"log"
	"os"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	_ "github.com/seed-6f6f2c11/duly"
)

func main() { log.Fatal(funcframework.StartHostPort("127.0.0.1", os.Getenv("PORT"))) }
`

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "duly-gcf")
	if err != nil {
		return "", err
	}
	stage := filepath.Join(dir, "stage")
	if out, err := exec.Command("../scripts/gcf-stage.sh", stage).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(stage, "serverless_function_app"), 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(stage, "serverless_function_app", "main.go"), []byte(buildpackMain), 0o600); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "app")
	build := exec.Command("go", "build", "-o", program, "./serverless_function_app")
	build.Dir = stage
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if program, err := built(); err == nil {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// service is a staged function that runs under the real framework.
type service struct {
	*testing.T

	cmd       *exec.Cmd
	url       string
	lines     chan string
	scheduler *core.Scheduler
}

func start(t *testing.T, target string, env ...string) *service {
	t.Helper()
	program, err := built()
	require.NoError(t, err)
	srv := redistest.Start(t)
	store, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	s := &service{T: t, lines: make(chan string, 1000)}
	s.scheduler, err = core.New(store, core.Config{})
	require.NoError(t, err)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	require.NoError(t, l.Close())
	s.url = "http://127.0.0.1:" + port
	s.cmd = exec.CommandContext(t.Context(), program)
	s.cmd.Env = append(os.Environ(), "PORT="+port, "FUNCTION_TARGET="+target, "DULY_REDIS_URL="+srv.URL, "DULY_TOKEN=right")
	s.cmd.Env = append(s.cmd.Env, env...)
	out, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			select {
			case s.lines <- scan.Text():
			default:
			}
		}
	}()
	require.Eventually(t, func() bool {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 20*time.Second, 5*time.Millisecond)
	return s
}

// post sends a request, with headers as pairs.
func (s *service) post(path, body string, headers ...string) (int, string, error) {
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), err
}

func (s *service) status(id string) core.Status {
	s.Helper()
	task, err := s.scheduler.Task(s.Context(), "ada", id)
	require.NoError(s, err)
	return task.Status
}

func wrapped(id, data string) string {
	return fmt.Sprintf(`{"message":{"messageId":%q,"data":%q},"subscription":"projects/p/subscriptions/s"}`, id,
		base64.StdEncoding.EncodeToString([]byte(data)))
}

// A push brings a task in, Cloud Scheduler runs it, the API shows it.
func TestTheStagedFunction(t *testing.T) {
	t.Parallel()
	s := start(t, "Duly", "DULY_PRIVATE=true")
	status, body, err := s.post("/", wrapped("m1", `{"agent_id":"ada","id":"1","kind":"note"}`), "Content-Type", "application/json")
	require.NoError(t, err)
	assert.Equal(t, 200, status, body)
	tick := []string{"X-CloudScheduler", "true", "X-CloudScheduler-JobName", "duly", "X-CloudScheduler-ScheduleTime", "2026-11-02T07:17:00Z"}
	_, body, err = s.post("/", "", tick...)
	require.NoError(t, err)
	assert.Contains(t, body, `"completed":1`)
	assert.Equal(t, core.StatusCompleted, s.status("1"))
	_, body, err = s.post("/", "", tick...)
	require.NoError(t, err)
	assert.Contains(t, body, `"duplicate":true`)
	status, _, err = s.post("/v1/run-due", `{"all":true}`, "Content-Type", "application/json")
	require.NoError(t, err)
	assert.Equal(t, 401, status)
	status, _, err = s.post("/v1/run-due", `{"all":true}`, "Content-Type", "application/json", "Authorization", "Bearer right")
	require.NoError(t, err)
	assert.Equal(t, 200, status)
}

func TestTheStagedFunctionVerifiesItsCallers(t *testing.T) {
	t.Parallel()
	s := start(t, "Duly", "DULY_AUDIENCE=https://duly.example", "DULY_CALLER=tick@p.iam.gserviceaccount.com")
	for _, token := range []string{"", "right", "a.b.c"} {
		status, _, err := s.post("/", "", "X-CloudScheduler", "true", "Authorization", "Bearer "+token)
		require.NoError(t, err)
		assert.Equal(t, 401, status)
	}
}

// The CloudEvents client talks to the framework, in both forms.
func TestTheStagedEventFunction(t *testing.T) {
	t.Parallel()
	s := start(t, "DulyEvent", "DULY_PRIVATE=true")
	client, err := cloudevents.NewClientHTTP(cloudevents.WithTarget(s.url))
	require.NoError(t, err)
	send := func(ctx context.Context, id, kind, data string) error {
		e := cloudevents.NewEvent()
		e.SetID(id)
		e.SetSource("//own")
		e.SetType(kind)
		require.NoError(t, e.SetData("application/json", []byte(data)))
		return client.Send(ctx, e)
	}
	forms := map[string]context.Context{"binary": cloudevents.WithEncodingBinary(t.Context()), "structured": cloudevents.WithEncodingStructured(t.Context())}
	for form, ctx := range forms {
		message := wrapped("m-"+form, fmt.Sprintf(`{"agent_id":"ada","id":%q,"kind":"note"}`, form))
		assert.True(t, cloudevents.IsACK(send(ctx, "1"+form, "google.cloud.pubsub.topic.v1.messagePublished", message)))
		assert.True(t, cloudevents.IsACK(send(ctx, "2"+form, "com.example.tick", `{"kind":"tick"}`)))
		assert.Equal(t, core.StatusCompleted, s.status(form))
		assert.True(t, cloudevents.IsACK(send(ctx, "3"+form, "google.cloud.storage.object.v1.finalized", `{"bucket":"b"}`)), "not repeated")
	}
	status, _, err := s.post("/", wrapped("m2", `{"agent_id":"ada","id":"pushed","kind":"note"}`), "Content-Type", "application/json")
	require.NoError(t, err)
	assert.Equal(t, 200, status)
	assert.Equal(t, core.StatusWaiting, s.status("pushed"), "the framework makes an event of a push")
}

// SIGTERM waits for the request under way, whose answer arrives, and exits with 0.
func TestTheStagedFunctionEndsWell(t *testing.T) {
	t.Parallel()
	s := start(t, "Duly", "DULY_PRIVATE=true")
	_, err := s.scheduler.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "w", Kind: "wait", Payload: "500ms"})
	require.NoError(t, err)
	answers := make(chan string, 1)
	go func() {
		_, body, err := s.post("/", "", "X-CloudScheduler", "true")
		answers <- fmt.Sprint(body, err)
	}()
	for line := range s.lines {
		if strings.Contains(line, "waiting") {
			break
		}
	}
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Contains(t, <-answers, `"completed":1`)
	require.NoError(t, s.cmd.Wait(), "exit 0")
	assert.Equal(t, core.StatusCompleted, s.status("w"))
}
