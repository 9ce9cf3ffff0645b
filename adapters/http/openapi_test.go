package http_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

var described = sync.OnceValues(func() (routers.Router, error) {
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

// isDescribed holds one exchange against the document: the answer always, the request if it was accepted.
func isDescribed(t *testing.T, r *http.Request, body []byte, res *reply, answer string) {
	t.Helper()
	router, err := described()
	require.NoError(t, err)
	route, params, err := router.FindRoute(r)
	if err != nil {
		return // no such path, or an id with a slash, which the router of the document cannot tell from two segments
	}
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if res.StatusCode < 300 {
		in.Options.ExcludeRequestBody = slices.Contains([]string{"application/x-ndjson", "application/jsonl"}, r.Header.Get("Content-Type")) // lines are no one JSON
		r.Body = io.NopCloser(bytes.NewReader(body))
		assert.NoError(t, openapi3filter.ValidateRequest(t.Context(), in), "%s %s %s", r.Method, r.URL, body)
	}
	if res.StatusCode == http.StatusAlreadyReported { // of senders that sign alone, so that clients with a token need not know of it
		assert.Contains(t, answer, `"duplicate":true`)
		return
	}
	if media := res.Header.Get("Content-Type"); strings.HasPrefix(media, "text/event-stream") || media == "application/x-ndjson" {
		return
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: res.StatusCode, Header: res.Header}
	out.SetBodyBytes([]byte(answer))
	out.Options = &openapi3filter.Options{IncludeResponseStatus: true}
	assert.NoError(t, openapi3filter.ValidateResponse(t.Context(), out), "%s %s: %s", r.Method, r.URL, answer)
}

var update = flag.Bool("update", false, "write openapi.json.gz instead of comparing it")

// The description that is served is that of the source.
func TestTheDocumentIsPacked(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	if *update {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		require.NoError(t, err)
		_, err = w.Write(want)
		require.NoError(t, errors.Join(err, w.Close()))
		require.NoError(t, os.WriteFile("openapi.json.gz", out.Bytes(), 0o600))
		return
	}
	f, err := os.Open("openapi.json.gz")
	require.NoError(t, err)
	defer f.Close()
	r, err := gzip.NewReader(f)
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.True(t, string(want) == string(got), "openapi.json has changed: run make generate")
}

func TestTheDocumentIsServed(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Tokens: []string{"x"}})
	res, body := f.call(t, "GET", "/openapi.json", "")
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Equal(t, "3.1.0", get[map[string]any](t, body)["openapi"])
}

// A document that does not fit is noticed: the check itself is checked.
func TestWhatIsNotDescribedIsNoticed(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{`{"agents":1}`, `{"surprise":1}`, `[]`} {
		silent := new(testing.T)
		isDescribed(silent, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/stats", nil), nil,
			&reply{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}}, answer)
		assert.True(t, silent.Failed(), answer)
	}
}
