package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// between makes something happen once, between a read of the store and what is decided by it.
func (w *world) between(happens func()) {
	reads := 0
	w.store.after = func(verb string) {
		if verb == "read" {
			if reads++; reads == 1 {
				happens()
			}
		}
	}
}

// ordered are the commands that are decided by how task a/1 is.
var ordered = map[string]func(w *world) error{
	"cancel": func(w *world) error { _, err := w.s.Cancel(w.Context(), "a", "1", core.Order{}); return err },
	"run":    func(w *world) error { _, err := w.s.RunNow(w.Context(), "a", "1"); return err },
	"replay": func(w *world) error { _, err := w.s.Replay(w.Context(), "a", "1"); return err },
	"delete": func(w *world) error { return w.s.Delete(w.Context(), "a", "1") },
}

// What an operator asks for while the task changes is decided by how the task is then: no task that exists is not found.
func TestCommandsBesideTheEndOfARun(t *testing.T) {
	ends := map[string]struct {
		task   core.NewTask
		status core.Status
	}{
		"completes": {core.NewTask{}, core.StatusCompleted},
		"fails":     {core.NewTask{Payload: note{Text: "fail"}}, core.StatusFailed},
		"waits":     {core.NewTask{Every: time.Hour}, core.StatusWaiting},
	}
	commands := map[string]struct {
		do   func(w *world) error
		want map[string]string // what it says of a task that has ended; nothing: it is done
	}{
		"cancel": {ordered["cancel"], map[string]string{"completes": "is completed", "fails": "is failed"}},
		"run": {
			ordered["run"],
			map[string]string{"completes": "is completed: replay it if it failed, or submit it again", "fails": "is failed: replay it"},
		},
		"replay": {
			ordered["replay"],
			map[string]string{"completes": "is completed: only failed tasks", "waits": "is waiting: only failed tasks"},
		},
		"delete": {ordered["delete"], nil},
	}
	for name, end := range ends {
		for command, c := range commands {
			t.Run(command+" as it "+name, func(t *testing.T) {
				virtual(t, core.Config{}, func(w *world) {
					core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error {
						if t.Payload.Text == "fail" {
							return core.SkipRetry(errBoom)
						}
						return nil
					})
					task := end.task
					task.Agent, task.ID, task.Kind = "a", "1", "k"
					w.submit(task)
					if command == "replay" { // a dead task that is replayed by somebody else, and ends
						w.store.after = nil
						w.died()
						w.between(func() { w.replayed(task) })
					} else {
						w.between(func() { _, _ = w.s.RunDue(w.Context(), core.Scope{}) })
					}
					err := c.do(w)
					if want := c.want[name]; want != "" {
						require.ErrorContains(t, err, want)
						assert.Equal(t, core.CodeConflict, core.CodeOf(err))
						assert.Equal(t, end.status, w.task("a", "1").Status)
						return
					}
					require.NoError(t, err)
				})
			})
		}
	}
}

// died makes the due task of agent a dead, as if its handler had failed.
func (w *world) died() {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	claims, err := w.store.Store.Claim(w.Context(), []store.ClaimRequest{{
		Partition: store.PartitionOf("a", w.store.Partitions()), Nonce: "dies-0123456789a", Kinds: []string{"k"}, Limit: 1, Lease: time.Minute,
	}})
	require.NoError(w, err)
	c := claims[0].Tasks[0]
	out, err := w.store.Store.Settle(w.Context(), []store.Settlement{{Run: c.Run, Verb: store.VerbFail, Kind: "k"}})
	require.NoError(w, err)
	require.NoError(w, out[0].Err)
}

// replayed makes a dead task one that began anew, and runs it.
func (w *world) replayed(task core.NewTask) {
	w.Helper()
	task.OnConflict = core.OnConflictReplace
	_, err := w.s.Submit(w.Context(), task)
	require.NoError(w, err)
	_, _ = w.s.RunDue(w.Context(), core.Scope{})
}

// A task that changes for ever keeps nobody for ever: the command gives up, and says that the task has changed.
func TestCommandsGiveUp(t *testing.T) {
	for name, do := range ordered {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
				if name == "replay" {
					w.died()
				}
				w.store.deaf = true
				before := w.store.count("control")
				err := do(w)
				require.ErrorIs(t, err, store.ErrChanged)
				assert.Equal(t, core.CodeConflict, core.CodeOf(err))
				assert.LessOrEqual(t, w.store.count("control")-before, 10)
			})
		})
	}
}
