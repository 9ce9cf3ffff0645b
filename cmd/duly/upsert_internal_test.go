package main

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core"
)

// A field that a task gets one day is compared as well.
func TestADefinitionIsAllThatATaskIsSubmittedWith(t *testing.T) {
	t.Parallel()
	var info core.TaskInfo
	v := reflect.ValueOf(&info).Elem()
	for _, f := range v.Fields() {
		switch f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Bool:
			f.SetBool(true)
		default:
			f.SetInt(1)
		}
	}
	d := reflect.ValueOf(definition(&info))
	for field, value := range d.Fields() {
		elsewhere := slices.Contains([]string{"At", "Delay", "UniqueKey", "OnConflict", "Preset"}, field.Name)
		assert.Equal(t, !elsewhere, !value.IsZero(), field.Name)
	}
}
