package lambda_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
	"github.com/seed-6f6f2c11/duly/core"
)

var httpEvents = []string{"url", "gateway-v2", "gateway-v1", "alb", "alb-multi"}

// reply is an HTTP answer in any of the forms.
type reply struct {
	StatusCode        int
	StatusDescription string
	Headers           map[string]string
	MultiValueHeaders map[string][]string
	Cookies           []string
	Body              string
	IsBase64Encoded   bool
}

// serve sends a golden event, with members replaced, to a function that serves with a handler.
func serve(t *testing.T, handler http.HandlerFunc, name string, members map[string]any) reply {
	t.Helper()
	f := setup(t, lambdaadapter.Config{HTTP: handler})
	data, err := f.function.Invoke(t.Context(), json.RawMessage(alter(t, name, members)))
	require.NoError(t, err)
	assert.LessOrEqual(t, len(data), lambdaadapter.MaxAnswer)
	var r reply
	require.NoError(t, json.Unmarshal(data, &r))
	return r
}

// header is a header of the answer, wherever its form has it.
func (r reply) header(name string) string {
	return r.Headers[name] + strings.Join(r.MultiValueHeaders[name], "; ")
}

// All senders' events are the same request.
func TestRequestsAreConverted(t *testing.T) {
	t.Parallel()
	for _, name := range httpEvents {
		var got *http.Request
		var body []byte
		serve(t, func(_ http.ResponseWriter, r *http.Request) {
			got = r.Clone(context.WithoutCancel(r.Context()))
			body, _ = io.ReadAll(r.Body)
		}, name, nil)
		require.NotNil(t, got, name)
		assert.Equal(t, "POST", got.Method, name)
		assert.Equal(t, "/v1/agents/a/b/tasks", got.URL.Path, name)
		assert.Equal(t, "/v1/agents/a%2Fb/tasks", got.URL.EscapedPath(), name)
		assert.JSONEq(t, `{"say":"blå"}`, string(body), name)
		assert.EqualValues(t, len(body), got.ContentLength, name)
		assert.Equal(t, "application/json", got.Header.Get("Content-Type"), name)
		assert.Contains(t, strings.Join(got.Header.Values("Accept"), ","), "application/json", name)
		assert.Equal(t, "198.51.100.7:0", got.RemoteAddr, name)
		assert.NotEmpty(t, got.Host, name)
		assert.Empty(t, got.Header.Get("Host"), name)
		assert.Equal(t, got.URL.RequestURI(), got.RequestURI, name)
		query := got.URL.Query()
		assert.True(t, query.Has("empty"), name)
		if name == "alb" {
			assert.Equal(t, []string{"y z"}, query["tag"], "it has one value of each only")
		} else {
			assert.Equal(t, []string{"x", "y z"}, query["tag"], name)
		}
		cookie, err := got.Cookie("two")
		require.NoError(t, err, name)
		assert.Equal(t, "2", cookie.Value, name)
	}
}

func TestAnswersAreConverted(t *testing.T) {
	t.Parallel()
	for _, name := range httpEvents {
		r := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Add("Vary", "Accept")
			w.Header().Add("Vary", "Origin")
			w.Header().Set("Content-Length", "9")
			http.SetCookie(w, &http.Cookie{Name: "one", Value: "1"})
			http.SetCookie(w, &http.Cookie{Name: "two", Value: "2"})
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusCreated)
			w.Header().Set("Too", "late")
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, `{"a":"<é>"}`)
		}, name, nil)
		assert.Equal(t, http.StatusCreated, r.StatusCode, name)
		assert.JSONEq(t, `{"a":"<é>"}`, r.Body, name)
		assert.False(t, r.IsBase64Encoded, name)
		assert.Equal(t, "application/json", r.header("Content-Type"), name)
		assert.Contains(t, []string{"Accept, Origin", "Accept; Origin"}, r.header("Vary"), name)
		assert.Empty(t, r.header("Too"), name)
		assert.Empty(t, r.header("Content-Length"), name)
		switch name {
		case "url", "gateway-v2":
			assert.Equal(t, []string{"one=1", "two=2"}, r.Cookies, name)
			assert.Empty(t, r.header("Set-Cookie"), name)
		case "alb":
			assert.Equal(t, "two=2", r.Headers["Set-Cookie"])
			assert.Nil(t, r.MultiValueHeaders)
		default:
			assert.Equal(t, []string{"one=1", "two=2"}, r.MultiValueHeaders["Set-Cookie"], name)
			assert.Nil(t, r.Headers, name)
		}
		assert.Equal(t, strings.HasPrefix(name, "alb"), r.StatusDescription == "201 Created", name)
	}
}

func TestBinaryAnswersAreBase64(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, encoding string
		base64         bool
	}{{"\x00\xff\xfe", "", true}, {"text", "gzip", true}, {"text", "", false}} {
		r := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.encoding != "" {
				w.Header().Set("Content-Encoding", c.encoding)
			}
			_, _ = io.WriteString(w, c.body)
		}, "gateway-v1", nil)
		assert.Equal(t, c.base64, r.IsBase64Encoded)
		body := []byte(r.Body)
		if c.base64 {
			var err error
			body, err = base64.StdEncoding.DecodeString(r.Body)
			require.NoError(t, err)
		}
		assert.Equal(t, c.body, string(body))
		assert.NotEmpty(t, r.header("Content-Type"), "found out, as net/http does")
	}
}

func TestPathsAndAddresses(t *testing.T) {
	t.Parallel()
	request := func(name string, members map[string]any) (got *http.Request) {
		serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r }, name, members)
		return got
	}
	for raw, want := range map[string]string{
		"/live": "/", "/live/x": "/x", "/lively/x": "/lively/x", "/live/100%": "/100%25", "": "/", "/live/a b": "/a%20b",
		"//live/x": "/x", "/live//x": "/x",
	} {
		assert.Equal(t, want, request("gateway-v2", map[string]any{"rawPath": raw}).URL.EscapedPath(), raw)
	}
	var event struct{ RequestContext map[string]any }
	require.NoError(t, json.Unmarshal([]byte(known(t, "gateway-v2")), &event))
	event.RequestContext["domainName"] = "duly.example"
	assert.Equal(t, "/live/x", request("gateway-v2", map[string]any{"rawPath": "/live/x", "requestContext": event.RequestContext}).URL.Path,
		"a domain of one's own has no stage in its paths")
	assert.Equal(t, "/live/x", request("gateway-v1", map[string]any{"path": "/live/x"}).URL.Path, "no stage is in its paths")
	assert.Equal(t, "arn:aws:sts::111122223333:assumed-role/caller/duly", lambdaadapter.Caller(request("url", nil).Context()))
	assert.Equal(t, "arn:aws:iam::111122223333:user/caller", lambdaadapter.Caller(request("gateway-v1", nil).Context()))
	assert.Empty(t, lambdaadapter.Caller(request("gateway-v2", nil).Context()))
	assert.Empty(t, lambdaadapter.Caller(request("alb", nil).Context()))
}

func TestAPanicIsAnswered(t *testing.T) {
	t.Parallel()
	for _, v := range []any{"the secret", http.ErrAbortHandler} {
		r := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Half", "done")
			_, _ = io.WriteString(w, "half an ans")
			panic(v)
		}, "url", nil)
		assert.Equal(t, http.StatusInternalServerError, r.StatusCode)
		assert.Equal(t, "application/problem+json", r.header("Content-Type"))
		assert.Empty(t, r.header("X-Half"))
		assert.NotContains(t, r.Body, "secret")
		assert.Contains(t, r.Body, `"code":"internal"`)
	}
}

// An answer that Lambda would refuse, and end the process for, is a problem for its caller alone.
func TestAnswersThatAreTooLarge(t *testing.T) {
	t.Parallel()
	const limit = lambdaadapter.MaxAnswer
	for body, status := range map[string]int{
		strings.Repeat("x", limit-1000):   200,
		strings.Repeat("<", limit-1000):   200, // as it does not grow
		strings.Repeat("x", limit+1):      500, // while it is written
		strings.Repeat("\"", limit/2+1):   500, // when it is JSON
		strings.Repeat("\xff", limit*3/4): 500, // when it is base64
	} {
		r := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write([]byte(body))
			assert.Equal(t, len(body) > limit, err != nil)
		}, "url", nil)
		assert.Equal(t, status, r.StatusCode)
		if status != 200 {
			assert.Contains(t, r.Body, `"code":"too_large"`)
		}
	}
}

func TestRequestsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, members := range map[string]map[string]any{
		"alb":        {"body": "no base64!"},
		"gateway-v1": {"httpMethod": "NO METHOD"},
	} {
		r := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was served") }, name, members)
		assert.Equal(t, http.StatusBadRequest, r.StatusCode, name)
		assert.Contains(t, r.Body, `"code":"invalid"`)
	}
}

// What has no method is no GET: a sender that leaves it out did not mean one.
func TestARequestWithoutAMethodIsRefused(t *testing.T) {
	t.Parallel()
	for name, members := range map[string]map[string]any{
		"alb":        {"httpMethod": ""},
		"url":        {"requestContext": map[string]any{"domainName": "x.lambda-url.eu-north-1.on.aws", "http": map[string]any{}}},
		"gateway-v2": {"requestContext": map[string]any{"domainName": "duly.example", "http": map[string]any{"method": ""}}},
	} {
		r := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was served") }, name, members)
		assert.Equal(t, http.StatusBadRequest, r.StatusCode, name)
		assert.Contains(t, r.Body, `"code":"invalid"`)
	}
}

func TestAFunctionThatServesNoHTTP(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	for _, name := range httpEvents {
		assert.EqualValues(t, http.StatusNotFound, f.invoke(t, known(t, name))["statusCode"], name)
	}
}

func TestARequestEndsBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{Margin: time.Minute, HTTP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.WriteHeader(http.StatusServiceUnavailable)
	})})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+50*time.Millisecond)
	defer cancel()
	data, err := f.function.Invoke(ctx, json.RawMessage(known(t, "url")))
	require.NoError(t, err)
	require.NoError(t, ctx.Err())
	assert.True(t, bytes.Contains(data, []byte("503")))
}

// The HTTP API works through every sender: submit, run, look.
func TestTheAPIThroughEverySender(t *testing.T) {
	t.Parallel()
	for _, name := range httpEvents {
		f := setup(t, lambdaadapter.Config{})
		function, err := lambdaadapter.New(f.scheduler, lambdaadapter.Config{HTTP: httpadapter.New(f.scheduler, httpadapter.Config{})})
		require.NoError(t, err)
		call := func(method, path, body string) reply {
			data, err := function.Invoke(t.Context(), json.RawMessage(request(t, name, method, path, body)))
			require.NoError(t, err)
			var r reply
			require.NoError(t, json.Unmarshal(data, &r))
			return r
		}
		assert.Equal(t, 201, call("POST", "/v1/tasks", `{"agent_id":"a/b","id":"x y","kind":"ok"}`).StatusCode, name)
		assert.Contains(t, call("POST", "/v1/run-due", `{"all":true}`).Body, `"completed":1`, name)
		r := call("GET", "/v1/agents/a%2Fb/tasks/x%20y", "")
		assert.Contains(t, r.Body, `"status":"completed"`, name)
		assert.Equal(t, "application/json", r.header("Content-Type"), name)
		assert.Equal(t, 404, call("GET", "/v1/agents/a%2Fb/tasks/none", "").StatusCode, name)
		_, err = f.scheduler.Task(t.Context(), "a/b", "x y")
		require.NoError(t, err, core.CodeOf(err))
	}
}

// ci takes every request for one of a credential.
type ci struct{}

func (ci) Verify(*http.Request) (*httpadapter.Grant, error) {
	return &httpadapter.Grant{Name: "ci"}, nil
}

// Who orders something through a function is its credential, whomever the request names.
func TestByIsTheCredential(t *testing.T) {
	t.Parallel()
	for _, name := range httpEvents {
		f := setup(t, lambdaadapter.Config{})
		function, err := lambdaadapter.New(f.scheduler, lambdaadapter.Config{HTTP: httpadapter.New(f.scheduler, httpadapter.Config{Verifiers: []httpadapter.Verifier{ci{}}})})
		require.NoError(t, err)
		_, err = function.Invoke(t.Context(), json.RawMessage(request(t, name, "POST", "/v1/pause", `{"all":true,"by":"root-operator"}`)))
		require.NoError(t, err)
		pauses, _, err := f.scheduler.Pauses(t.Context(), 10, "")
		require.NoError(t, err)
		require.Len(t, pauses, 1, name)
		assert.Equal(t, core.Order{By: "ci", Note: "root-operator"}, pauses[0].Order, name)
	}
}

// request is a golden event as another request.
func request(t *testing.T, name, method, path, body string) string {
	t.Helper()
	members := map[string]any{
		"httpMethod": method, "path": path, "rawPath": path, "rawQueryString": "", "body": body, "isBase64Encoded": false,
		"queryStringParameters": nil, "multiValueQueryStringParameters": nil,
	}
	var event map[string]any
	require.NoError(t, json.Unmarshal([]byte(known(t, name)), &event))
	about := event["requestContext"].(map[string]any)
	if inner, ok := about["http"].(map[string]any); ok {
		inner["method"] = method
		delete(members, "httpMethod")
		delete(members, "path")
		members["requestContext"] = about
	} else {
		delete(members, "rawPath")
		delete(members, "rawQueryString")
	}
	return alter(t, name, members)
}
