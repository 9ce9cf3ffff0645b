package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Whose runs were taken back is told within the hour, and what a run was that has not been heard of since.
func TestWhoDiedIsTold(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		said := w.store.Store.(*memstore.Store)
		st := w.store
		dies := newMortal(st)
		process := func(name string, st core.Store) *core.Scheduler {
			s, err := core.New(st, core.Config{Name: name, Presence: said, Recent: said, Default: core.KindConfig{Lease: 20 * time.Second}})
			require.NoError(t, err)
			return s
		}
		first, second := process("first", dies), process("second", st)
		core.Handle(first, "k", func(context.Context, *core.Task[note]) error {
			dies.dead.Store(true)
			return nil
		})
		core.Handle(second, "k", nothing)
		first.Announce(w.Context())
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		go func() { _, _ = first.RunDue(w.Context(), core.Scope{}) }()
		synctest.Wait()
		explain := func() model.Because {
			why, err := second.Explain(w.Context(), "a", "1")
			require.NoError(t, err)
			require.NotEmpty(t, why.Reasons)
			return why.Reasons[0]
		}
		assert.Contains(t, explain().Text, "it is running in process first; its lease")
		time.Sleep(25 * time.Second)
		assert.Contains(t, explain().Text, "in process first has not been heard of since its lease")
		assert.Contains(t, explain().Text, "the next claim of its kind takes it over")
		time.Sleep(10 * time.Minute)
		assert.Contains(t, explain().Text, "has not been heard of since its lease")
		found, err := second.Recovered(w.Context())
		require.NoError(t, err)
		assert.Equal(t, inspect.SeverityOK, found.Severity)

		first.Announce(w.Context()) // what it has said is known for a minute
		report, err := second.RunDue(w.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, [2]int{1, 1}, [2]int{report.Recovered, report.Completed})
		runs := w.task("a", "1").Runs
		require.Len(t, runs, 2)
		assert.Equal(t, model.OutcomeCrashed, runs[0].Outcome)
		time.Sleep(10 * time.Second)
		second.Announce(w.Context())
		found, err = second.Recovered(w.Context())
		require.NoError(t, err)
		assert.Equal(t, inspect.SeverityWarning, found.Severity)
		assert.Contains(t, found.Message, "1 (1 of first)")
	})
}

// A takeover shows in doctor at once, although no run ends for a while.
func TestWhoDiedIsSeenAtOnce(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		said := w.store.Store.(*memstore.Store)
		dies := newMortal(w.store)
		process := func(name string, st core.Store, run func(context.Context, *core.Task[note]) error) *core.Scheduler {
			s, err := core.New(st, core.Config{Name: name, Presence: said, Recent: said, Default: core.KindConfig{Lease: 20 * time.Second}})
			require.NoError(t, err)
			core.Handle(s, "k", run)
			return s
		}
		first := process("first", dies, func(context.Context, *core.Task[note]) error {
			dies.dead.Store(true)
			return nil
		})
		second := process("second", w.store, func(context.Context, *core.Task[note]) error {
			time.Sleep(time.Minute)
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "0", Kind: "k"}, core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Second})
		_, err := second.RunDue(w.Context(), core.Scope{MaxTasks: 1}) // it has counted something a moment ago
		require.NoError(t, err)
		go func() { _, _ = first.RunDue(w.Context(), core.Scope{}) }()
		time.Sleep(30 * time.Second)
		go func() { _, _ = second.RunDue(w.Context(), core.Scope{}) }()
		time.Sleep(10 * time.Second)
		found, err := second.Recovered(w.Context())
		require.NoError(t, err)
		assert.Equal(t, inspect.SeverityWarning, found.Severity, "while the run goes on that was taken over")
		time.Sleep(2 * time.Minute)
	})
}
