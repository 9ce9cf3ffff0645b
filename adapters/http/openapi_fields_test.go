package http_test

// The fields of tasks in the description are those of the code.

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// fill sets every exported field of a struct to something.
func fill(v reflect.Value) {
	for _, f := range v.Fields() {
		switch {
		case !f.CanSet():
		case f.Type() == reflect.TypeFor[json.RawMessage]():
			f.SetBytes([]byte(`{}`))
		case f.Kind() == reflect.String:
			f.SetString("x")
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.CanInt():
			f.SetInt(1)
		case f.Type() == reflect.TypeFor[time.Time]():
			f.Set(reflect.ValueOf(time.Unix(1, 0)))
		case f.Kind() == reflect.Struct:
			fill(f)
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
			fill(f.Elem())
		case f.Kind() == reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case f.Kind() == reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
		}
	}
}

// Each field that a task is submitted with or shows is in the document, and the document names no other.
func TestTheDocumentHasEachFieldOfATask(t *testing.T) {
	t.Parallel()
	doc := document(t)
	var submitted core.NewTask
	fill(reflect.ValueOf(&submitted).Elem())
	submitted.Payload, submitted.Labels = 1, map[string]string{"x": "x"}
	var shown core.TaskInfo
	fill(reflect.ValueOf(&shown).Elem())
	shown.Status, shown.Labels = store.StatusInProgress, submitted.Labels
	for name, value := range map[string]any{"NewTask": submitted, "Task": shown} {
		data, err := json.Marshal(value)
		require.NoError(t, err)
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(data, &fields))
		var has, named []string
		for field := range fields {
			has = append(has, field)
		}
		for field := range doc.Components.Schemas[name].Value.Properties {
			named = append(named, field)
		}
		slices.Sort(has)
		slices.Sort(named)
		assert.Equal(t, has, named, name)
	}
}
