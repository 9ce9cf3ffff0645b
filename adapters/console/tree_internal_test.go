package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// A tree has a task, what its runs have submitted, and what the runs of these have, in order; all on one axis of time. Tasks that name each other make
// no endless tree.
func TestGrowTree(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	by := func(id string) *model.Origin { return &model.Origin{By: model.TaskName{Agent: "a", ID: id}} }
	root := &core.TaskInfo{
		Agent: "a", ID: "root", Status: core.StatusInProgress, Submitted: at(-100),
		TaskHistory: model.TaskHistory{Runs: []model.TaskRun{{Started: at(-100), Duration: 10 * time.Minute, Outcome: model.OutcomeFailed}}},
	}
	tasks := []core.TaskInfo{
		{Agent: "a", ID: "late", Status: core.StatusWaiting, Submitted: at(-20), Origin: by("root")},
		{
			Agent: "a", ID: "early", Status: core.StatusCompleted, Submitted: at(-40), Finished: at(-10), Origin: by("root"),
			TaskHistory: model.TaskHistory{Runs: []model.TaskRun{{Started: at(-30), Duration: 20 * time.Minute, Outcome: model.OutcomeSuccess}}},
		},
		{Agent: "a", ID: "below", Status: core.StatusWaiting, Submitted: at(-10), Origin: by("early")},
		{Agent: "a", ID: "other", Status: core.StatusWaiting, Submitted: at(-10), Origin: by("else")},
		{Agent: "a", ID: "occurrence", Status: core.StatusWaiting, Submitted: at(-5), Parent: "late"},
		*root,
	}
	tr := growTree(root, at(-50), tasks, now)
	require.NotNil(t, tr)
	var ids, deep []string
	for _, row := range tr.Rows {
		ids, deep = append(ids, row.ID), append(deep, row.Deep)
	}
	assert.Equal(t, []string{"root", "early", "below", "late", "occurrence"}, ids)
	assert.Equal(t, []string{"d0", "d1", "d2", "d1", "d2"}, deep)
	parts := tr.Rows[0].Parts
	require.Len(t, parts, 3)
	assert.Equal(t, []string{"wait", "bad", "busy"}, []string{parts[0].Class, parts[1].Class, parts[2].Class})
	assert.InDeltaSlice(t, []float64{0, 700, 0, 70, 350, 350}, []float64{parts[0].X, parts[0].Width, parts[1].X, parts[1].Width, parts[2].X, parts[2].Width}, 0.1)
	parts = tr.Rows[1].Parts
	assert.InDeltaSlice(t, []float64{420, 210, 490, 140}, []float64{parts[0].X, parts[0].Width, parts[1].X, parts[1].Width}, 0.1)
	assert.Nil(t, growTree(root, at(-50), tasks[2:], now), "nothing is below it")

	odd := &core.TaskInfo{Agent: "a", ID: "x", Origin: by("y")}
	require.NotNil(t, growTree(odd, time.Time{}, []core.TaskInfo{{Agent: "a", ID: "y", Origin: by("x")}, *odd}, now))
	var many []core.TaskInfo
	for i := range 2 * treeShown {
		many = append(many, core.TaskInfo{Agent: "a", ID: count(i), Origin: by("root"), Submitted: at(-i)})
	}
	tr = growTree(root, at(-50), many, now)
	assert.True(t, tr.Cut)
	assert.Len(t, tr.Rows, treeShown)
}

// Progress is drawn if it says how far a run is, whatever else it says; other progress is shown as it is.
func TestProgress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"done":3,"of":12}`: "3 of 12, 25 %", `{"percent":40.4,"step":"x"}`: "40 %", `0.5`: "50 %", `{"current":1,"total":2}`: "1 of 2, 50 %", `{"done":0,"total":5}`: "0 of 5, 0 %",
		`{"done":3}`: "", `{"done":9,"of":3}`: "", `7`: "", `"half"`: "", `{"percent":"1"}`: "", `{"percent":400}`: "", `{"done":1,"of":0}`: "", ``: "", `[1,2]`: "",
	} {
		got := ""
		if p := progressOf([]byte(text)); p != nil {
			got = p.Text
		}
		assert.Equal(t, want, got, text)
	}
}
