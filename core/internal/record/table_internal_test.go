package record

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A row that is not of the form of its field would write over its neighbours.
func TestRowsFitTheirFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		table  *table
		record any
	}{{bodies, Body{}}, {states, State{}}, {runs, Run{}}, {finished, Finished{}}, {holds, Hold{}}, {origins, Origin{}}, {failures, Failure{}}} {
		fields := map[uintptr]reflect.StructField{}
		typ := reflect.TypeOf(c.record)
		for f := range typ.Fields() {
			fields[f.Offset] = f
		}
		for _, row := range c.table.rows {
			if row.form == formOwn {
				continue
			}
			f, ok := fields[row.at]
			require.True(t, ok, "row %d of %s is about no field", row.number, typ)
			assert.Equal(t, row.form, formOf(f.Type), "row %d of %s, %s", row.number, typ, f.Name)
		}
	}
}

// formOf is the form that fields of a type have.
func formOf(t reflect.Type) form {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return formSpan
	case t == reflect.TypeFor[[]byte]():
		return formRaw
	case t == reflect.TypeFor[[]string]():
		return formTexts
	case t == reflect.TypeFor[History]():
		return formRuns
	}
	switch t.Kind() {
	case reflect.Int:
		return formInt
	case reflect.Int64:
		return formCount
	case reflect.Bool:
		return formFlag
	case reflect.String:
		return formText
	default:
		return formOwn
	}
}

func TestNumbersAreUsedOnce(t *testing.T) {
	t.Parallel()
	assert.PanicsWithValue(t, "record: the number 1 is used twice", func() { tableOf(rows{{number: 1}, {number: 1}}) })
}
