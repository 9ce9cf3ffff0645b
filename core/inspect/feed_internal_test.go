package inspect

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
)

// Whoever listens reads what another process has written: each field of an event but the fence, which is no part of its JSON.
func TestAnEventIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	e := model.Event{
		Type: model.EventFinish, Time: at, Agent: "a", ID: "1", Kind: "k", Group: "g", TraceID: "t", SessionID: "s", Labels: map[string]string{"tier": "gold"}, Process: "p",
		Attempt: 2, Due: at.Add(time.Second), Wait: time.Second, Duration: time.Minute, Outcome: model.OutcomeFailed, Retried: true, From: store.StatusWaiting,
		Status: store.StatusFailed, Next: at.Add(time.Hour), Because: model.BecauseCode("resting"), Fault: audit.Code("f"), Key: "key", By: "b", Note: "n", Reason: "r", Count: 3,
		Code: model.CodeInvalid, Used: model.Usage{"tokens": 5}, Error: "e",
	}
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name != "Fence" {
			assert.False(t, v.Field(i).IsZero(), "the sample has nothing in %s: it proves nothing", name)
		}
	}
	data, err := json.Marshal(e)
	require.NoError(t, err)
	var got model.Event
	require.NoError(t, json.Unmarshal(data, &got))
	assert.Equal(t, e, got)
}

// What another program has written to the stream is no event: it counts as lost, and breaks no stream of those who listen.
func TestWhatIsNoEventIsLost(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", "[]", "{}", "null", `{"event":""}`, `{"event":"a\nb"}`, `{"event":"start"`, `"event"`} {
		assert.Equal(t, StoreEvent{ID: "1-2", Lost: 1}, eventOf(&feed.Item{ID: "1-2", Data: []byte(text)}), text)
	}
	e := eventOf(&feed.Item{ID: "1-2", Data: []byte("{\n\"event\": \"start\", \"new\": 1}")})
	assert.JSONEq(t, `{"event_id":"1-2","event":"start","new":1}`, string(e.Data))
	assert.NotContains(t, string(e.Data), "\n")
	assert.Equal(t, model.EventStart, e.Event.Type)
}
