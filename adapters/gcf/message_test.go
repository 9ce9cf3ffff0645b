package gcf_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/gcf"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

func newEvent(t *testing.T, kind, data string) event.Event {
	t.Helper()
	e := cloudevents.NewEvent()
	e.SetID("e1")
	e.SetSource("//example.googleapis.com/projects/p")
	e.SetType(kind)
	require.NoError(t, e.SetData("application/json", json.RawMessage(data)))
	return e
}

// senders deliver a message by each of the ways that there are; the status is 0 if nothing went wrong by Event.
var senders = map[string]func(t *testing.T, f *fixture, data string) (int, string){
	"wrapped push": func(t *testing.T, f *fixture, data string) (int, string) {
		t.Helper()
		return recorded(f, request(t, "/", wrap("m1", data), "Content-Type", "application/json"))
	},
	"push with metadata": func(t *testing.T, f *fixture, data string) (int, string) {
		t.Helper()
		return recorded(f, request(t, "/any", data, "Content-Type", "application/octet-stream", "x-goog-pubsub-message-id", "m1",
			"x-goog-pubsub-subscription-name", "projects/p/subscriptions/duly"))
	},
	"structured event": func(t *testing.T, f *fixture, data string) (int, string) {
		t.Helper()
		body := `{"specversion":"1.0","id":"e1","source":"//pubsub","type":"google.cloud.pubsub.topic.v1.messagePublished",
			"datacontenttype":"application/json","data":` + wrap("m1", data) + `}`
		return recorded(f, request(t, "/any", body, "Content-Type", "application/cloudevents+json; charset=utf-8"))
	},
	"binary event": func(t *testing.T, f *fixture, data string) (int, string) {
		t.Helper()
		return recorded(f, request(t, "/any", data, "Content-Type", "application/json", "ce-specversion", "1.0", "ce-id", "e1",
			"ce-source", "//own", "ce-type", "com.example.tasks"))
	},
	"event function, Pub/Sub": func(t *testing.T, f *fixture, data string) (int, string) {
		t.Helper()
		return result(f.function.Event(t.Context(), newEvent(t, "google.cloud.pubsub.topic.v1.messagePublished", wrap("m1", data))))
	},
	"event function, Eventarc": func(t *testing.T, f *fixture, data string) (int, string) {
		t.Helper()
		e := newEvent(t, "com.example.tasks", `{}`)
		e.DataEncoded = []byte(data)
		return result(f.function.Event(t.Context(), e))
	},
}

func recorded(f *fixture, r *http.Request) (int, string) {
	w := httptest.NewRecorder()
	f.function.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func result(err error) (int, string) {
	if err == nil {
		return 200, ""
	}
	var r *cehttp.Result
	if !errors.As(err, &r) {
		return 0, err.Error()
	}
	return r.StatusCode, err.Error()
}

// trial is a function and one way to send it a message.
type trial struct {
	*testing.T
	*fixture

	send func(data string) (int, string)
}

func each(t *testing.T, config gcf.Config, test func(trial)) {
	t.Helper()
	for name, send := range senders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, config)
			test(trial{t, f, func(data string) (int, string) { return send(t, f, data) }})
		})
	}
}

func TestMessagesAreSubmittedOnce(t *testing.T) {
	t.Parallel()
	each(t, gcf.Config{}, func(x trial) {
		t, f, send := x.T, x.fixture, x.send
		for range 2 { // the second time it is the same message
			status, answer := send(`{"tasks":[{"agent_id":"ada","id":"one","kind":"ok"},{"agent_id":"bob","kind":"ok"}]}`)
			assert.Equal(t, 200, status, answer)
		}
		stats, err := f.scheduler.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 2, stats.Submitted)
		assert.Zero(t, f.store.claims(), "nothing is run unless Config says so")
		status, answer := send(`{"kind":"tick"}`)
		assert.Equal(t, 200, status, answer)
		assert.Equal(t, core.StatusCompleted, f.status(t, "ada", "one"))
		f.submit(t, core.NewTask{Agent: "ada", ID: "two", Kind: "ok"})
		send(`{"kind":"tick"}`)
		assert.Equal(t, core.StatusWaiting, f.status(t, "ada", "two"), "the same message runs nothing again")
	})
}

// The key makes the id: the message is stored, and once only.
func TestAUniqueKeyMakesOneTask(t *testing.T) {
	t.Parallel()
	each(t, gcf.Config{}, func(x trial) {
		t, f, send := x.T, x.fixture, x.send
		for range 2 {
			status, answer := send(`{"agent_id":"ada","kind":"ok","unique_key":"order 17"}`)
			assert.Equal(t, 200, status)
			assert.NotContains(t, answer, "refused")
		}
		stats, err := f.scheduler.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 1, stats.Submitted)
	})
}

// A task may be of the kind "tick".
func TestATaskOfTheKindTickIsATask(t *testing.T) {
	t.Parallel()
	each(t, gcf.Config{}, func(x trial) {
		t, f, send := x.T, x.fixture, x.send
		status, answer := send(`{"agent_id":"ada","id":"1","kind":"tick"}`)
		assert.Equal(t, 200, status, answer)
		assert.Zero(t, f.store.claims())
		assert.Equal(t, core.StatusWaiting, f.status(t, "ada", "1"))
	})
}

func TestSubmittedTasksRunIfConfigSaysSo(t *testing.T) {
	t.Parallel()
	each(t, gcf.Config{RunSubmitted: true}, func(x trial) {
		t, f, send := x.T, x.fixture, x.send
		f.submit(t, core.NewTask{Agent: "zoe", ID: "other", Kind: "ok"})
		status, answer := send(`{"agent_id":"ada","id":"1","kind":"ok"}`)
		assert.Equal(t, 200, status, answer)
		assert.Equal(t, core.StatusCompleted, f.status(t, "ada", "1"))
		assert.Equal(t, core.StatusWaiting, f.status(t, "zoe", "other"))
	})
}

var nonsense = []string{
	"", "not a task at all", "null", "[]", "{}", `{"kind":"tock"}`, `{"tasks":[]}`, `{"agent_id":"a\u0000b","kind":"ok"}`,
	`{"bucket":"b","name":"n","kind":"storage#object"}`, `{"agent_id":"ada","kind":"ok","every":"often"}`, `{"kind":["tick"]}`, `{"KIND":"tick"}`,
}

// What makes no sense is said so, and neither run, nor written, nor asked for again.
func TestNonsenseIsRefusedAndAcknowledged(t *testing.T) {
	t.Parallel()
	each(t, gcf.Config{}, func(x trial) {
		t, f, send := x.T, x.fixture, x.send
		f.submit(t, core.NewTask{Agent: "ada", ID: "due", Kind: "ok"})
		before := f.store.submits()
		for _, data := range nonsense {
			status, answer := send(data)
			assert.Equal(t, 200, status, data)
			assert.NotEmpty(t, answer, data)
			assert.Contains(t, answer, `want a task`, "it says what was expected: %s", data)
		}
		assert.Zero(t, f.store.claims())
		assert.Equal(t, before, f.store.submits())
	})
}

func TestNonsenseGoesToTheDeadLettersIfConfigSaysSo(t *testing.T) {
	t.Parallel()
	each(t, gcf.Config{DeadLetter: true}, func(x trial) {
		t, send := x.T, x.send
		for _, data := range nonsense {
			status, answer := send(data)
			assert.Equal(t, 400, status, "%s: %s", data, answer)
		}
	})
}

// A kind that is disabled may be enabled again: its messages are not lost until then.
func TestAMessageOfADisabledKindIsSentAgain(t *testing.T) {
	t.Parallel()
	each(t, gcf.Config{}, func(x trial) {
		t, f, send := x.T, x.fixture, x.send
		status, answer := send(`{"agent_id":"ada","kind":"off"}`)
		assert.Equal(t, 409, status)
		assert.Contains(t, answer, `the kind`)
		assert.Zero(t, f.store.submits())
	})
}

// When the store is away the sender has to try again, and the message is no nonsense.
func TestTroubleWithTheStoreIsRepeated(t *testing.T) {
	t.Parallel()
	each(t, gcf.Config{}, func(x trial) {
		t, f, send := x.T, x.fixture, x.send
		f.store.FailWith(&store.Error{Verb: "submit", Err: errors.New("away")})
		for _, data := range []string{`{"agent_id":"ada","id":"1","kind":"ok"}`, `{"kind":"tick"}`} {
			status, _ := send(data)
			assert.Equal(t, 503, status, data)
		}
		f.store.FailWith(&store.LimitError{Agent: "ada", Limit: 1})
		status, _ := send(`{"agent_id":"ada","id":"1","kind":"ok"}`)
		assert.Equal(t, 429, status)
		f.store.FailWith(store.ErrChanged)
		status, _ = send(`{"agent_id":"ada","id":"1","kind":"ok"}`)
		assert.Equal(t, 409, status, "what changed meanwhile is tried again")
		f.store.FailWith(nil)
		send(`{"agent_id":"ada","id":"1","kind":"ok"}`)
		send(`{"kind":"tick"}`)
		assert.Equal(t, core.StatusCompleted, f.status(t, "ada", "1"))
	})
}

// An envelope that is not right is refused as well.
func TestEnvelopes(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{DeadLetter: true})
	for _, body := range []string{
		`{"message":{"data":"e30="},"subscription":"s"}`, `{"message":{"data":"e30=","messageId":"1"},"subscription":7}`,
		`{"message":{"data":"?","messageId":"1"},"subscription":"s"}`,
		`{"message":"x","subscription":"s"}`,
	} {
		status, answer := f.call(t, request(t, "/", body, "Content-Type", "application/json"))
		assert.Equal(t, 400, status, body)
		assert.Contains(t, answer["detail"], "messag")
	}
	for _, kind := range []string{"text/plain", ""} {
		e := newEvent(t, "com.example.tasks", `{}`)
		e.DataEncoded = []byte(`{"kind":"tick"}`)
		e.SetDataContentType(kind)
		status, text := result(f.function.Event(t.Context(), e))
		if kind != "" { // without a type the standard says that it is JSON
			assert.Equal(t, 400, status)
			assert.Contains(t, text, "must be application/json in an event of the type com.example.tasks")
		}
	}
	status, text := result(f.function.Event(t.Context(), event.New()))
	assert.Equal(t, 400, status)
	assert.Contains(t, text, "event is not valid")
	status, _ = recorded(f, request(t, "/", "{", "Content-Type", "application/cloudevents+json"))
	assert.Equal(t, 400, status)
}

// The SDK may hand out the context of another request: that its end ends this one would be wrong.
func TestAnEventDoesNotEndWithAForeignRequest(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{})
	f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, f.function.Event(ctx, newEvent(t, "com.example.tick", `{"kind":"tick"}`)))
	assert.Equal(t, core.StatusCompleted, f.status(t, "ada", "1"))

	f.submit(t, core.NewTask{Agent: "ada", ID: "slow", Kind: "slow"})
	ctx, cancel = context.WithTimeout(t.Context(), model.DefaultMargin+100*time.Millisecond)
	defer cancel()
	e := newEvent(t, "com.example.tick", `{"kind":"tick"}`)
	e.SetID("e2")
	require.NoError(t, f.function.Event(ctx, e), "but its deadline counts")
	require.NoError(t, ctx.Err())
	assert.Equal(t, core.StatusWaiting, f.status(t, "ada", "slow"))
}

// Pub/Sub numbers the messages of each topic: two topics may have one number.
func TestMessagesOfTwoSubscriptionsAreTwo(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{})
	long := strings.Repeat("s", 2000) // ids of tasks are shorter
	for _, subscription := range []string{"one", "two", long} {
		push := strings.Replace(wrap("1", `{"agent_id":"ada","kind":"ok"}`), "subscriptions/duly", "subscriptions/"+subscription, 1)
		for _, r := range []*http.Request{
			request(t, "/", push, "Content-Type", "application/json"),
			request(t, "/", `{"agent_id":"ada","kind":"ok"}`, "X-Goog-Pubsub-Message-Id", "1",
				"X-Goog-Pubsub-Subscription-Name", "projects/p/subscriptions/"+subscription),
		} { // the same message in two forms
			status, answer := f.call(t, r)
			assert.Equal(t, 200, status)
			assert.NotContains(t, answer, "refused")
		}
	}
	stats, err := f.scheduler.Stats(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 3, stats.Submitted)
}
