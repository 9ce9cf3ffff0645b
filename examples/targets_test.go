package examples_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// The functions and the queue of the example get its tasks; the function in Python, which is only started, answers later through the API.
func TestTheTargets(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 to run the function")
	}
	events := make(chan string, 10)
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.HasSuffix(r.URL.Path, "/report/invocations"):
			events <- string(body)
			w.WriteHeader(http.StatusAccepted)
		case strings.HasSuffix(r.URL.Path, "/digest/invocations"):
			_, _ = io.WriteString(w, `{"digest":"all quiet"}`)
		default:
			_, _ = io.WriteString(w, `{"MessageId":"m-1"}`)
		}
	}))
	t.Cleanup(cloud.Close)
	s := serveDuly(t, "daemon", "targets/duly.yaml", "AWS_ENDPOINT_URL="+cloud.URL, "AWS_REGION=eu-north-1", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b")
	var event string
	select {
	case event = <-events:
	case <-time.After(20 * time.Second):
		t.Fatal("the function was not started")
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", "import function, json, sys; function.handler(json.load(sys.stdin), None)")
	cmd.Dir, cmd.Stdin, cmd.Env = "targets", strings.NewReader(event), append(cmd.Environ(), "DULY_URL="+s.url, "PYTHONDONTWRITEBYTECODE=1")
	require.Eventually(t, func() bool { // the task waits once its run has been stored
		info, err := s.scheduler.Task(t.Context(), "ada", "report")
		return err == nil && info.Awaiting != nil
	}, 20*time.Second, 20*time.Millisecond)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Eventually(t, func() bool {
		info, err := s.scheduler.Task(t.Context(), "ada", "report")
		return err == nil && string(info.Result) == `{"report":"all quiet, ada"}`
	}, 20*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		info, err := s.scheduler.Task(t.Context(), "ada", "audit")
		return err == nil && info.RunCount > 0 && info.ErrorCount == 0
	}, 20*time.Second, 20*time.Millisecond)
	digest, err := s.scheduler.Task(t.Context(), "ada", "digest")
	require.NoError(t, err)
	assert.Equal(t, core.StatusWaiting, digest.Status)
}
