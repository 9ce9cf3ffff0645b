package webhook_test

// Batches of a webhook: what is posted, and what the answer means for each task.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// posted runs n tasks as one batch, answered as told, and returns what became of them.
func posted(t *testing.T, n int, answer http.HandlerFunc) ([]core.TaskInfo, []message) {
	t.Helper()
	to := newReceiver(t, answer)
	h, err := webhook.New(webhook.Config{URL: to.URL, AllowLoopback: true})
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{
		Concurrency: 20, MaxResult: 1000, Kinds: map[string]core.KindConfig{"x": {Batch: 50, Backoff: time.Hour, MaxBackoff: time.Hour}},
	})
	require.NoError(t, err)
	core.HandleBatch(s, "x", h.RunBatch)
	for i := range n {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: fmt.Sprint("t", i), Kind: "x", Payload: i})
		require.NoError(t, err)
	}
	_, _ = s.RunDue(t.Context(), core.Scope{})
	infos := make([]core.TaskInfo, n)
	for i := range n {
		infos[i], err = s.Task(t.Context(), "a", fmt.Sprint("t", i))
		require.NoError(t, err)
	}
	return infos, to.messages()
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

// A batch is one message with an array, and each task has the outcome of its place.
func TestABatchIsOneMessage(t *testing.T) {
	t.Parallel()
	tasks, got := posted(t, 7, says(`[{"result": {"n": 1}}, null, {"error": "no"}, {"error": "never", "no_retry": true},
		{"snooze": "10m"}, {"yield": "5m", "checkpoint": {"page": 2}}, {"error": "", "cancel": true}]`))
	require.Len(t, got, 1)
	var runs []struct {
		ID      string `json:"id"`
		Payload int    `json:"payload"`
	}
	require.NoError(t, json.Unmarshal(got[0].body, &runs))
	require.Len(t, runs, 7)
	assert.Equal(t, "t3", runs[3].ID)
	assert.Equal(t, 3, runs[3].Payload)
	assert.True(t, strings.HasPrefix(got[0].header.Get("Webhook-Id"), "batch_"))
	assert.JSONEq(t, `{"n": 1}`, string(tasks[0].Result))
	var statuses []core.Status
	for i := range tasks {
		statuses = append(statuses, tasks[i].Status)
	}
	assert.Equal(t, []core.Status{
		core.StatusCompleted, core.StatusCompleted, core.StatusWaiting, core.StatusFailed, core.StatusWaiting, core.StatusWaiting, core.StatusCancelled,
	}, statuses)
	assert.Equal(t, "no", tasks[2].LastError)
}

// An answer that is short, long or makes no sense fails all of the batch, keeps nothing, and all are tried again.
func TestABadAnswerFailsAllOfABatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, err string }{
		"empty":        {``, "webhook: the answer to a batch must be a JSON array of 2 outcomes, and is empty"},
		"short":        {`[{"result": 1}]`, "webhook: the answer to a batch must have an outcome for each of the 2 tasks, not 1"},
		"long":         {`[{"result": 1}, {}, {}]`, "must have an outcome for each of the 2 tasks, not 3"},
		"no array":     {`{"ok": true}`, "must be a JSON array of 2 outcomes, not"},
		"more behind":  {`[{"result": 1}, {}] x`, "must be a JSON array of 2 outcomes, not"},
		"unknown":      {`[{"result": 1}, {"ok": true}]`, "unknown field"},
		"bad duration": {`[{"result": 1}, {"snooze": "soon"}]`, `outcome 1: duly-snooze must be a duration such as 10m, not "soon"`},
		"both":         {`[{"result": 1}, {"error": "x", "snooze": "1s"}]`, "outcome 1: has an error, which excludes snooze, yield, await and next_in"},
		"no error":     {`[{"result": 1}, {"no_retry": true}]`, "outcome 1: has no_retry, cancel or retry_after, which need an error"},
		"two":          {`[{"result": 1}, {"error": "x", "no_retry": true, "cancel": true}]`, "exclude each other"},
		"checkpoint":   {`[{"result": 1}, {"checkpoint": 1}]`, "outcome 1: has a checkpoint, which needs a yield"},
		"retry after":  {`[{"result": 1}, {"error": "x", "retry_after": "x"}]`, "retry_after must be a duration"},
	} {
		tasks, _ := posted(t, 2, says(c.answer))
		for i := range tasks {
			assert.Equal(t, core.StatusWaiting, tasks[i].Status, name)
			assert.Contains(t, tasks[i].LastError, c.err, name)
			assert.Equal(t, 2, tasks[i].Attempt, name)
			assert.Empty(t, tasks[i].Result, name)
		}
	}
}

// A status that is no success means for each of the batch what it means for one, and a header that steers one run is refused.
func TestTheStatusOfABatchIsThatOfAll(t *testing.T) {
	t.Parallel()
	tasks, _ := posted(t, 2, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	assert.Equal(t, core.StatusFailed, tasks[1].Status)
	tasks, _ = posted(t, 2, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Duly-Snooze", "10m")
		_, _ = w.Write([]byte(`[{}, {}]`))
	})
	assert.Contains(t, tasks[0].LastError, "the header duly-snooze steers one run")
}
