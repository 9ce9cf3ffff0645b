package core_test

// Bindings: what handlers, gates and contexts get of them, and what becomes of a run that has none.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// A binding gives each handler the workspace of its user.
func ExampleBinding() {
	workspaces := map[string]string{"u1": "team-a", "u2": "team-b"}
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{
		Bindings: []core.Binding{func(_ context.Context, t *core.RunInfo) (core.Values, error) {
			return core.Values{"WORKSPACE": workspaces[t.UserID]}, nil
		}},
	})
	if err != nil {
		panic(err)
	}
	core.Handle(s, "digest", func(ctx context.Context, t *core.Task[struct{}]) error {
		fmt.Println(t.UserID, "works in", t.Bound()["WORKSPACE"], core.Bound(ctx)["WORKSPACE"])
		return nil
	})
	ctx := context.Background()
	_, _ = s.Submit(ctx,
		core.NewTask{Agent: "ada", ID: "1", Kind: "digest", UserID: "u1", Level: 1},
		core.NewTask{Agent: "ada", ID: "2", Kind: "digest", UserID: "u2"},
	)
	_, err = s.RunDue(ctx, core.Scope{MaxTasks: 1})
	fmt.Println(err)
	// Output:
	// u1 works in team-a team-a
	// <nil>
}

func TestBindingsOfABatchAreOfEachTask(t *testing.T) {
	var gate, got []string
	virtual(t, core.Config{Bindings: []core.Binding{
		func(_ context.Context, t *core.RunInfo) (core.Values, error) {
			return core.Values{"USER": t.UserID, "TENANT": "one"}, nil
		},
		func(_ context.Context, t *core.RunInfo) (core.Values, error) {
			return core.Values{"TENANT": "two" + t.Bound()["USER"]}, nil // they do not see one another's
		},
	}}, func(w *world) {
		core.Gate(w.s, "k", func(_ context.Context, t *core.RunInfo) (bool, error) {
			gate = append(gate, t.Bound()["USER"])
			return true, nil
		})
		core.HandleBatch(w.s, "k", func(ctx context.Context, ts []*core.Task[note]) []error {
			assert.Nil(w, core.Bound(ctx), "each task has its own")
			for _, t := range ts {
				got = append(got, t.UserID+"/"+t.Bound()["USER"]+" "+t.Bound()["TENANT"])
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", UserID: "u1"}, core.NewTask{Agent: "a", ID: "2", Kind: "k", UserID: "u2"})
		assert.Equal(w, 2, w.run().Completed)
		assert.ElementsMatch(w, []string{"u1", "u2"}, gate)
		assert.ElementsMatch(w, []string{"u1/u1 two", "u2/u2 two"}, got)
	})
}

// A run whose values cannot be had fails, is tried again, and its handler is not called; others of its batch run.
func TestABindingThatFails(t *testing.T) {
	broken := errors.New("the vault is sealed")
	var err error
	virtual(t, core.Config{Bindings: []core.Binding{func(_ context.Context, t *core.RunInfo) (core.Values, error) {
		if t.ID == "bad" && t.Attempt == 1 {
			return nil, err
		}
		var none core.Values
		return none, nil
	}}}, func(w *world) {
		ran := map[string]int{}
		core.HandleBatch(w.s, "k", func(_ context.Context, ts []*core.Task[note]) []error {
			for _, t := range ts {
				ran[t.ID]++
			}
			return nil
		})
		err = broken
		w.submit(core.NewTask{Agent: "a", ID: "bad", Kind: "k"}, core.NewTask{Agent: "a", ID: "good", Kind: "k"})
		r := w.runFailing()
		assert.Equal(w, []int{1, 1, 1}, []int{r.Ran, r.Completed, r.Retried}, "what did not start has not run")
		assert.Equal(w, "binding: the vault is sealed", w.task("a", "bad").LastError)
		assert.Equal(w, map[string]int{"good": 1}, ran)
		assert.Len(w, w.seen(model.EventStart), 1)
		w.runUntil(time.Minute)
		assert.Equal(w, map[string]int{"good": 1, "bad": 1}, ran)

		err = core.Snooze(time.Hour)
		w.submit(core.NewTask{Agent: "b", ID: "bad", Kind: "k"})
		assert.Equal(w, 1, w.run().Snoozed)
		assert.Equal(w, 1, w.task("b", "bad").Attempt, "it is not charged")
	})
}

func TestABindingThatPanics(t *testing.T) {
	virtual(t, core.Config{Bindings: []core.Binding{func(context.Context, *core.RunInfo) (core.Values, error) { panic("oh") }}}, func(w *world) {
		ran := false
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran = true; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		assert.Equal(w, 1, w.runFailing().Retried)
		assert.False(w, ran)
	})
}

// What a binding gives is checked before anybody gets it: the run fails with the name, and without the value.
func TestABindingThatGivesWhatCannotBe(t *testing.T) {
	virtual(t, core.Config{Bindings: []core.Binding{func(context.Context, *core.RunInfo) (core.Values, error) {
		return core.Values{"KEY": "secret\nPATH=/evil"}, nil
	}}}, func(w *world) {
		ran := false
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran = true; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.runFailing()
		assert.False(w, ran)
		assert.Equal(w, "binding: the value of KEY has the control character U+000A at byte 6", w.task("a", "1").LastError)
	})
}

// Names and values that a program or a header could not have are refused, and the value is never shown.
func TestValuesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "lower", "A-B", "A=B", "A B", "1A", "_A", "Ä", "A\n", strings.Repeat("A", core.MaxValueName+1)} {
		assert.Error(t, core.Values{name: "v"}.Check(), "%q", name)
	}
	for _, value := range []string{"secret\n", "secret\x00", "secret\xff", strings.Repeat("secret", 1000)} {
		err := core.Values{"A": value}.Check()
		require.ErrorContains(t, err, "the value of A ")
		assert.NotContains(t, err.Error(), "secret")
	}
	many := core.Values{}
	for i := range core.MaxValues + 1 {
		many[fmt.Sprint("A", i)] = ""
	}
	require.ErrorContains(t, many.Check(), "65 values")
	require.NoError(t, core.Values{"A": "", "B_2": "é"}.Check())
	_, err := core.New(memstore.New(memstore.Config{}), core.Config{Bindings: []core.Binding{nil}})
	require.ErrorContains(t, err, "Bindings[0]")
}
