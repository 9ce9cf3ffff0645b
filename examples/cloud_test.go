package examples_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
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

// staged is what `make gcf-stage` makes, with the buildpack's main.
var staged = sync.OnceValues(func() (string, error) {
	dir, err := folder()
	if err != nil {
		return "", err
	}
	if err := noticeSource(); err != nil {
		return "", err
	}
	stage := filepath.Join(dir, "stage")
	if out, err := exec.Command("../scripts/gcf-stage.sh", stage).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	main := filepath.Join(stage, "serverless_function_app")
	if err := os.MkdirAll(main, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(main, "main.go"), []byte(buildpackMain), 0o600); err != nil {
		return "", err
	}
	tidy := exec.Command("go", "mod", "tidy") // as the buildpack does
	tidy.Dir = stage
	if out, err := tidy.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return stage, nil
})

var built = sync.OnceValues(func() (string, error) {
	stage, err := staged()
	if err != nil {
		return "", err
	}
	program := filepath.Join(filepath.Dir(stage), "app")
	build := exec.Command("go", "build", "-o", program, "./serverless_function_app")
	build.Dir = stage
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// start is a staged function that runs under the real framework.
func start(t *testing.T, target string, env ...string) *service {
	t.Helper()
	program, err := built()
	require.NoError(t, err)
	return launch(t, program, append([]string{"FUNCTION_TARGET=" + target, "DULY_TOKEN=right"}, env...)...)
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
	assert.Equal(t, core.StatusCompleted, s.task("1").Status)
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

// The CloudEvents client talks to the framework, in both forms.
func TestTheStagedEventFunction(t *testing.T) {
	t.Parallel()
	s := start(t, "DulyEvent", "DULY_PRIVATE=true")
	client, err := cloudevents.NewClientHTTP(cloudevents.WithTarget(s.url), cehttp.WithClient(*s.client))
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
		assert.Equal(t, core.StatusCompleted, s.task(form).Status)
		assert.True(t, cloudevents.IsACK(send(ctx, "3"+form, "google.cloud.storage.object.v1.finalized", `{"bucket":"b"}`)), "not repeated")
	}
	status, _, err := s.post("/", wrapped("m2", `{"agent_id":"ada","id":"pushed","kind":"note"}`), "Content-Type", "application/json")
	require.NoError(t, err)
	assert.Equal(t, 200, status)
	assert.Equal(t, core.StatusWaiting, s.task("pushed").Status, "the framework makes an event of a push")
}

// SIGTERM waits for the request under way, whose answer arrives, and exits with 0.
func TestTheStagedFunctionEndsWell(t *testing.T) {
	t.Parallel()
	s := start(t, "Duly", "DULY_PRIVATE=true")
	s.submit(core.NewTask{Agent: "ada", ID: "w", Kind: "wait", Payload: "500ms"})
	answers := make(chan string, 1)
	go func() {
		_, body, err := s.post("/", "", "X-CloudScheduler", "true")
		answers <- fmt.Sprint(body, err)
	}()
	s.logged("waiting")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Contains(t, <-answers, `"completed":1`)
	require.NoError(t, s.end(), "exit 0")
	assert.Equal(t, core.StatusCompleted, s.task("w").Status)
}
