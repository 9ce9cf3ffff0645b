package contract_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// An event has the type of a callback only if the task has ended: a run that is followed by another, and a run that is still to be cancelled, end nothing.
func TestTypesOfEventsOfTheFeed(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"event_id":"1-1","event":"finish","agent_id":"a","id":"t","status":"completed"}`: "duly.task.completed /v1/agents/a t",
		`{"event_id":"1-1","event":"finish","agent_id":"a","id":"t","status":"failed"}`:    "duly.task.failed /v1/agents/a t",
		`{"event_id":"1-1","event":"finish","agent_id":"a","id":"t","status":"cancelled"}`: "duly.task.cancelled /v1/agents/a t",
		`{"event_id":"1-1","event":"finish","agent_id":"a","id":"t","status":"waiting"}`:   "duly.task.finish /v1/agents/a t",
		`{"event_id":"1-1","event":"cancel","agent_id":"a","id":"t","status":"cancelled"}`: "duly.task.cancelled /v1/agents/a t",
		`{"event_id":"1-1","event":"cancel","agent_id":"a","id":"t"}`:                      "duly.task.cancel /v1/agents/a t",
		`{"event_id":"1-1","event":"late","agent_id":"a","id":"t","status":"failed"}`:      "duly.task.late /v1/agents/a t",
		`{"event_id":"1-1","event":"pause","agent_id":"a/b?"}`:                             "duly.pause /v1/agents/a%2Fb%3F ",
		`{"event_id":"1-1","event":"park","count":60}`:                                     "duly.park /v1 ",
	} {
		e, err := contract.FeedEvent([]byte(data))
		require.NoError(t, err, data)
		assert.Equal(t, want, e.Type+" "+e.Source+" "+e.Subject, data)
		whole, err := json.Marshal(e)
		require.NoError(t, err)
		assert.Contains(t, string(whole), `"data":`+data)
	}
	for _, data := range []string{``, `{}`, `[]`, `{"event":"finish"}`, `{"event_id":"1-1"}`, `{"event_id":"1-1","event":"finish"`} {
		_, err := contract.FeedEvent([]byte(data))
		assert.Error(t, err, data)
	}
}
