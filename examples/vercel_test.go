package examples_test

// The function on Vercel, behind a server as Vercel starts one, with a clock that signs as QStash does.

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// launcher is what Vercel adds to a function in Go.
const launcher = `package main

import (
	"log"
	"net/http"
	"os"

	handler "github.com/seed-6f6f2c11/duly/examples/vercel/api"
)

func main() {
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(handler.Handler)))
}
`

const vercelKey, vercelBase = "sig_a-signing-key-as-qstash-shows-it", "https://duly.example"

// rings is a QStash that posts each message at its time to a server, under the public name of which it was published.
func rings(t *testing.T, server func() string) *httptest.Server {
	t.Helper()
	clock := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		at, err := strconv.ParseInt(r.Header.Get("Upstash-Not-Before"), 10, 64)
		to, ours := strings.CutPrefix(r.URL.Path, "/v2/publish/"+vercelBase)
		if err != nil || !ours || r.Header.Get("Authorization") != "Bearer qstash-token" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		time.AfterFunc(time.Until(time.Unix(at, 0)), func() {
			call, err := http.NewRequest(http.MethodPost, server()+to, bytes.NewReader(body))
			if err != nil {
				return
			}
			call.Header.Set("Content-Type", "application/json")
			call.Header.Set("Upstash-Signature", signature(t, vercelBase+to, body))
			if res, err := http.DefaultClient.Do(call); err == nil {
				_ = res.Body.Close()
			}
		})
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"messageId":"msg_1"}`)
	}))
	t.Cleanup(func() {
		clock.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return clock
}

// signature is a JWT as QStash makes it.
func signature(t *testing.T, to string, body []byte) string {
	t.Helper()
	sum := sha256.Sum256(body)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(vercelKey)}, nil)
	assert.NoError(t, err)
	now := time.Now()
	text, err := jwt.Signed(signer).Claims(map[string]any{
		"iss": "Upstash", "sub": to, "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"jti": fmt.Sprint("jwt_", now.UnixNano()), "body": base64.URLEncoding.EncodeToString(sum[:]),
	}).Serialize()
	assert.NoError(t, err)
	return text
}

// A task that is submitted to the function runs at its second: QStash calls the function, which needs no other clock.
func TestVercel(t *testing.T) {
	t.Parallel()
	main := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(main, []byte(launcher), 0o600))
	program, err := compile("vercel", main)
	require.NoError(t, err)
	var s *service
	clock := rings(t, func() string { return s.url })
	settings := []string{
		"VERCEL_PROJECT_PRODUCTION_URL=duly.example", "DULY_TOKEN=right", "CRON_SECRET=sesame", "QSTASH_URL=" + clock.URL, "QSTASH_TOKEN=qstash-token",
		"QSTASH_CURRENT_SIGNING_KEY=" + vercelKey, "QSTASH_NEXT_SIGNING_KEY=the-next-signing-key",
	}
	s = launchAs(t, func(port, redisURL string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(append(os.Environ(), "PORT="+port, "KV_URL="+redisURL, "DULY_REDIS_URL="), settings...)
		return cmd
	})
	due := time.Now().Add(3 * time.Second).UTC()
	task := fmt.Sprintf(`{"agent_id":"ada","id":"1","kind":"note","at":%q}`, due.Format(time.RFC3339Nano))
	status, body, err := s.post("/v1/tasks", task)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, status, body)
	status, body, err = s.post("/v1/tasks", task, "Authorization", "Bearer right", "Content-Type", "application/json")
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, status, body)
	require.Eventually(t, func() bool { return s.task("1").Status == core.StatusCompleted }, 20*time.Second, 20*time.Millisecond)
	late := s.task("1").Runs[0].Started.Sub(due)
	t.Logf("figure: started %s after its time", late)
	assert.Less(t, late, 5*time.Second)

	s.submit(core.NewTask{Agent: "ada", ID: "2", Kind: "hello"})
	for secret, want := range map[string]int{"wrong": 401, "right": 401} {
		status, body, err := s.send("GET", "/v1/cron", "", "Authorization", "Bearer "+secret)
		require.NoError(t, err)
		assert.Equal(t, want, status, body)
	}
	status, body, err = s.send("GET", "/v1/cron", "", "Authorization", "Bearer sesame", "User-Agent", "vercel-cron/1.0")
	require.NoError(t, err)
	assert.Equal(t, 200, status, body)
	assert.Equal(t, core.StatusCompleted, s.task("2").Status)
}

// vercel.json leads all paths of the API to the function, and the cron to one of them.
func TestVercelsConfiguration(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("vercel/vercel.json")
	require.NoError(t, err)
	var file struct {
		Functions map[string]struct{ MaxDuration int }
		Crons     []struct{ Path, Schedule string }
		Rewrites  []struct{ Source, Destination string }
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&file))
	require.Len(t, file.Rewrites, 1)
	function := strings.TrimPrefix(file.Rewrites[0].Destination, "/") + ".go"
	assert.FileExists(t, filepath.Join("vercel", function))
	assert.Greater(t, file.Functions[function].MaxDuration, 50, "what the function lets a request take")
	require.Len(t, file.Crons, 1)
	leads := regexp.MustCompile("^" + file.Rewrites[0].Source + "$")
	for _, path := range []string{file.Crons[0].Path, "/v1/run-due", "/v1/tasks"} {
		assert.True(t, leads.MatchString(path), path)
	}
	_, err = schedule.ParseCron(file.Crons[0].Schedule, "", "", "")
	require.NoError(t, err)
}
