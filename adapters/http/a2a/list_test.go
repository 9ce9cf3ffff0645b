package a2a_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/http/a2a"
	"github.com/seed-6f6f2c11/duly/core"
)

// Tasks are listed by page, those that changed last first, and by context, state and time; no others of the agent are among them.
func TestTasksAreListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sv := serve(t, a2a.Door{}, core.Config{})
		list := func(params string) (ids []string, next, whole string) {
			out := sv.call("ListTasks", params)
			require.Nil(t, out.Error)
			var page struct {
				Tasks         []task
				NextPageToken string
				TotalSize     int
			}
			require.NoError(t, json.Unmarshal(out.Result, &page))
			for _, one := range page.Tasks {
				ids = append(ids, one.ID)
			}
			return ids, page.NextPageToken, string(out.Result)
		}
		_, _, none := list(`{}`)
		assert.JSONEq(t, `{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}`, none)
		_, err := sv.scheduler.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "secret", Kind: "answer", Delay: time.Hour})
		require.NoError(t, err)
		var ids []string
		for i := range 5 {
			time.Sleep(time.Second)
			ids = append(ids, sv.task(sv.call("SendMessage", said(fmt.Sprint("m-", i), "hello", fmt.Sprintf(`,"contextId":"talk-%d"`, i%2)))).ID)
		}
		middle := time.Now().UTC().Format(time.RFC3339)
		time.Sleep(time.Second)
		sv.task(sv.call("CancelTask", `{"id":"`+ids[0]+`"}`))
		want := []string{ids[0], ids[4], ids[3], ids[2], ids[1]}

		all, next, whole := list(`{}`)
		assert.Equal(t, want, all)
		assert.Empty(t, next)
		assert.Contains(t, whole, `"totalSize":5`)
		var paged []string
		for token, pages := "", 0; pages == 0 || token != ""; pages++ {
			require.Less(t, pages, 4)
			some, next, _ := list(fmt.Sprintf(`{"pageSize":2,"pageToken":%q}`, token))
			paged, token = append(paged, some...), next
		}
		assert.Equal(t, want, paged)
		of, _, _ := list(`{"contextId":"talk-1"}`)
		assert.Equal(t, []string{ids[3], ids[1]}, of)
		of, _, _ = list(`{"status":"TASK_STATE_CANCELED"}`)
		assert.Equal(t, ids[:1], of)
		of, _, _ = list(`{"status":"TASK_STATE_REJECTED"}`)
		assert.Empty(t, of)
		of, _, _ = list(`{"statusTimestampAfter":"` + middle + `"}`)
		assert.Equal(t, ids[:1], of)
		sv.run()
		_, _, whole = list(`{"status":"TASK_STATE_COMPLETED"}`)
		assert.NotContains(t, whole, "artifacts")
		_, _, whole = list(`{"status":"TASK_STATE_COMPLETED","includeArtifacts":true}`)
		assert.Contains(t, whole, "you said hello")
	})
}

// What no list can be asked for is refused, before any store is called.
func TestListsAreChecked(t *testing.T) {
	t.Parallel()
	sv := serve(t, a2a.Door{}, core.Config{})
	for params, why := range map[string]string{
		`{"pageSize":0}`: "pageSize must be", `{"pageSize":101}`: "pageSize must be", `{"pageSize":"x"}`: "pageSize must be", `{"pageToken":"x"}`: "pageToken must be",
		`{"pageToken":"%"}`: "pageToken must be", `{"status":"completed"}`: "status must be", `{"statusTimestampAfter":"now"}`: "statusTimestampAfter must be",
		`{"includeArtifacts":1}`: "includeArtifacts must be", `{"contextId":1}`: "contextId must be",
	} {
		before := sv.store.Calls()
		out := sv.call("ListTasks", params)
		require.NotNil(t, out.Error, params)
		assert.Equal(t, -32602, out.Error.Code)
		assert.Contains(t, out.Error.Message, why)
		assert.Equal(t, before, sv.store.Calls(), params)
	}
}
