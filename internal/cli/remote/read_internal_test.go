package remote

// What core writes as JSON is read back whole: a field that is missing here would be missing in what commands print.

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// filler gives every field of a value something of its own.
type filler struct{ n int64 }

var moments = map[reflect.Type]bool{reflect.TypeFor[time.Time](): true}

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch {
	case moments[v.Type()]:
		v.Set(reflect.ValueOf(time.UnixMilli(1_700_000_000_000 + f.n*1001).UTC()))
		return
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(time.Duration(f.n) * 60 * time.Second))
		return
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.Set(reflect.ValueOf(json.RawMessage(fmt.Sprintf(`{"n":%d,"t":"<é\u001b>"}`, f.n))))
		return
	case v.Type() == reflect.TypeFor[moment.Millis]():
		v.SetInt(1_700_000_000_000 + f.n)
		return
	case v.Type() == reflect.TypeFor[error]():
		v.Set(reflect.ValueOf(errors.New(fmt.Sprint("fault ", f.n))))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%s %d <\u202e", v.Type().Name(), f.n))
	case reflect.Uint8:
		v.SetUint(1) // of bytes that are not shown
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int8:
		v.SetInt(f.n % 100)
	case reflect.Float64:
		v.SetFloat(float64(f.n) / 4)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key)
		f.fill(value)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				f.fill(field)
			}
		}
	default:
		panic(v.Type().String())
	}
}

// back writes a value, reads it as a client does, and compares what that writes.
func back[V any](t *testing.T, mend ...func(*V)) {
	t.Helper()
	for _, full := range []bool{false, true} {
		var from, read V
		if full {
			(&filler{}).fill(reflect.ValueOf(&from).Elem())
			for _, m := range mend {
				m(&from)
			}
		}
		want, err := json.Marshal(from)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(want, &read), string(want))
		got, err := json.Marshal(read)
		require.NoError(t, err)
		assert.JSONEq(t, string(want), string(got))
		assert.Equal(t, string(want), string(got), "%T, full: %v", from, full)
	}
}

func TestEveryAnswerIsReadWhole(t *testing.T) {
	t.Parallel()
	back(t, func(info *core.TaskInfo) {
		info.Labels = map[string]string{"user_name": "ann", "tier": "gold"}
		info.Status = core.StatusInProgress // or is_running would need to be kept
	})
	back[model.TaskRun](t)
	back[core.Submitted](t)
	back(t, func(e *inspect.Explanation) { e.Task.Labels, e.Task.Status = nil, core.StatusInProgress })
	back[model.Noticed](t)
	back[model.PauseInfo](t)
	back(t, func(s *inspect.Stats) {
		for i := range s.Kinds { // the counters of a kind have to be possible
			s.Kinds[i].Live, s.Kinds[i].Runs, s.Kinds[i].Failures = 1000, 50, 20
		}
	})
	back(t, func(w *inspect.Window) { w.For = 90 * time.Minute })
	back(t, func(k *inspect.KindInfo) {
		k.Limits, k.Counters.Live, k.Slots.Total = []bound.LimitUse{someLimit()}, 1000, 9
	})
	back(t, func(l *bound.LimitUse) { *l = someLimit() })
	back[bound.BudgetUse](t)
	back[core.Report](t)
	back[operate.Imported](t)
	back[model.AgentStats](t)
	back(t, func(p *core.Profile) {
		for i := range p.Limits {
			p.Limits[i] = someLimit().Limit
		}
	})
	back[model.Process](t)
	back(t, func(f *inspect.Finding) { f.Severity = inspect.SeverityOK })
	back[operate.BulkStep](t)
	back[operate.Forgotten](t)
	back[model.Signalled](t)
	back[audit.Fault](t)
}

// someLimit has every field, with a rate as limits have it.
func someLimit() bound.LimitUse {
	l := bound.LimitUse{}
	(&filler{}).fill(reflect.ValueOf(&l).Elem())
	l.Per = time.Minute
	return l
}
