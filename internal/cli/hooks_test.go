package cli_test

// Hooks: webhooks of services that the binary receives, over several servers, kills and an outage.

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// hooksFile is a daemon whose runs wait for a background response, and that takes issues.
const hooksFile = `
handlers:
  ask: { exec: [sh, -c, 'in=$(cat); case "$in" in *resp_*told*|*told*resp_*) echo "$in" ;; *) echo "duly-await: response-$DULY_TASK_ID" >&3; exit 76 ;; esac'] }
  triage: { log: {} }
hooks:
  openai:
    standard_webhooks: { secret_env: OPENAI_WEBHOOK_SECRET }
    only: { /type: [response.completed, response.failed] }
    signal: { agent: ann, key: "response-{/data/id}" }
  issues:
    github: { secret_env: GITHUB_SECRET }
    only: { "header:X-GitHub-Event": issues }
    submit: { agent: ops, kind: triage, payload: { number: "{/issue/number}" } }
`

// Secrets of these hooks.
const (
	openaiKey    = "the key of the sender of answers"
	githubSecret = "It's a Secret to Everybody"
)

// newHooks is a world with the secrets of the hooks.
func newHooks(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.env = append(w.env, "OPENAI_WEBHOOK_SECRET=whsec_"+base64.StdEncoding.EncodeToString([]byte(openaiKey)), "GITHUB_SECRET="+githubSecret)
	return w
}

// sum is the signature of a text.
func sum(key, text string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write([]byte(text))
	return mac.Sum(nil)
}

// response is a message about a background response.
func response(t *testing.T, url, message, id string) *http.Request {
	t.Helper()
	body := fmt.Sprintf(`{"id":"evt_%s","object":"event","type":"response.completed","created_at":1719168000,"data":{"id":"%s"}}`, message, id)
	stamp := fmt.Sprint(time.Now().Unix())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/hooks/openai", strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Webhook-Id", message)
	r.Header.Set("Webhook-Timestamp", stamp)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum(openaiKey, message+"."+stamp+"."+body)))
	return r
}

// issue is a message about an issue.
func issue(t *testing.T, url string, number int) *http.Request {
	t.Helper()
	body := fmt.Sprintf(`{"action":"opened","issue":{"number":%d}}`, number)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/hooks/issues", strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("X-Github-Event", "issues")
	r.Header.Set("X-Github-Delivery", fmt.Sprint("delivery-", number))
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sum(githubSecret, body)))
	return r
}

// status sends a message and returns the status of its answer; 0 without one.
func status(r *http.Request) int {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// The end of a background response wakes the run that waits for it, in any process, once, and a secret that is missing is named.
func TestABackgroundResponseWakesItsRun(t *testing.T) {
	t.Parallel()
	w := newHooks(t)
	config := file(t, hooksFile)
	bare := *w
	bare.env = bare.env[:len(bare.env)-1]
	for _, command := range []string{"serve", "daemon"} {
		oneLine(t, bare.duly(t, command, "-c", config, "--http", "127.0.0.1:0"), 2, "duly.yaml:11: hooks.issues: the environment variable GITHUB_SECRET, named by secret_env, is not set or empty")
	}
	s := w.scheduler(t)
	d := w.start(t, "daemon", "-c", config, "--http", "127.0.0.1:0")
	urls := []string{d.url(t), w.start(t, "serve", "-c", config, "--http", "127.0.0.1:0").url(t)}
	w.ok(t, "submit", "--agent", "ann", "--kind", "ask", "--id", "resp_1")
	require.Eventually(t, func() bool {
		task, err := s.Task(t.Context(), "ann", "resp_1")
		return err == nil && task.Awaiting != nil
	}, 20*time.Second, 5*time.Millisecond)
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for i := range 8 {
		wg.Go(func() {
			got := status(response(t, urls[i%2], "wh_1", "resp_1"))
			mu.Lock()
			defer mu.Unlock()
			answers[got]++
		})
	}
	wg.Wait()
	assert.Equal(t, 1, answers[200], answers)
	assert.Equal(t, 7, answers[208]+answers[503], answers)
	task := settled(t, s, "ann", "resp_1", core.StatusCompleted)
	assert.Contains(t, string(task.Result), `"how":"credential","by":"hook:openai"`)
	assert.Len(t, task.Runs, 2, "one that asks, and one that was woken")
	for number := range 3 {
		assert.Equal(t, 201, status(issue(t, urls[number%2], number)))
		assert.Equal(t, 208, status(issue(t, urls[(number+1)%2], number)))
	}
	foreign := issue(t, urls[0], 9)
	foreign.Host = "tunnel.example"
	assert.Equal(t, 201, status(foreign), "it comes through a tunnel: its signature is enough")
	other, err := http.NewRequestWithContext(t.Context(), http.MethodGet, urls[0]+"/v1/tasks", nil)
	require.NoError(t, err)
	other.Host = "tunnel.example"
	assert.Equal(t, 403, status(other), "the rest of an API without tokens does not")
	assert.NotContains(t, d.log(), githubSecret)
}

// While Redis is away a message is answered so that its sender sends it again, and then it counts.
func TestAHookWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	w := newHooks(t)
	d := w.start(t, "serve", "-c", file(t, hooksFile), "--http", "127.0.0.1:0")
	url := d.url(t)
	w.redis.Kill()
	assert.Equal(t, 503, status(issue(t, url, 1)))
	d.line(t, "a request failed", "path=/v1/hooks/issues")
	w.redis.Restart(t)
	require.Eventually(t, func() bool { return status(issue(t, url, 1)) == 201 }, 30*time.Second, 50*time.Millisecond)
	assert.Equal(t, 208, status(issue(t, url, 1)))
}

// cutter is a way to a Redis, on which a server dies once it has done what a message asks for, and before it can note that.
type cutter struct {
	url string
	cut chan struct{} // closed when it has come to that
}

// carriedOut is the state of a message that was carried out, as a server sends it.
var carriedOut = []byte("\r\n$1\r\nd\r\n")

// newCutter makes one.
func newCutter(t *testing.T, w *world) *cutter {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "r"))
	require.NoError(t, err)
	c := &cutter{url: "unix://" + l.Addr().String(), cut: make(chan struct{})}
	target := strings.TrimPrefix(w.redis.URL, "unix://")
	var all sync.WaitGroup
	var once sync.Once
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("unix", target)
			if err != nil {
				_ = from.Close()
				continue
			}
			all.Go(func() { _, _ = io.Copy(from, to); _ = from.Close() })
			all.Go(func() {
				defer to.Close()
				buffer := make([]byte, 64<<10)
				for {
					n, err := from.Read(buffer)
					if bytes.Contains(buffer[:n], carriedOut) {
						once.Do(func() { close(c.cut) })
						return // and says nothing any more
					}
					if n > 0 {
						_, _ = to.Write(buffer[:n])
					}
					if err != nil {
						return
					}
				}
			})
		}
	})
	return c
}

// A server that is killed between what a message does and its answer has done it: delivered again to another server the message does nothing more.
func TestAServerDiesBeforeItAnswersAHook(t *testing.T) {
	t.Parallel()
	w := newHooks(t)
	config := file(t, hooksFile)
	s := w.scheduler(t)
	w.start(t, "daemon", "-c", config).line(t, "running")
	other := w.start(t, "serve", "-c", config, "--http", "127.0.0.1:0").url(t)
	w.ok(t, "submit", "--agent", "ann", "--kind", "ask", "--id", "resp_1")
	require.Eventually(t, func() bool {
		task, err := s.Task(t.Context(), "ann", "resp_1")
		return err == nil && task.Awaiting != nil
	}, 20*time.Second, 5*time.Millisecond)
	for i, message := range []func(url string) *http.Request{
		func(url string) *http.Request { return issue(t, url, 1) },
		func(url string) *http.Request { return response(t, url, "wh_1", "resp_1") },
	} {
		c := newCutter(t, w)
		dying := *w
		dying.env = append(slices.Clone(w.env), "DULY_REDIS_URL="+c.url)
		d := dying.start(t, "serve", "-c", config, "--http", "127.0.0.1:0")
		request := message(d.url(t))
		answer := make(chan int, 1)
		go func() { answer <- status(request) }()
		<-c.cut
		d.stop(t, syscall.SIGKILL)
		assert.Zero(t, <-answer)
		assert.Equal(t, 503, status(message(other)), "its minute is not over")
		require.NoError(t, forgetReceipts(t, w))
		if i == 1 {
			settled(t, s, "ann", "resp_1", core.StatusCompleted)
		}
		assert.Equal(t, 200, status(message(other)), "it does nothing more")
		assert.Equal(t, 208, status(message(other)))
	}
	task := settled(t, s, "ann", "resp_1", core.StatusCompleted)
	assert.Len(t, task.Runs, 2, "it was woken once")
	kept, err := w.redis.Client(t).Keys(t.Context(), "*:signal:*").Result()
	require.NoError(t, err)
	assert.Empty(t, kept, "and nothing is kept for the next that waits")
	tasks, _, err := s.Tasks(t.Context(), core.List{Agent: "ops"})
	require.NoError(t, err)
	assert.Len(t, tasks, 1)
}

// forgetReceipts lets the time pass within which a message has to be carried out.
func forgetReceipts(t *testing.T, w *world) error {
	t.Helper()
	client := w.redis.Client(t)
	keys, err := client.Keys(t.Context(), "*receipts").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	return client.Del(t.Context(), keys...).Err()
}

// The file and the calls of docs/hooks.md do what the page says.
func TestThePageOfHooks(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"openssl", "curl", "od"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("there is no " + tool + " here")
		}
	}
	page := read(t, "../../docs/hooks.md")
	_, config, _ := strings.Cut(page, "```yaml\n")
	config, _, _ = strings.Cut(config, "```")
	config = regexp.MustCompile(`exec: \[.*?\]`).ReplaceAllString(strings.Replace(config, "0.0.0.0:8080", "127.0.0.1:0", 1), "log: {}")
	w := newHooks(t)
	w.env = append(w.env, "STRIPE_SECRET=whsec_test_secret", "DEPLOYS_SECRET=another secret of some length", "ORDERS_TOKEN=a bearer secret of some length")
	url := w.start(t, "serve", "-c", file(t, config)).url(t)
	want := []string{`{"resumed":0,"kept":true}`, `"id":"gh-1"`, `"agent_id":"customer-7"`, `{"resumed":0,"kept":true}`}
	_, rest, found := strings.Cut(page, "```sh\n")
	for ; found; _, rest, found = strings.Cut(rest, "```sh\n") {
		var block string
		block, rest, _ = strings.Cut(rest, "```")
		for range 2 {
			cmd := exec.CommandContext(t.Context(), "sh", "-euc", block)
			cmd.Env = append(slices.Clone(w.env), "URL="+url)
			out, err := cmd.Output()
			require.NoError(t, err, block)
			require.NotEmpty(t, want, block)
			assert.Contains(t, string(out), want[0], block)
			want[0] = `{"duplicate":true}`
		}
		want = want[1:]
	}
	assert.Empty(t, want)
}
