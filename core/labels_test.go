package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Labels reach the handler's view and the tracker's, and JSON.
func TestLabelsAreKept(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	want := map[string]string{"tier": "pro", "empty": ""}
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", Labels: want})
	require.NoError(t, err)
	info, err := s.Task(t.Context(), "a", "1")
	require.NoError(t, err)
	assert.Equal(t, want, info.Labels)
	data, err := json.Marshal(info)
	require.NoError(t, err)
	written := `"labels":{"empty":"","tier":"pro"}`
	assert.Contains(t, string(data), written)
	tasks, err := model.ParseTasks([]byte(`{"agent_id":"a","kind":"k",` + written + `}`))
	require.NoError(t, err)
	assert.Equal(t, want, tasks[0].Labels)
}

// A feed keeps many events, and long labels would make it large.
func TestEventsLeaveOutLongLabels(t *testing.T) {
	t.Parallel()
	for size, has := range map[int]bool{500: true, 1100: false} {
		data, err := json.Marshal(model.Event{Labels: map[string]string{"note": strings.Repeat("x", size)}})
		require.NoError(t, err)
		assert.Equal(t, has, strings.Contains(string(data), `"labels"`), size)
	}
}

// A client that knows a field of an earlier version learns where its value goes.
func TestAFormerFieldIsRefusedWithAHint(t *testing.T) {
	t.Parallel()
	_, err := model.ParseTasks([]byte(`{"agent_id":"a","kind":"k","mem_cube_id":"m"}`))
	require.EqualError(t, err, "mem_cube_id is not a field of a task: values of your own go into labels")
}

func TestLabelsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for labels, says := range map[string]string{
		`{"a":"1","a":"2"}`: "names each label once",
		`{"a":1}`:           "must be an object of strings",
		`{"a":null}`:        "must be an object of strings",
		`["a"]`:             "must be an object of strings",
	} {
		_, err := model.ParseTasks([]byte(`{"agent_id":"a","kind":"k","labels":` + labels + `}`))
		require.ErrorContains(t, err, says, labels)
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err), labels)
	}
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	many := map[string]string{}
	for i := range 33 {
		many[fmt.Sprint(i)] = "x"
	}
	for says, labels := range map[string]map[string]string{
		"labels are 33: the limit is 32": many,
		"has a name of 0 bytes":          {"": "x"},
		"has a name of 65 bytes":         {strings.Repeat("n", 65): "x"},
		"control character":              {"a\x00b": "x"},
		"control character U+001B":       {"a": "\x1b[31m"},
		"is 513 bytes long":              {"a": strings.Repeat("v", 513)},
		"is not valid UTF-8":             {"a": "\xff"},
	} {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", Kind: "k", Labels: labels})
		require.ErrorContains(t, err, says)
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
	}
}
