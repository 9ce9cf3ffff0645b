package http_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// asking is an API whose tasks of kind asks wait for an answer, with the addresses of questions.
func asking(t *testing.T, clock core.Clock) (*fixture, *httpadapter.Approvals) {
	t.Helper()
	approvals, err := httpadapter.NewApprovals("https://duly.example/", []byte("0123456789abcdef"))
	require.NoError(t, err)
	f := setup(t, httpadapter.Config{Tokens: []string{"secret"}, Approvals: approvals, Clock: clock})
	core.Handle(f.scheduler, "asks", func(_ context.Context, t *core.Task[string]) error {
		if heard, waited := t.Heard(); waited {
			return t.SetResult(heard.Payload)
		}
		return core.Await(core.Signal{Key: "ok", Timeout: 10 * time.Minute}, nil)
	})
	_, err = f.scheduler.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "asks", Payload: "<i>to</i> \u202ebob"})
	require.NoError(t, err)
	_, err = f.scheduler.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	return f, approvals
}

// question is what the task waits for, with a text.
func (f *fixture) question(t *testing.T, text string) httpadapter.Approval {
	t.Helper()
	info, err := f.scheduler.Task(t.Context(), "a", "i")
	require.NoError(t, err)
	return httpadapter.Approval{Question: core.Question{Agent: "a", ID: "i", Key: info.Awaiting.Key, Fence: info.Awaiting.Fence, Text: text}, For: time.Hour}
}

// visit opens an address as a browser does; an answer is a form that is sent.
func (f *fixture) visit(t *testing.T, address, answer string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	method, body := http.MethodGet, ""
	if answer != "" {
		method, body = http.MethodPost, url.Values{"decision": {answer}}.Encode()
		if slices.Contains(header, "Both") {
			body += "&decision=refuse"
		}
	}
	r := httptest.NewRequest(method, address, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// A person answers once, without a credential; looking changes nothing.
func TestApprovals(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"approve", "refuse"} {
		f, approvals := asking(t, nil)
		address, err := approvals.URL(f.question(t, `Refund <b>40 €</b> & more?`), time.Now())
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(address, "https://duly.example/v1/signed/"))
		for range 2 { // programs that check mails look, too
			w := f.visit(t, address, "")
			require.Equal(t, http.StatusOK, w.Code)
			assert.Contains(t, w.Body.String(), "Refund &lt;b&gt;40 €&lt;/b&gt; &amp; more?")
			assert.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
			for _, says := range []string{"<dd>a</dd>", "<dd>i</dd>", "<dd>asks</dd>"} {
				assert.Contains(t, w.Body.String(), says, "who is asked sees what for")
			}
			info, err := f.scheduler.Task(t.Context(), "a", "i")
			require.NoError(t, err)
			assert.Contains(t, w.Body.String(), "Open until "+info.Awaiting.Until.UTC().Format("2 January 2006, 15:04 MST"), "the task waits for less than an hour")
			assert.Contains(t, w.Body.String(), `&#34;\u003ci\u003eto\u003c/i\u003e `+"\uFFFDbob&#34;", "the payload, of which nothing means anything to a browser")
			_, style, _ := strings.Cut(w.Body.String(), "<style>")
			style, _, _ = strings.Cut(style, "</style>")
			sum := sha256.Sum256([]byte(style))
			assert.Contains(t, w.Header().Get("Content-Security-Policy"), "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"';", "a browser applies it")
		}
		assert.Equal(t, http.StatusBadRequest, f.visit(t, address, "perhaps").Code)
		assert.Equal(t, http.StatusBadRequest, f.visit(t, address, "approve", "Both", "yes").Code)
		assert.Equal(t, http.StatusForbidden, f.visit(t, address, answer, "Sec-Fetch-Site", "cross-site").Code, "from another page")
		w := f.visit(t, address, answer, "Sec-Fetch-Site", "same-origin")
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		assert.NotContains(t, w.Body.String(), "<button")
		assert.Equal(t, http.StatusOK, f.visit(t, address, answer).Code, "twice is fine")
		other := map[string]string{"approve": "refuse", "refuse": "approve"}[answer]
		assert.Equal(t, http.StatusConflict, f.visit(t, address, other).Code, "the first answer stands")
		_, err = f.scheduler.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		info, err := f.scheduler.Task(t.Context(), "a", "i")
		require.NoError(t, err)
		assert.JSONEq(t, `{"decision":"`+answer+`"}`, string(info.Result))
		assert.Equal(t, http.StatusGone, f.visit(t, address, "").Code)
	}
}

// An address that was changed, is somebody else's or is too old answers nothing.
func TestApprovalsThatAreNone(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	f, approvals := asking(t, clock)
	address, err := approvals.URL(f.question(t, ""), clock.Now())
	require.NoError(t, err)
	foreign, err := httpadapter.NewApprovals("https://duly.example", []byte("another secret of 16"))
	require.NoError(t, err)
	stranger, err := foreign.URL(f.question(t, ""), clock.Now())
	require.NoError(t, err)
	text, signature, _ := strings.Cut(address[strings.LastIndex(address, "/")+1:], ".")
	for name, wrong := range map[string]string{
		"of others": stranger, "cut": address[:len(address)-3], "no signature": "https://duly.example/v1/signed/" + text,
		"another text": "https://duly.example/v1/signed/" + text[:len(text)-2] + "." + signature, "nothing": "https://duly.example/v1/signed/x",
	} {
		assert.Equal(t, http.StatusNotFound, f.visit(t, wrong, "").Code, name)
		assert.Equal(t, http.StatusNotFound, f.visit(t, wrong, "approve").Code, name)
	}
	clock.Advance(time.Hour)
	assert.Equal(t, http.StatusGone, f.visit(t, address, "").Code)
	assert.Equal(t, http.StatusGone, f.visit(t, address, "approve").Code)
	info, err := f.scheduler.Task(t.Context(), "a", "i")
	require.NoError(t, err)
	assert.NotNil(t, info.Awaiting)

	for _, change := range []func(q *httpadapter.Approval){
		func(q *httpadapter.Approval) { *q = httpadapter.Approval{} }, func(q *httpadapter.Approval) { q.For = 0 }, func(q *httpadapter.Approval) { q.For = -1 },
		func(q *httpadapter.Approval) { q.Text = strings.Repeat("x", 2000) }, func(q *httpadapter.Approval) { q.ID = "" }, func(q *httpadapter.Approval) { q.Fence = 0 },
	} {
		q := f.question(t, "")
		change(&q)
		_, err := approvals.URL(q, clock.Now())
		require.Error(t, err)
	}
	for _, base := range []string{"", "duly.example", "ftp://duly.example", "https://duly.example?x=1"} {
		_, err := httpadapter.NewApprovals(base, []byte("0123456789abcdef"))
		require.Error(t, err, base)
	}
	_, err = httpadapter.NewApprovals("https://duly.example", []byte("short"))
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "short!")
}

// Whoever else has answered before is not overruled, and nothing is kept for whoever waits next.
func TestAnApprovalThatComesSecond(t *testing.T) {
	t.Parallel()
	f, approvals := asking(t, nil)
	var addresses []string
	for range 2 {
		address, err := approvals.URL(f.question(t, "Pay?"), time.Now())
		require.NoError(t, err)
		addresses = append(addresses, address)
	}
	assert.Equal(t, http.StatusOK, f.visit(t, addresses[0], "approve").Code)
	w := f.visit(t, addresses[1], "refuse")
	assert.Equal(t, http.StatusGone, w.Code)
	assert.Contains(t, w.Body.String(), "this question is no longer open")
	_, err := f.scheduler.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	_, err = f.scheduler.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "asks", OnConflict: core.OnConflictReplace})
	require.NoError(t, err)
	_, err = f.scheduler.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	for range 2 { // a second click does not count as an answer either
		assert.Equal(t, http.StatusGone, f.visit(t, addresses[1], "approve").Code)
	}
	info, err := f.scheduler.Task(t.Context(), "a", "i")
	require.NoError(t, err)
	assert.NotNil(t, info.Awaiting, "the task asks again, and only that question is open")
}

// A credential that may write may not approve, and one that may approve may do nothing else. Whoever waits hears its name.
func TestTheScopeApprove(t *testing.T) {
	t.Parallel()
	token := func(name string, scopes ...httpadapter.Scope) httpadapter.Token {
		return httpadapter.Token{Token: name, Grant: httpadapter.Grant{Name: name, Scopes: scopes, Agents: []string{"a"}}}
	}
	f := setup(t, httpadapter.Config{Scoped: []httpadapter.Token{token("agent", httpadapter.ScopeRead, httpadapter.ScopeWrite, httpadapter.ScopeTrigger), token("ann", httpadapter.ScopeApprove)}})
	var mu sync.Mutex
	var heard []core.Heard
	core.Handle(f.scheduler, "asks", func(_ context.Context, t *core.Task[string]) error {
		if h, waited := t.Heard(); waited {
			mu.Lock()
			heard = append(heard, h)
			mu.Unlock()
			return nil
		}
		return core.Await(core.Signal{Key: t.ID, From: map[string]string{"guarded": core.FromApproval}[t.ID]}, nil)
	})
	for _, id := range []string{"guarded", "plain"} {
		_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: "a", ID: id, Kind: "asks"})
		require.NoError(t, err)
	}
	run := func() {
		_, err := f.scheduler.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
	}
	as := func(name, method, path string) int {
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("Authorization", "Bearer "+name)
		res, _ := f.do(t, r)
		return res.StatusCode
	}
	run()
	assert.Equal(t, 403, as("agent", "POST", "/v1/signals/a/guarded"))
	assert.Equal(t, 200, as("agent", "POST", "/v1/signals/a/plain"))
	assert.Equal(t, 403, as("ann", "POST", "/v1/signals/b/guarded"), "another agent")
	for _, path := range []string{"GET /v1/agents/a/tasks/guarded", "POST /v1/agents/a/tasks/guarded/cancel", "POST /v1/run-due"} {
		method, path, _ := strings.Cut(path, " ")
		assert.Equal(t, 403, as("ann", method, path), path)
	}
	assert.Equal(t, 200, as("ann", "POST", "/v1/signals/a/guarded"))
	run()
	slices.SortFunc(heard, func(x, y core.Heard) int { return strings.Compare(x.Key, y.Key) })
	require.Len(t, heard, 2)
	assert.Equal(t, []string{"ann", "agent"}, []string{heard[0].By, heard[1].By})
	assert.Equal(t, core.ByCredential, heard[0].How)
}
