package core_test

// Definitions have all that a task is submitted with.

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core"
)

// A field that a task gets one day is compared as well.
func TestADefinitionIsAllThatATaskIsSubmittedWith(t *testing.T) {
	t.Parallel()
	var info core.TaskInfo
	v := reflect.ValueOf(&info).Elem()
	for _, field := range reflect.VisibleFields(v.Type()) {
		if field.Anonymous {
			continue
		}
		switch f := v.FieldByIndex(field.Index); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
			f.SetMapIndex(reflect.ValueOf("x"), reflect.ValueOf("x"))
		case reflect.Struct: // a time
			f.Set(reflect.ValueOf(time.Unix(1, 0)))
		case reflect.Pointer: // by which run it was submitted, which is no part of it
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Bool:
			f.SetBool(true)
		default:
			f.SetInt(1)
		}
	}
	d := reflect.ValueOf(info.Definition())
	for field, value := range d.Fields() {
		elsewhere := slices.Contains([]string{"When", "At", "Delay", "UniqueKey", "OnConflict", "Preset", "Paused", "PausedReason", "owned", "restored"}, field.Name)
		assert.Equal(t, !elsewhere, !value.IsZero(), field.Name)
	}
}
