package core_test

// Owners survive what a task goes through, and are never taken from a submitter's labels.

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

func TestOwners(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		labels := map[string]string{}
		for i := range 32 {
			labels[fmt.Sprint(i)] = "x"
		}
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour, Labels: labels}
		task.OwnedBy("deploy-7")
		assert.Len(w, labels, 32, "those of the caller stay")
		w.submit(task)
		stored := w.task("a", "1")
		assert.Equal(w, "deploy-7", stored.Owner())
		assert.Len(w, stored.Labels, 33)

		var lines bytes.Buffer
		_, err := w.s.Export(w.Context(), "a", &lines)
		require.NoError(w, err)
		done, err := w.s.Import(w.Context(), "b", &lines)
		require.NoError(w, err)
		assert.Equal(w, 1, done.New, "%v", done.Errors)
		copied := w.task("b", "1")
		assert.Equal(w, "deploy-7", copied.Owner())

		def := stored.Definition()
		def.OnConflict = core.OnConflictReplace
		w.submit(def)
		def.OwnedBy("")
		assert.Equal(w, labels, def.Labels)
		w.submit(def)
		free := w.task("a", "1")
		assert.Empty(w, free.Owner())

		for field, wrong := range map[string]core.NewTask{
			"labels.duly-owner": {Labels: map[string]string{model.LabelOwner: "me"}},
			"owner":             func() (t core.NewTask) { t.OwnedBy("a\nb"); return }(),
			"labels": func() (t core.NewTask) {
				t.Labels = map[string]string{"33": "x"}
				for name := range labels {
					t.Labels[name] = "x"
				}
				t.OwnedBy("me")
				return
			}(),
		} {
			wrong.Agent, wrong.Kind = "a", "k"
			_, err := w.s.Submit(w.Context(), wrong)
			var invalid *core.InvalidError
			require.ErrorAs(w, err, &invalid)
			assert.Equal(w, field, invalid.Field)
		}
	})
}
