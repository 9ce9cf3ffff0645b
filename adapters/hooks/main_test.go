package hooks_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/hooks"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// signedAt is when the messages of these tests are signed, and secret by what.
var signedAt = time.Unix(1_614_265_330, 0)

const secret = "a secret that no test says aloud"

// process is one that receives hooks.
type process struct {
	spy     *storetest.Spy
	s       *core.Scheduler
	handler http.Handler
	logs    *bytes.Buffer
}

// still is a clock that shows one time.
type still struct{ at time.Time }

func (c *still) Now() time.Time { return c.at }

func (*still) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// beside is a process on the store of others.
func beside(t *testing.T, st core.Store, configs ...hooks.Config) *process {
	t.Helper()
	p := &process{spy: &storetest.Spy{Store: st}, logs: new(bytes.Buffer)}
	var err error
	p.s, err = core.New(p.spy, core.Config{Kinds: map[string]core.KindConfig{"off": {Disabled: true}}})
	require.NoError(t, err)
	core.Handle(p.s, "ok", func(context.Context, *core.Task[json.RawMessage]) error { return nil })
	all, err := hooks.New(configs...)
	require.NoError(t, err)
	p.handler = httpadapter.New(p.s, httpadapter.Config{
		Tokens: []string{"token"}, Hooks: all, Clock: &still{signedAt}, MaxBody: 4096, Logger: slog.New(slog.NewTextHandler(p.logs, nil)),
	})
	return p
}

func start(t *testing.T, configs ...hooks.Config) *process {
	t.Helper()
	return beside(t, memstore.New(memstore.Config{MaxTasks: 3}), configs...)
}

// send sends a request, whose headers are names and values, and returns its status and its answer.
func (p *process) send(hook, body string, header ...string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, "/v1/hooks/"+hook, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// digest is the signature of a text.
func digest(key, text string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func sum(key, text string) string { return hex.EncodeToString(digest(key, text)) }

func base64Sum(key, text string) string { return base64.StdEncoding.EncodeToString(digest(key, text)) }

// plain sends a message that is signed by its body alone.
func (p *process) plain(hook, body string, header ...string) (int, string) {
	return p.send(hook, body, append(header, "X-Signature", sum(secret, body))...)
}

// tells is a hook that sends a signal to ann, but for what is changed.
func tells(change func(c *hooks.Config)) hooks.Config {
	c := hooks.Config{Name: "in", Scheme: hooks.HMAC, Secrets: []string{secret}, Signal: &hooks.Signal{Agent: "ann", Key: "k-{/id}"}}
	if change != nil {
		change(&c)
	}
	return c
}

// submits is a hook that submits a task of ann, but for what is changed.
func submits(change func(t *core.NewTask)) hooks.Config {
	task := core.NewTask{Agent: "ann", Kind: "ok"}
	if change != nil {
		change(&task)
	}
	return hooks.Config{Name: "in", Scheme: hooks.HMAC, Secrets: []string{secret}, Task: &task}
}

// wait has a task wait for a signal, and returns what tells what it has heard.
func (p *process) wait(t *testing.T, key string, approval bool) func() *core.Heard {
	t.Helper()
	var heard *core.Heard
	signal := core.Signal{Key: key}
	if approval {
		signal.From = core.FromApproval
	}
	core.Handle(p.s, "waits", func(_ context.Context, task *core.Task[any]) error {
		h, waited := task.Heard()
		if !waited {
			return core.Await(signal, nil)
		}
		heard = &h
		return nil
	})
	_, err := p.s.Submit(t.Context(), core.NewTask{Agent: "ann", ID: "w", Kind: "waits"})
	require.NoError(t, err)
	p.run(t)
	return func() *core.Heard { p.run(t); return heard }
}

// run runs what is due.
func (p *process) run(t *testing.T) {
	t.Helper()
	_, err := p.s.RunDueTasks(t.Context(), []string{"ann"})
	require.NoError(t, err)
}

// tasks are those of an agent.
func (p *process) tasks(t *testing.T, agent string) []core.TaskInfo {
	t.Helper()
	all, _, err := p.s.Tasks(t.Context(), core.List{Agent: agent})
	require.NoError(t, err)
	return all
}

// standard are the headers of Standard Webhooks.
func standard(key []byte, id string, at time.Time, body string) []string {
	return []string{
		"Webhook-Id", id, "Webhook-Timestamp", fmt.Sprint(at.Unix()), "Webhook-Signature", "v1," + base64Sum(string(key), fmt.Sprintf("%s.%d.%s", id, at.Unix(), body)),
	}
}
