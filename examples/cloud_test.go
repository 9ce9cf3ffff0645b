package examples_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
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

// ours is what a user has put into the folder of the function beside what is there: a file with a program, a webhook and a task, a
// second Go file that embeds a text of a folder below, and a test.
var ours = map[string]string{
	"duly.yaml": `handlers:
  greet: { exec: ["./greet.sh"] }
  call:  { webhook: "http://127.0.0.1:1/", insecure: true, max_attempts: 1 }
tasks:
  - { agent: ada, id: daily, kind: greet, cron: "0 9 * * *" }
approvals: { url: "https://ask.example", secret_env: APPROVALS_SECRET }
`,
	"greet.sh":         "#!/bin/sh\nprintf '\"%s\"' \"hello $DULY_AGENT_ID${DULY_REDIS_URL:-}\"\n",
	"prompt.go":        "package function\n\nimport _ \"embed\"\n\n//go:embed prompts/a.txt\nvar prompt string\n\nvar _ = prompt\n",
	"prompts/a.txt":    "summarise\n",
	"function_test.go": "package other\n",
}

// usersFolder is the folder of the example with all that is ours.
func usersFolder(dir string) (string, error) {
	folder := filepath.Join(dir, "mine")
	if err := os.CopyFS(folder, os.DirFS("cloud-function")); err != nil {
		return "", err
	}
	for name, text := range ours {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			return "", err
		}
	}
	return folder, nil
}

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
	mine, err := usersFolder(dir)
	if err != nil {
		return "", err
	}
	if out, err := exec.Command("../scripts/gcf-stage.sh", stage, mine).CombinedOutput(); err != nil {
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
	workspace := filepath.Join(filepath.Dir(stage), "workspace")
	if err := os.MkdirAll(workspace, 0o755); err != nil {
		return "", err
	}
	if err := os.Symlink(stage, filepath.Join(workspace, "serverless_function_source_code")); err != nil {
		return "", err
	}
	program := filepath.Join(workspace, "app")
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
	if testing.Short() {
		t.Skip("it stages the function and builds it as Google does")
	}
	program, err := built()
	require.NoError(t, err)
	return launchAs(t, func(port, redisURL string) *exec.Cmd {
		cmd := exec.Command(program)
		cmd.Dir = filepath.Dir(program) // Google puts the source below it
		cmd.Env = append(os.Environ(), "PORT="+port, "DULY_REDIS_URL="+redisURL, "FUNCTION_TARGET="+target, "DULY_TOKEN=right", "APPROVALS_SECRET="+approvalsSecret)
		cmd.Env = append(cmd.Env, env...)
		return cmd
	})
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

// All of the user's folder is staged, and what is in its duly.yaml works: a program, a webhook, a task.
func TestTheStagedFunctionHasTheUsersFolder(t *testing.T) {
	t.Parallel()
	s := start(t, "Duly", "DULY_PRIVATE=true")
	s.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "greet"}, core.NewTask{Agent: "ada", ID: "2", Kind: "call"})
	status, body, err := s.post("/", "", "X-CloudScheduler", "true")
	require.NoError(t, err)
	assert.Equal(t, 200, status, body)
	assert.JSONEq(t, `"hello ada"`, string(s.task("1").Result), "a program of the folder, without the URL of Redis")
	assert.Equal(t, core.StatusFailed, s.task("2").Status)
	assert.Contains(t, s.task("2").LastError, "127.0.0.1:1")
	assert.Equal(t, "0 9 * * *", s.task("daily").Cron, "the tasks of the file are submitted")
	stage, err := staged()
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(stage, "function_test.go"))
}

// approvalsSecret signs the addresses at which people answer.
const approvalsSecret = "a secret of the function"

// People open the address that a mail holds, with the API beside it and without, and nothing else needs no credential.
func TestPeopleAnswerAtTheStagedFunction(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"DULY_TOKEN=right", "DULY_TOKEN="} {
		s := start(t, "Duly", "DULY_PRIVATE=true", token)
		core.Handle(s.scheduler, "asks", func(_ context.Context, t *core.Task[any]) error {
			if _, waited := t.Heard(); waited {
				return nil
			}
			return core.Await(core.Signal{Key: "may", From: core.FromApproval}, nil)
		})
		s.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "asks"})
		_, err := s.scheduler.RunDueTasks(t.Context(), []string{"ada"})
		require.NoError(t, err)
		require.NotNil(t, s.task("1").Awaiting)
		a, err := httpadapter.NewApprovals(s.url, []byte(approvalsSecret))
		require.NoError(t, err)
		address, err := a.URL(httpadapter.Approval{
			Question: core.Question{Agent: "ada", ID: "1", Key: "may", Fence: s.task("1").Awaiting.Fence, Text: "Refund 40 EUR?"}, For: time.Hour,
		}, time.Now())
		require.NoError(t, err)
		path := strings.TrimPrefix(address, s.url)
		status, body, err := s.send("GET", path, "")
		require.NoError(t, err)
		assert.Equal(t, 200, status)
		assert.Contains(t, body, "Refund 40 EUR?")
		status, _, err = s.send("GET", "/v1/stats", "")
		require.NoError(t, err)
		assert.Equal(t, 401, status)
		status, _, err = s.post(path, "decision=approve", "Content-Type", "application/x-www-form-urlencoded")
		require.NoError(t, err)
		assert.Equal(t, 200, status)
		_, err = s.scheduler.RunDueTasks(t.Context(), []string{"ada"})
		require.NoError(t, err)
		assert.Equal(t, core.StatusCompleted, s.task("1").Status)
	}
}

// A folder that would replace a part of duly, or one that somebody else made, is left as it is.
func TestStagingRefuses(t *testing.T) {
	t.Parallel()
	mine, taken := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(mine, "core"), 0o755))
	for _, args := range [][]string{{filepath.Join(t.TempDir(), "to"), mine}, {taken, "cloud-function"}, {filepath.Join(t.TempDir(), "to"), "/nowhere"}} {
		out, err := exec.CommandContext(t.Context(), "../scripts/gcf-stage.sh", args...).CombinedOutput()
		assert.Error(t, err, "%s", out)
	}
	assert.DirExists(t, taken)
}

// A private service lets in, of those that Google does, the accounts that it is told of.
func TestTheStagedFunctionKnowsItsInvokers(t *testing.T) {
	t.Parallel()
	s := start(t, "Duly", "DULY_PRIVATE=true", "DULY_CALLER=tick@p.iam.gserviceaccount.com")
	for account, want := range map[string]int{"tick": 200, "eve": 401} {
		token := "Bearer " + unsigned(t, "RS256", map[string]any{"email": account + "@p.iam.gserviceaccount.com", "email_verified": true}) + ".SIGNATURE_REMOVED_BY_GOOGLE"
		status, body, err := s.post("/", "", "X-CloudScheduler", "true", "X-Serverless-Authorization", token, "Authorization", "Bearer right")
		require.NoError(t, err)
		assert.Equal(t, want, status, body)
	}
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
