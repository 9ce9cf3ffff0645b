package http_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
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
		return core.Await(core.Signal{Key: "ok"}, nil)
	})
	_, err = f.scheduler.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "asks"})
	require.NoError(t, err)
	_, err = f.scheduler.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	return f, approvals
}

// visit opens an address as a browser does; an answer is a form that is sent.
func (f *fixture) visit(t *testing.T, address, answer string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	method, body := http.MethodGet, ""
	if answer != "" {
		method, body = http.MethodPost, url.Values{"decision": {answer}}.Encode()
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
		address, err := approvals.URL(httpadapter.Approval{Agent: "a", Key: "ok", Question: `Refund <b>40 €</b> & more?`, For: time.Hour}, time.Now())
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(address, "https://duly.example/v1/signed/"))
		for range 2 { // programs that check mails look, too
			w := f.visit(t, address, "")
			require.Equal(t, http.StatusOK, w.Code)
			assert.Contains(t, w.Body.String(), "Refund &lt;b&gt;40 €&lt;/b&gt; &amp; more?")
			assert.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
		}
		assert.Equal(t, http.StatusBadRequest, f.visit(t, address, "perhaps").Code)
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
	}
}

// An address that was changed, is somebody else's or is too old answers nothing.
func TestApprovalsThatAreNone(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	f, approvals := asking(t, clock)
	address, err := approvals.URL(httpadapter.Approval{Agent: "a", Key: "ok", For: time.Hour}, clock.Now())
	require.NoError(t, err)
	foreign, err := httpadapter.NewApprovals("https://duly.example", []byte("another secret of 16"))
	require.NoError(t, err)
	stranger, err := foreign.URL(httpadapter.Approval{Agent: "a", Key: "ok", For: time.Hour}, clock.Now())
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

	for _, q := range []httpadapter.Approval{{}, {Agent: "a", Key: "k"}, {Agent: "a", Key: "k", For: -1}, {Agent: "a", Key: "k", For: time.Hour, Question: strings.Repeat("x", 2000)}} {
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

// Whoever else has sent the signal before is not overruled.
func TestAnApprovalThatComesSecond(t *testing.T) {
	t.Parallel()
	f, approvals := asking(t, nil)
	ask := func() string {
		address, err := approvals.URL(httpadapter.Approval{Agent: "a", Key: "later", For: time.Hour}, time.Now())
		require.NoError(t, err)
		return address
	}
	first, second := ask(), ask()
	assert.Equal(t, http.StatusOK, f.visit(t, first, "approve").Code, "it is kept: the task does not wait yet")
	w := f.visit(t, second, "refuse")
	assert.Equal(t, http.StatusConflict, w.Code)
	assert.Contains(t, w.Body.String(), "by somebody else")
	_, err := f.scheduler.Signal(t.Context(), "a", "later", json.RawMessage("1"))
	require.Error(t, err)
}
