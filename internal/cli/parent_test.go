package cli_test

// Tasks that programs of handlers submit, and the bounds of that.

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// A program submits in the name of its run by itself; at the bound it is told so, its run fails, and status, explain and log say why.
func TestAProgramSubmitsInTheNameOfItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := file(t, "redis: "+w.redis.URL)
	script := fmt.Sprintf(`n=${DULY_TASK_ID#i}; exec %s submit -c %s --agent a --id "i$((n+1))" --kind x --max-attempts 1`, binary, url)
	config := exec1(t, script, "") // its programs do not get DULY_REDIS_URL
	data, err := os.ReadFile(config)
	require.NoError(t, err)
	config = file(t, "max_depth: 1000\nmax_spawned: -1\n"+string(data))
	w.env = append(w.env, "DULY_MAX_DEPTH=2")
	s := w.scheduler(t)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i0", Kind: "x", MaxAttempts: 1})
	require.NoError(t, err)
	var last result
	for range 4 {
		if last = w.duly(t, "run-due", "--agents", "a", "-c", config); last.code != 0 {
			break
		}
	}
	// The bounds are those of the process that submits: here the program, which has the variables of the one that started it.
	task := w.object(t, "status", "a", "i2")
	assert.Equal(t, map[string]any{"agent_id": "a", "id": "i1"}, task["submitted_by"])
	assert.Equal(t, map[string]any{"agent_id": "a", "id": "i0"}, task["root"])
	assert.EqualValues(t, 2, task["depth"])
	assert.Contains(t, w.ok(t, "status", "a", "i2"), "a run of task i1 of agent a, at depth 2 below task i0 of agent a")
	const why = `have come to depth 3 below task "i0" of agent "a", and the limit is 2`
	explained := w.ok(t, "explain", "a", "i2")
	assert.Contains(t, explained, why)
	assert.Contains(t, explained, "submitted by")
	assert.Equal(t, 4, last.code, last.stderr)
	assert.Equal(t, 3, w.duly(t, "status", "a", "i3").code, "it was not stored")
}

func TestWrongParentsAndBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plain := w.env
	submit := []string{"submit", "--agent", "a", "--id", "1", "--kind", "x"}
	w.env = append(plain, "DULY_PARENT=a/none")
	oneLine(t, w.duly(t, submit...), 2, `DULY_PARENT: "a/none" names no task that exists`, "unset it")
	w.env = append(plain, "DULY_PARENT=none")
	oneLine(t, w.duly(t, submit...), 2, `DULY_PARENT: "none" must be an agent and the id of a task`)
	w.env = append(plain, "DULY_MAX_SPAWNED=many")
	oneLine(t, w.duly(t, submit...), 2, `DULY_MAX_SPAWNED must be a whole number, not "many"`)
	w.env = append(plain, "DULY_MAX_DEPTH=1001")
	assert.Contains(t, w.duly(t, submit...).stderr, "must be at most 1000, or negative for no bound, not 1001")
	w.env = append(plain, "DULY_PARENT=")
	w.ok(t, submit...)
}
