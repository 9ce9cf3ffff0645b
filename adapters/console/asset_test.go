package console_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	"github.com/seed-6f6f2c11/duly/core"
)

// The vendored htmx is the file dist/htmx.min.js of htmx.org@2.0.11 as npm has it, with its licence beside it.
func TestTheVendoredFile(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("assets/htmx.min.js")
	require.NoError(t, err)
	sum := sha256.Sum256(data)
	assert.Equal(t, "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717", hex.EncodeToString(sum[:]))
	assert.Contains(t, string(data), `version:"2.0.11"`)
	licence, err := os.ReadFile("assets/htmx.LICENSE.txt")
	require.NoError(t, err)
	assert.Contains(t, string(licence), "Zero-Clause BSD")
}

// Files are small, have their types, and may be kept under the address that has their hash.
func TestAssets(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{Callers: callers()})
	css, err := os.ReadFile("assets/console.css")
	require.NoError(t, err)
	assert.Less(t, len(css), 20<<10)
	for name, kind := range map[string]string{
		"console.css": "text/css; charset=utf-8", "console.js": "text/javascript; charset=utf-8", "htmx.min.js": "text/javascript; charset=utf-8",
		"icon.svg": "image/svg+xml", "htmx.LICENSE.txt": "text/plain; charset=utf-8",
	} {
		a := f.get("/ui/assets/" + name)
		assert.Equal(t, 200, a.status, name)
		assert.Equal(t, kind, a.header.Get("Content-Type"))
		assert.Equal(t, "no-store", a.header.Get("Cache-Control"))
	}
	page := f.get("/ui").body
	_, rest, found := strings.Cut(page, `rel="stylesheet" href="`)
	require.True(t, found)
	at, _, _ := strings.Cut(rest, `"`)
	assert.Contains(t, f.get(at).header.Get("Cache-Control"), "immutable")
	for _, path := range []string{"/ui/assets/", "/ui/assets/nothing.css", "/ui/assets/../templates/now.html", "/ui/assets/%2e%2e/console.go"} {
		r, err := requestOf(path)
		require.NoError(t, err)
		assert.Equal(t, 404, f.do(r).status, path)
	}
}

// The stream has what the visitor may see, from the moment that it is open, and ends with the server.
func TestTheStream(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	f := setup(t, console.Options{Callers: callers(), Stopping: stopping})
	srv := httptest.NewServer(f.handler)
	t.Cleanup(srv.Close)
	open := func(token, query string) (int, *bufio.Scanner) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/ui/stream"+query, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := srv.Client().Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { _ = res.Body.Close() })
		return res.StatusCode, bufio.NewScanner(res.Body)
	}
	for _, c := range []struct {
		token, query string
		want         int
	}{{"ann", "", http.StatusForbidden}, {"ann", "?agent=bob", http.StatusForbidden}, {"nobody", "", http.StatusUnauthorized}} {
		status, _ := open(c.token, c.query)
		assert.Equal(t, c.want, status, "%s %s", c.token, c.query)
	}
	_, all := open("root", "")
	_, ann := open("ann", "?agent=ann")
	next := func(s *bufio.Scanner) string {
		for s.Scan() {
			if text, found := strings.CutPrefix(s.Text(), "data: "); found {
				return text
			}
		}
		return ""
	}
	require.True(t, all.Scan() && ann.Scan(), "both listen")
	f.submit(core.NewTask{Agent: "bob", ID: "1", Kind: "ok"}, core.NewTask{Agent: "ann", ID: "<2>", Kind: "ok"})
	assert.Contains(t, next(all), `"id":"1"`)
	got := next(ann)
	assert.Contains(t, got, `"agent":"ann"`)
	assert.Contains(t, got, `"to":"/ui/task?agent=ann\u0026id=%3C2%3E"`)
	close(stopping)
	assert.NotPanics(t, func() {
		for next(all) != "" || next(ann) != "" { // until both have ended
		}
	})
}

// A process without events says so.
func TestNoEvents(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{})
	f.handler = console.New(f.scheduler, console.Options{})
	f.get("/ui/events").says(t, "hands out no events")
	assert.Equal(t, 404, f.get("/ui/stream").status)
}
