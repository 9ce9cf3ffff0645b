package cli_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// visitor is a browser without scripts.
type visitor struct {
	*testing.T

	client *http.Client
	url    string
}

func visit(t *testing.T, at string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	// Secure cookies would not be sent: on loopback they are not asked for.
	return &visitor{T: t, url: at, client: &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
}

func (v *visitor) get(path string) (int, string) {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), http.MethodGet, v.url+path, nil)
	require.NoError(v, err)
	r.Header.Set("Accept", "text/html")
	return v.do(r)
}

func (v *visitor) do(r *http.Request) (int, string) {
	v.Helper()
	res, err := v.client.Do(r)
	require.NoError(v, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(v, err)
	return res.StatusCode, string(data)
}

// post sends the form of a page, with the token that this page has.
func (v *visitor) post(page, to string, form url.Values) (int, string) {
	v.Helper()
	_, body := v.get(page)
	token := regexp.MustCompile(`name="form_token" value="([^"]+)"`).FindStringSubmatch(body)
	require.NotNil(v, token, body)
	form.Set("form_token", token[1])
	r, err := http.NewRequestWithContext(v.Context(), http.MethodPost, v.url+to, strings.NewReader(form.Encode()))
	require.NoError(v, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", v.url)
	return v.do(r)
}

// On this machine a daemon has a console without being asked; a task is seen there, and steered.
func TestTheConsoleOfTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.start(t, "daemon", "-c", file(t, handlersFile+"tasks:\n  - { agent: ada, id: later, kind: note, every: 1h, delay: 1h }\n"), "--http", "127.0.0.1:0")
	at := d.url(t)
	d.line(t, "console url="+at+"/ui")
	v := visit(t, at)
	status, body := v.get("/")
	assert.Equal(t, http.StatusOK, status, "a browser finds it")
	assert.Contains(t, body, "What is wrong")
	assert.Contains(t, body, "note")
	status, body = v.get("/ui/task?agent=ada&id=later")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "It is not due until")
	const task = "/ui/task?agent=ada&id=later"
	status, body = v.post(task, "/ui/do?do=run&agent=ada&id=later", url.Values{})
	assert.Equal(t, http.StatusOK, status, body)
	d.line(t, "run kind=note", "task=later")
	status, _ = v.post(task, "/ui/do?do=pause&agent=ada&id=later", url.Values{"reason": {"a look"}})
	assert.Equal(t, http.StatusOK, status)
	info, err := w.scheduler(t).Task(t.Context(), "ada", "later")
	require.NoError(t, err)
	require.Len(t, info.Pauses, 1)
	assert.Equal(t, core.Order{By: "console", Reason: "a look"}, info.Pauses[0].Order)

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/ui", nil)
	require.NoError(t, err)
	r.Host = "evil.example"
	status, _ = v.do(r)
	assert.Equal(t, http.StatusForbidden, status)
	status, body = call(t, http.MethodGet, at+"/v1/stats", "", "")
	assert.Equal(t, http.StatusOK, status, "the API stays where it is: %s", body)
}

// Where a token is set the console wants it; the file and the flag turn it off, or let it only show.
func TestTheConsoleIsChosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "DULY_TOKEN=secret")
	config := file(t, handlersFile+"console: read-only\n")
	d := w.start(t, "serve", "-c", config, "--http", "127.0.0.1:0")
	v := visit(t, d.url(t))
	status, _ := v.get("/ui")
	assert.Equal(t, http.StatusUnauthorized, status)
	status, body := v.post("/ui", "/ui/signin", url.Values{"token": {"secret"}})
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "read-only")
	status, body = v.post("/ui", "/ui/do?do=pause", url.Values{})
	assert.Equal(t, http.StatusForbidden, status)
	assert.Contains(t, body, "read-only")

	d = w.start(t, "serve", "-c", config, "--http", "127.0.0.1:0", "--console", "off")
	status, _ = visit(t, d.url(t)).get("/ui")
	assert.Equal(t, http.StatusUnauthorized, status, "there is no such path for who has no token")
	status, _ = call(t, http.MethodGet, d.url(t)+"/ui", "secret", "")
	assert.Equal(t, http.StatusNotFound, status)

	d = w.start(t, "serve", "-c", file(t, handlersFile), "--http", "0.0.0.0:0")
	status, _ = call(t, http.MethodGet, strings.Replace(d.url(t), "[::]", "127.0.0.1", 1)+"/ui", "secret", "")
	assert.Equal(t, http.StatusNotFound, status, "where others can reach it, it has to be asked for")
	oneLine(t, w.duly(t, "serve", "--console", "perhaps"), 2, "--console \"perhaps\" is unknown", "use off, on or read-only")
}
