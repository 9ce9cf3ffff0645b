package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	st := watch(memstore.New(memstore.Config{Partitions: 8}))
	s, err := core.New(st, core.Config{MaxPayload: 100})
	require.NoError(t, err)
	now := time.Now()
	for _, c := range []struct {
		name  string
		edit  func(task *core.NewTask)
		field string
	}{
		{"no agent", func(n *core.NewTask) { n.Agent = "" }, "agent_id"},
		{"long agent", func(n *core.NewTask) { n.Agent = strings.Repeat("a", 257) }, "agent_id"},
		{"control character", func(n *core.NewTask) { n.Agent = "a\x00b" }, "agent_id"},
		{"escape", func(n *core.NewTask) { n.Agent = "a\x1b[31m" }, "agent_id"},
		{"delete", func(n *core.NewTask) { n.Agent = "a\x7f" }, "agent_id"},
		{"C1 control", func(n *core.NewTask) { n.Agent = "a\u0085" }, "agent_id"},
		{"invalid UTF-8", func(n *core.NewTask) { n.ID = "a\xff" }, "id"},
		{"long id", func(n *core.NewTask) { n.ID = strings.Repeat("é", 129) }, "id"},
		{"new line in id", func(n *core.NewTask) { n.ID = "a\nb" }, "id"},
		{"no kind", func(n *core.NewTask) { n.Kind = "" }, "kind"},
		{"kind with a space", func(n *core.NewTask) { n.Kind = "a b" }, "kind"},
		{"kind with a bar", func(n *core.NewTask) { n.Kind = "a|b" }, "kind"},
		{"long kind", func(n *core.NewTask) { n.Kind = strings.Repeat("k", 101) }, "kind"},
		{"group", func(n *core.NewTask) { n.Group = "\xfe" }, "group"},
		{"payload too large", func(n *core.NewTask) { n.Payload = strings.Repeat("x", 100) }, "payload"},
		{"payload is no JSON", func(n *core.NewTask) { n.Payload = json.RawMessage("{") }, "payload"},
		{"payload cannot be JSON", func(n *core.NewTask) { n.Payload = func() {} }, "payload"},
		{"level", func(n *core.NewTask) { n.Level = 4 }, "level"},
		{"negative level", func(n *core.NewTask) { n.Level = -1 }, "level"},
		{"at and delay", func(n *core.NewTask) { n.At, n.Delay = now, time.Second }, "at"},
		{"at and every", func(n *core.NewTask) { n.At, n.Every = now, time.Second }, "at"},
		{"at too far", func(n *core.NewTask) { n.At = now.AddDate(9000, 0, 0) }, "at"},
		{"negative delay", func(n *core.NewTask) { n.Delay = -1 }, "delay"},
		{"delay too long", func(n *core.NewTask) { n.Delay = 1 << 62 }, "delay"},
		{"every too short", func(n *core.NewTask) { n.Every = 999 * time.Millisecond }, "every"},
		{"negative every", func(n *core.NewTask) { n.Every = -time.Hour }, "every"},
		{"cron and every", func(n *core.NewTask) { n.Cron, n.Every = "@daily", time.Hour }, "cron"},
		{"cron and at", func(n *core.NewTask) { n.Cron, n.At = "@daily", now }, "at"},
		{"bad cron", func(n *core.NewTask) { n.Cron = "61 * * * *" }, "cron"},
		{"cron that never fires", func(n *core.NewTask) { n.Cron = "0 0 30 2 *" }, "cron"},
		{"unknown zone", func(n *core.NewTask) { n.Cron, n.Zone = "@daily", "Mars/Base" }, "zone"},
		{"zone without cron", func(n *core.NewTask) { n.Zone = "UTC" }, "zone"},
		{"day match", func(n *core.NewTask) { n.Cron, n.DayMatch = "@daily", "most" }, "day_match"},
		{"day match without cron", func(n *core.NewTask) { n.DayMatch = "all" }, "day_match"},
		{"gap", func(n *core.NewTask) { n.Cron, n.Gap = "@daily", "jump" }, "gap"},
		{"gap without cron", func(n *core.NewTask) { n.Gap = "skip" }, "gap"},
		{"from without every", func(n *core.NewTask) { n.From = core.FromStart }, "from"},
		{"from what", func(n *core.NewTask) { n.From, n.Every = "end", time.Second }, "from"},
		{"attempts", func(n *core.NewTask) { n.MaxAttempts = 1001 }, "max_attempts"},
		{"backoff", func(n *core.NewTask) { n.Backoff = 1 << 62 }, "backoff"},
		{"timeout", func(n *core.NewTask) { n.Timeout = 1 << 62 }, "timeout"},
		{"lease", func(n *core.NewTask) { n.Lease = time.Millisecond }, "lease"},
		{"trace id", func(n *core.NewTask) { n.TraceID = "\r\n" }, "trace_id"},
		{"session id", func(n *core.NewTask) { n.SessionID = strings.Repeat("x", 513) }, "session_id"},
		{"tags", func(n *core.NewTask) { n.Tags = make([]string, 33) }, "tags"},
		{"tag", func(n *core.NewTask) { n.Tags = []string{"a", "\x01"} }, "tags[1]"},
		{"info", func(n *core.NewTask) { n.Info = json.RawMessage("no") }, "info"},
		{"long info", func(n *core.NewTask) { n.Info = json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`) }, "info"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			task := core.NewTask{Agent: "a", Kind: "k"}
			c.edit(&task)
			_, err := s.Submit(t.Context(), task)
			var inv *core.InvalidError
			require.ErrorAs(t, err, &inv)
			assert.Equal(t, c.field, inv.Field)
			assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
			assert.NotEmpty(t, inv.Reason)
			_, err = s.Submit(t.Context(), core.NewTask{Agent: "b", Kind: "k"}, task)
			require.ErrorAs(t, err, &inv)
			assert.Equal(t, "tasks[1]."+c.field, inv.Field, "all or nothing, and which one it was")
		})
	}
	t.Cleanup(func() { assert.Zero(t, st.total(), "nothing of this reaches the store") })
}

func TestSubmitRefusesBatches(t *testing.T) {
	t.Parallel()
	st := watch(memstore.New(memstore.Config{Partitions: 8}))
	s, err := core.New(st, core.Config{})
	require.NoError(t, err)
	_, err = s.Submit(t.Context(), make([]core.NewTask, core.MaxSubmit+1)...)
	assert.ErrorContains(t, err, "tasks are 1001: the limit is 1000 a call")
	same := core.NewTask{Agent: "a", ID: "1", Kind: "k"}
	_, err = s.Submit(t.Context(), same, core.NewTask{Agent: "b", ID: "1", Kind: "k"}, same)
	assert.ErrorContains(t, err, "tasks[2].id is the same as that of tasks[0]")
	assert.Zero(t, st.total())
}

// large are some tasks with payloads of some bytes.
func large(n, size int) []core.NewTask {
	tasks := make([]core.NewTask, n)
	for i := range tasks {
		tasks[i] = core.NewTask{Agent: "a", ID: fmt.Sprint(i), Kind: "k", Delay: time.Hour, Payload: strings.Repeat("x", size)}
	}
	return tasks
}

// All that a call stores is stored in one step, so its bytes are bounded.
func TestSubmitBoundsBytes(t *testing.T) {
	t.Parallel()
	st := watch(memstore.New(memstore.Config{Partitions: 8}))
	s, err := core.New(st, core.Config{MaxPayload: 8 << 20})
	require.NoError(t, err)
	_, err = s.Submit(t.Context(), large(17, 256<<10)...)
	var inv *core.InvalidError
	require.ErrorAs(t, err, &inv)
	assert.Equal(t, "tasks", inv.Field)
	assert.Regexp(t, `^tasks have 44\d{5} bytes in all: the limit is 4194304 a call; submit them in several calls$`, err.Error())
	assert.Zero(t, st.total(), "nothing of this reaches the store")
	_, err = s.Submit(t.Context(), large(15, 256<<10)...)
	require.NoError(t, err)
	_, err = s.Submit(t.Context(), large(1, 5<<20)...)
	require.NoError(t, err, "one task may have as many as a payload may have")

	small := large(15, 1)
	for i := range small {
		small[i].OnConflict = core.OnConflictReplace
	}
	_, err = s.Submit(t.Context(), large(20, 200<<10)[15:]...)
	require.NoError(t, err)
	for _, task := range large(20, 1)[15:] {
		task.OnConflict = core.OnConflictReplace
		small = append(small, task)
	}
	_, err = s.Submit(t.Context(), small...)
	require.ErrorAs(t, err, &inv)
	assert.Regexp(t, `^tasks replace tasks of 49\d{5} bytes in all: the limit is 4194304 a call; submit them in several calls$`, err.Error())
	for _, some := range [][]core.NewTask{small[:10], small[10:], small[:1]} {
		_, err = s.Submit(t.Context(), some...)
		require.NoError(t, err)
	}
}

func TestSubmitTakesAnything(t *testing.T) {
	t.Parallel()
	st := memstore.New(memstore.Config{Partitions: 8})
	s, err := core.New(st, core.Config{})
	require.NoError(t, err)
	full := core.NewTask{
		Agent: "agent: 日本 {}*", ID: strings.Repeat("x", 256), Kind: "memory.rollup_day:v1/x-y", Payload: []byte(`{"a":[]}`),
		Every: time.Minute, Delay: time.Hour, From: core.FromStart, Level: core.LevelHigh, Group: "group", MaxAttempts: 3,
		Backoff: time.Second, Timeout: time.Minute, Lease: time.Minute, TraceID: "t", Traceparent: "00-1", SessionID: "s",
		UserID: "u", Labels: map[string]string{"tier": "gold", "user_name": "n"}, Info: json.RawMessage(`{"k":1}`), Tags: []string{"x", "y"},
	}
	out, err := s.Submit(t.Context(), full)
	require.NoError(t, err)
	assert.True(t, out[0].Created)
	info, err := s.Task(t.Context(), full.Agent, full.ID)
	require.NoError(t, err)
	assert.Equal(t, core.TaskInfo{
		Agent: full.Agent, ID: full.ID, Kind: full.Kind, Status: core.StatusWaiting,
		Schedule: store.ScheduleEvery, Attempt: 1, Submitted: info.Submitted, UpdatedAt: info.Submitted, Due: info.Due, NextRun: info.Due,
		TaskSettings: model.TaskSettings{
			Group: "group", Level: core.LevelHigh, Payload: json.RawMessage(`{"a":[]}`), Every: time.Minute, From: core.FromStart,
			MaxAttempts: 3, Backoff: time.Second, Timeout: time.Minute, Lease: time.Minute, TraceID: "t", Traceparent: "00-1", SessionID: "s", UserID: "u",
			Labels: map[string]string{"tier": "gold", "user_name": "n"}, Info: json.RawMessage(`{"k":1}`), Tags: []string{"x", "y"},
		},
	}, info)
	assert.InDelta(t, info.Submitted.Add(time.Hour).UnixMilli(), info.Due.UnixMilli(), 1000, "its slots begin with the moment of Submit, which is a little before")
	out, err = s.Submit(t.Context(), core.NewTask{Agent: "a", Kind: "k"}, core.NewTask{Agent: "a", Kind: "k"})
	require.NoError(t, err)
	assert.NotEqual(t, out[0].ID, out[1].ID, "ids are made up")
	assert.Less(t, out[0].ID, out[1].ID)
}

func TestTracker(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	for i := range 30 {
		_, err := s.Submit(t.Context(), core.NewTask{
			Agent: "a", ID: fmt.Sprintf("%02d", i), Kind: fmt.Sprint("kind", i%3), Group: fmt.Sprint("group", i%2), Delay: time.Hour,
		})
		require.NoError(t, err)
	}
	list := func(l core.List) (ids []string) {
		for {
			tasks, cursor, err := s.Tasks(t.Context(), l)
			require.NoError(t, err)
			for _, task := range tasks {
				ids = append(ids, task.ID)
			}
			if cursor == "" {
				return ids
			}
			require.Len(t, tasks, l.Limit)
			l.Cursor = cursor
		}
	}
	assert.Len(t, list(core.List{Agent: "a"}), 30)
	assert.Len(t, list(core.List{Agent: "a", Limit: 7}), 30)
	assert.Equal(t, []string{"00", "03", "06", "09", "12", "15", "18", "21", "24", "27"}, list(core.List{Agent: "a", Kind: "kind0", Limit: 4}))
	assert.Equal(t, []string{"00", "06", "12", "18", "24"}, list(core.List{Agent: "a", Kind: "kind0", Group: "group0", Limit: 5}))
	assert.Empty(t, list(core.List{Agent: "a", Status: []core.Status{core.StatusFailed}}))
	for _, c := range []struct {
		list  core.List
		field string
	}{
		{core.List{Status: []core.Status{core.StatusCompleted}}, "agent_id"},
		{core.List{Agent: "a", Status: []core.Status{"lost"}}, "status"},
		{core.List{Agent: "a", Kind: "a b"}, "kind"},
		{core.List{Agent: "a", Group: "\n"}, "group"},
		{core.List{Agent: "a", Cursor: "\n"}, "cursor"},
		{core.List{Agent: "a", Limit: 1001}, "limit"},
		{core.List{Agent: "a", Limit: -1}, "limit"},
	} {
		_, _, err := s.Tasks(t.Context(), c.list)
		var inv *core.InvalidError
		require.ErrorAs(t, err, &inv)
		assert.Equal(t, c.field, inv.Field)
	}
	_, err = s.Task(t.Context(), "a", "none")
	assert.ErrorIs(t, err, core.ErrNotFound)
	_, err = s.Task(t.Context(), "", "x")
	assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
	_, err = s.Task(t.Context(), "a", "")
	assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
	counts, err := s.Group(t.Context(), "a", "group1")
	require.NoError(t, err)
	assert.Equal(t, model.GroupCounts{Live: 15}, counts)
	assert.Equal(t, core.StatusInProgress, counts.Status())
	_, err = s.Group(t.Context(), "a", "group7")
	assert.ErrorIs(t, err, core.ErrNotFound)
	_, err = s.Group(t.Context(), "", "g")
	assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
	_, err = s.Group(t.Context(), "a", "")
	assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
}

func TestGroupStatus(t *testing.T) {
	t.Parallel()
	for want, counts := range map[core.Status]model.GroupCounts{
		"":                    {},
		core.StatusFailed:     {Live: 1, Completed: 1, Failed: 1},
		core.StatusInProgress: {Live: 1, Completed: 1},
		core.StatusCompleted:  {Completed: 2, Cancelled: 1},
		core.StatusCancelled:  {Cancelled: 1},
	} {
		assert.Equal(t, want, counts.Status())
	}
}
