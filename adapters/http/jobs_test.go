package http_test

// The registry over all agents, and lists by label, over HTTP.

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

func TestJobsOfAllAgentsAndLabels(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.call(t, "POST", "/v1/tasks", `{"tasks":[{"agent_id":"a","id":"1","kind":"ok","every":"1h","labels":{"tier":"gold","x":"="}},{"agent_id":"b","id":"2","kind":"ok","manual":true},{"agent_id":"b","id":"3","kind":"ok","delay":"1h","labels":{"tier":"gold"}}]}`)
	for path, want := range map[string]int{
		"/v1/jobs": 2, "/v1/jobs?kind=bad": 0, "/v1/jobs?agent_id=b": 1, "/v1/jobs?label=tier%3Dgold": 1, "/v1/jobs?label=tier%3Dgold&label=x%3D%3D": 1,
		"/v1/jobs?label=tier%3Dsilver": 0, "/v1/tasks?agent_id=b&label=tier%3Dgold": 1, "/v1/tasks?agent_id=b&label=tier%3D": 0,
	} {
		res, body := f.call(t, "GET", path, "")
		require.Equal(t, http.StatusOK, res.StatusCode, body)
		assert.Equal(t, want, strings.Count(body, `"status"`), "%s: %s", path, body)
	}
	for path, want := range map[string]string{
		"/v1/jobs?label=tier": "label must be name=value", "/v1/jobs?label=a%3D1&label=a%3D2": "label names a twice", "/v1/jobs?cursor=x": "next_cursor of a page over all agents",
		"/v1/tasks?status=completed": "agent_id must be given", "/v1/jobs?kind=a&kind=b": "kind is given twice",
	} {
		res, body := f.call(t, "GET", path, "")
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, path)
		assert.Contains(t, body, want, path)
	}
}
