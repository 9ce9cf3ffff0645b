package cloudtasks_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/alarm/cloudtasks"
	"github.com/seed-6f6f2c11/duly/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	queue   = "projects/p/locations/europe-north1/queues/alarms"
	url     = "https://duly.example/"
	account = "caller@p.iam.gserviceaccount.com"
)

// google is the metadata server and Cloud Tasks, as their references describe tokens and CreateTask.
type google struct {
	*httptest.Server

	t        *testing.T
	mu       sync.Mutex
	issued   int // tokens: "token-secret-1" and so on
	revoked  int // those up to this one
	expires  int // in seconds
	tasks    map[string]task
	calls    int
	refuse   int // the status of each answer of Cloud Tasks, if it is set
	noTokens bool
}

type task struct {
	Name, ScheduleTime string
	HTTPRequest        struct {
		URL, HTTPMethod string
		Headers         map[string]string
		Body            []byte
		OIDCToken       struct{ ServiceAccountEmail, Audience string }
	}
}

func newGoogle(t *testing.T) *google {
	t.Helper()
	g := &google{t: t, tasks: map[string]task{}, expires: 3600}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

var taskName = regexp.MustCompile(`^` + queue + `/tasks/[A-Za-z0-9_-]{1,500}$`)

func (g *google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token" {
		if r.Header.Get("Metadata-Flavor") != "Google" || g.noTokens {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		g.issued++
		fmt.Fprintf(w, `{"access_token":"token-secret-%d","expires_in":%d,"token_type":"Bearer"}`, g.issued, g.expires)
		return
	}
	g.calls++
	fail := func(code int, status, text string) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": code, "status": status, "message": text}})
	}
	var n int
	_, _ = fmt.Sscanf(r.Header.Get("Authorization"), "Bearer token-secret-%d", &n)
	data, _ := io.ReadAll(r.Body)
	var body struct{ Task task }
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&body)
	at, wrong := time.Parse(time.RFC3339, body.Task.ScheduleTime)
	switch {
	case g.refuse != 0:
		fail(g.refuse, "SOME_STATUS", "with "+r.Header.Get("Authorization"))
	case n <= g.revoked || n > g.issued:
		fail(http.StatusUnauthorized, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
	case r.Method != http.MethodPost || r.URL.Path != "/v2/"+queue+"/tasks":
		fail(http.StatusNotFound, "NOT_FOUND", "Requested entity was not found.")
	case err != nil || wrong != nil || !taskName.MatchString(body.Task.Name) || time.Until(at) > 30*24*time.Hour || body.Task.HTTPRequest.OIDCToken.ServiceAccountEmail != account:
		fail(http.StatusBadRequest, "INVALID_ARGUMENT", fmt.Sprint(err, wrong))
	case g.tasks[body.Task.Name].Name != "":
		fail(http.StatusConflict, "ALREADY_EXISTS", "The task cannot be created because a task with this name existed too recently.")
	default:
		g.tasks[body.Task.Name] = body.Task
		_, _ = w.Write(data)
	}
}

func (g *google) alarm(change func(c *cloudtasks.Config)) *cloudtasks.Alarm {
	g.t.Helper()
	c := cloudtasks.Config{Queue: queue, URL: url, ServiceAccount: account, Endpoint: g.URL, MetadataHost: strings.TrimPrefix(g.URL, "http://")}
	if change != nil {
		change(&c)
	}
	a, err := cloudtasks.New(c)
	require.NoError(g.t, err)
	var _ core.Alarm = a
	return a
}

// A task is made for each time, with one access token as long as that is good. The same time again is none.
func TestATaskForEachTime(t *testing.T) {
	t.Parallel()
	g, at := newGoogle(t), time.Now().Add(time.Hour).Truncate(time.Second)
	a := g.alarm(nil)
	require.NoError(t, a.Set(t.Context(), at))
	require.NoError(t, a.Set(t.Context(), at))
	require.NoError(t, a.Set(t.Context(), at.Add(time.Second)))
	require.NoError(t, g.alarm(func(c *cloudtasks.Config) { c.URL += "v1/run-due"; c.Audience = url }).Set(t.Context(), at), "another service")
	assert.Equal(t, 2, g.issued)
	require.Len(t, g.tasks, 3)
	for name, made := range g.tasks {
		when, err := time.Parse(time.RFC3339, made.ScheduleTime)
		require.NoError(t, err)
		assert.True(t, strings.HasSuffix(name, fmt.Sprintf("-%d", when.Unix())), name)
		r := made.HTTPRequest
		assert.Equal(t, "POST", r.HTTPMethod)
		assert.JSONEq(t, `{"all":true,"alarm_at":"`+when.UTC().Format(time.RFC3339)+`"}`, string(r.Body))
		assert.Equal(t, "application/json", r.Headers["Content-Type"])
		assert.Equal(t, url, r.OIDCToken.Audience)
	}
}

// A token that has ended is read again before, one that was withdrawn when it is refused, once.
func TestTokensAreRenewed(t *testing.T) {
	t.Parallel()
	g := newGoogle(t)
	a := g.alarm(nil)
	require.NoError(t, a.Set(t.Context(), time.Now()))
	g.revoked = 1
	require.NoError(t, a.Set(t.Context(), time.Now().Add(time.Second)))
	assert.Equal(t, 2, g.issued)
	g.revoked = 9
	require.ErrorContains(t, a.Set(t.Context(), time.Now()), "the access token is not accepted")
	assert.Equal(t, 3, g.issued)

	short := newGoogle(t)
	short.expires = 30 // less than is spared
	a = short.alarm(nil)
	require.NoError(t, a.Set(t.Context(), time.Now()))
	require.NoError(t, a.Set(t.Context(), time.Now().Add(time.Second)))
	assert.Equal(t, 2, short.issued)
	short.noTokens = true
	require.ErrorContains(t, a.Set(t.Context(), time.Now()), "the metadata server answered 404 Not Found; give the service an account")
}

// What Google refuses says what to do and shows no token; only 429 and 5xx are tried again.
func TestWhatGoogleRefuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct {
		calls int
		says  string
	}{
		400: {1, "SOME_STATUS with Bearer ***"}, 403: {1, "roles/cloudtasks.enqueuer"}, 404: {1, "queues create"}, 429: {2, "raise the limit"}, 503: {2, "status page"},
	} {
		g := newGoogle(t)
		g.refuse = status
		err := g.alarm(nil).Set(t.Context(), time.Now())
		require.ErrorContains(t, err, want.says)
		assert.NotContains(t, err.Error(), "secret")
		assert.Equal(t, want.calls, g.calls, status)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]cloudtasks.Config{
		"Queue": {Queue: "alarms", URL: url, ServiceAccount: account}, "URL": {Queue: queue, URL: "duly.example", ServiceAccount: account},
		"ServiceAccount": {Queue: queue, URL: url}, "Endpoint": {Queue: queue, URL: url, ServiceAccount: account, Endpoint: "http://a.example"},
	} {
		_, err := cloudtasks.New(c)
		var wrong *core.ConfigError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, field, wrong.Field)
	}
}

// A Cloud Run service books its next call in a queue.
func Example() {
	clock, err := cloudtasks.New(cloudtasks.Config{
		Queue: "projects/p/locations/europe-north1/queues/alarms", URL: "https://duly-x.a.run.app/", ServiceAccount: "caller@p.iam.gserviceaccount.com",
	})
	config := core.Config{Alarm: clock}
	fmt.Println(config.Alarm != nil, err)
	// Output: true <nil>
}
