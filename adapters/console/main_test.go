package console_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/output"
	"github.com/seed-6f6f2c11/duly/core/store/window"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a console on a store in memory, with the kinds ok and bad, and a browser that looks at it.
type fixture struct {
	*testing.T

	scheduler *core.Scheduler
	handler   http.Handler
	calls     *atomic.Int64
	fail      *atomic.Bool
	events    *httpadapter.Events
	cookies   map[string]string
	elsewhere string // where pages may lead to, beside the console
}

// callers are those of the API: root may do everything, reader look at everything, ann steer one agent.
func callers() func(r *http.Request) (core.Principal, error) {
	return (&httpadapter.Config{Tokens: []string{"root"}, Scoped: []httpadapter.Token{
		{Token: "reader", Grant: httpadapter.Grant{Name: "reader", Scopes: []httpadapter.Scope{httpadapter.ScopeRead}}},
		{Token: "ann", Grant: httpadapter.Grant{Name: "ann", Agents: []string{"ann"}}},
	}}).Callers()
}

func setup(t *testing.T, options console.Options) *fixture {
	t.Helper()
	f := &fixture{T: t, calls: new(atomic.Int64), fail: new(atomic.Bool), events: httpadapter.NewEvents(), cookies: map[string]string{}}
	st := memstore.New(memstore.Config{})
	spy := &storetest.Spy{Store: st, Before: func(context.Context, string) error {
		f.calls.Add(1)
		if f.fail.Load() {
			return &store.Error{Verb: "get", Err: errors.New("dial tcp secret.host:6379")}
		}
		return nil
	}}
	var err error
	f.scheduler, err = core.New(struct {
		*storetest.Spy
		output.Keeper
	}{spy, counted{st, st, f.calls}}, core.Config{Recent: counted{st, st, f.calls}, Name: "worker"})
	require.NoError(t, err)
	core.Handle(f.scheduler, "ok", func(_ context.Context, task *core.Task[json.RawMessage]) error {
		return task.SetResult(map[string]int{"n": 1})
	})
	core.Handle(f.scheduler, "bad", func(context.Context, *core.Task[any]) error { return core.SkipRetry(errors.New("boom 7")) })
	if options.Events == nil {
		options.Events = f.events
	}
	f.handler = console.New(f.scheduler, options)
	return f
}

// counted counts the calls that read counters of the last hours, and what runs have printed.
type counted struct {
	window.Recent
	output.Keeper

	calls *atomic.Int64
}

func (c counted) Window(ctx context.Context, slots int) ([]window.Kind, moment.Millis, error) {
	c.calls.Add(1)
	return c.Recent.Window(ctx, slots)
}

func (c counted) Slots(ctx context.Context, each time.Duration, slots int) ([]window.Slot, moment.Millis, error) {
	c.calls.Add(1)
	return c.Recent.Slots(ctx, each, slots)
}

func (c counted) Printed(ctx context.Context, agent, id string) ([]output.Run, error) {
	c.calls.Add(1)
	return c.Keeper.Printed(ctx, agent, id)
}

// asks is a handler that waits for a signal, and completes once that has come.
func asks(signal core.Signal) func(context.Context, *core.Task[json.RawMessage]) error {
	return func(_ context.Context, task *core.Task[json.RawMessage]) error {
		if heard, waited := task.Heard(); waited {
			return task.SetResult(heard.Payload)
		}
		return core.Await(signal, nil)
	}
}

// with is another console on the same store.
func (f *fixture) with(options console.Options) *fixture {
	other := *f
	options.Events = f.events
	other.handler, other.cookies = console.New(f.scheduler, options), map[string]string{}
	return &other
}

func (f *fixture) submit(tasks ...core.NewTask) {
	f.Helper()
	_, err := f.scheduler.Submit(f.Context(), tasks...)
	require.NoError(f, err)
}

func (f *fixture) run() {
	f.Helper()
	for more := true; more; {
		report, _ := f.scheduler.RunDue(f.Context(), core.Scope{}) // the error names the runs that failed
		more = report.Completed+report.Failed > 0
	}
}

// says reports whether a page has a text; without the whole page in the log if it has not.
func (a answer) says(t *testing.T, text string, about ...any) {
	t.Helper()
	assert.True(t, strings.Contains(a.body, text), "the page lacks %q %v", text, about)
}

// lacks reports whether a page has a text nowhere.
func (a answer) lacks(t *testing.T, text string, about ...any) {
	t.Helper()
	assert.False(t, strings.Contains(a.body, text), "the page has %q %v", text, about)
}

// answer is what a browser gets.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request with the cookies of the browser, and keeps those that come back.
func (f *fixture) do(r *http.Request) answer {
	f.Helper()
	for name, value := range f.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	res := w.Result()
	defer res.Body.Close()
	for _, c := range res.Cookies() {
		if c.MaxAge < 0 {
			delete(f.cookies, c.Name)
		} else {
			f.cookies[c.Name] = c.Value
		}
	}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") && w.Body.Len() > 0 && res.StatusCode != http.StatusSeeOther {
		_ = shape(f.T, strings.ReplaceAll(w.Body.String(), cmp.Or(f.elsewhere, "\x00"), "/"))
	}
	return answer{res.StatusCode, w.Header(), w.Body.String()}
}

func (f *fixture) get(path string, query ...string) answer {
	f.Helper()
	return f.do(httptest.NewRequest(http.MethodGet, "http://localhost"+address(path, query...), nil))
}

// address is a path with a query of names and values.
func address(path string, query ...string) string {
	q := url.Values{}
	for i := 0; i < len(query); i += 2 {
		q.Set(query[i], query[i+1])
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return path
}

var tokenInForm = regexp.MustCompile(`name="form_token" value="([^"]+)"`)

// token is that of the browser's session. Every process makes the same, so a console that shows forms is asked.
func (f *fixture) token() string {
	f.Helper()
	asks := *f
	asks.handler = console.New(f.scheduler, console.Options{Callers: callers()})
	body := asks.get("/ui/task").body + asks.get("/ui/next").body
	found := tokenInForm.FindStringSubmatch(body)
	require.NotNil(f, found, body)
	return found[1]
}

// post sends a form as a browser does from a page of the console.
func (f *fixture) post(to string, form ...string) answer {
	f.Helper()
	return f.do(f.form(to, form...))
}

func (f *fixture) form(to string, form ...string) *http.Request {
	f.Helper()
	fields := url.Values{"form_token": {f.token()}}
	for i := 0; i < len(form); i += 2 {
		fields.Add(form[i], form[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+to, strings.NewReader(fields.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

// signIn signs in with a token.
func (f *fixture) signIn(token string) *fixture {
	f.Helper()
	a := f.get("/ui")
	require.Equal(f, http.StatusUnauthorized, a.status)
	form := url.Values{"form_token": {tokenInForm.FindStringSubmatch(a.body)[1]}, "token": {token}}
	r := httptest.NewRequest(http.MethodPost, "http://localhost/ui/signin", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	require.Equal(f, http.StatusSeeOther, f.do(r).status)
	return f
}

// shape are the elements of a page and their attributes, in order, without any text. A page has to be well-formed, so that the text of somebody
// else which is not escaped shows.
func shape(t *testing.T, body string) []string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(body))
	var out []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err, body)
		switch e := token.(type) {
		case xml.StartElement:
			line := e.Name.Local
			for _, a := range e.Attr {
				line += " " + a.Name.Local
				// Where something leads and what it does must not depend on the text of others.
				if a.Name.Local != "href" && a.Name.Local != "action" {
					continue
				}
				u, err := url.Parse(a.Value)
				require.NoError(t, err)
				require.Empty(t, u.Scheme+u.Host, a.Value)
				line += "=" + u.Path
			}
			out = append(out, line)
		case xml.Comment:
			t.Errorf("a comment: %s", e)
		}
	}
}

// requestOf is a request as a server reads it.
func requestOf(path string) (*http.Request, error) {
	return http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")))
}

// postOf is a form as a server reads it.
func postOf(path, form string) (*http.Request, error) {
	return http.ReadRequest(bufio.NewReader(strings.NewReader(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", path, len(form), form))))
}
