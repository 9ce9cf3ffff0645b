package dulyfile_test

// Targets at vendors, as the file declares them.

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/cloudrun"
	"github.com/seed-6f6f2c11/duly/handlers/lambda"
	"github.com/seed-6f6f2c11/duly/handlers/pubsub"
	"github.com/seed-6f6f2c11/duly/handlers/sqs"
	"github.com/seed-6f6f2c11/duly/internal/contract"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// vendors are the targets that the program is built with.
func vendors() []contract.Target {
	return []contract.Target{lambda.Target(), sqs.Target(), pubsub.Target(), cloudrun.Target()}
}

// A program that is built without a target says what to do.
func TestATargetIsMissing(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]string{"lambda": "function: a", "sqs": "queue_url: https://sqs.a.example/1/a", "pubsub": "topic: projects/p/topics/t", "cloud_run": "url: https://a.example"} {
		_, err := dulyfile.ParseFunction(t.Context(), "duly.yaml", []byte("handlers: { x: { "+name+": { "+handler+" } } }"))
		assert.ErrorContains(t, err, "duly.yaml:1: handlers.x."+name+": this program is built without "+name+": use a released duly")
	}
}

// A handler of the file sends to the place that the file names, and waits as long as that place lets a call take.
func TestTheFileHasTargets(t *testing.T) {
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	t.Cleanup(server.Close)
	secrets(t)
	t.Setenv("PUBSUB_EMULATOR_HOST", server.Listener.Addr().String())
	f, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte(`
handlers:
  function: { lambda: { function: digest, endpoint: "`+server.URL+`" } }
  started: { lambda: { function: digest, async: true, answer_within: 2h } }
  queue: { sqs: { queue_url: "`+server.URL+`/1/a", endpoint: "`+server.URL+`" }, timeout: 5s }
  topic: { pubsub: { topic: projects/p/topics/t } }
  service: { cloud_run: { url: https://a.example/tasks }, headers: { X-Team: core }, batch: 3 }
`), dulyfile.Defaults{}, vendors()...)
	require.NoError(t, err)
	kinds := f.Settings().Kinds
	for kind, want := range map[string]string{"function": "15m0s", "started": "30s", "queue": "5s", "topic": "30s", "service": "30s"} {
		assert.Equal(t, want, kinds[kind].Timeout.String(), kind)
	}
	s, err := core.New(memstore.New(memstore.Config{}), f.Settings())
	require.NoError(t, err)
	require.NoError(t, f.Register(s, slog.New(slog.DiscardHandler), nil))
	for _, kind := range []string{"function", "queue", "topic"} {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: kind, Kind: kind, Payload: json.RawMessage("1")})
		require.NoError(t, err)
		_, err = s.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"/2015-03-31/functions/digest/invocations", "/", "/v1/projects/p/topics/t:publish"}, paths)
}
