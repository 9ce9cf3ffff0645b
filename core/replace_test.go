package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

func (w *world) submitOne(task core.NewTask) core.Submitted {
	w.Helper()
	out, err := w.s.Submit(w.Context(), task)
	require.NoError(w, err)
	return out[0]
}

func TestConflicts(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var texts []string
		core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error { texts = append(texts, t.Payload.Text); return nil })
		first := core.NewTask{Agent: "a", ID: "1", Kind: "k", Payload: note{Text: "first"}, Every: time.Hour}
		second := first
		second.Payload = note{Text: "second"}
		w.submit(first)
		w.runUntil(30 * time.Minute)

		second.OnConflict = core.OnConflictKeep
		assert.Equal(t, core.Submitted{
			Agent: "a", ID: "1", Kind: "k", Status: core.StatusWaiting, Due: w.task("a", "1").Due, Differs: true,
		}, w.submitOne(second))
		second.OnConflict = core.OnConflictFail
		_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "b", Kind: "k"}, second)
		assert.Equal(t, core.CodeConflict, core.CodeOf(err))
		assert.ErrorContains(t, err, `task "1" of agent "a" already exists`)
		tasks, _, err := w.s.Tasks(w.Context(), core.List{Agent: "b"})
		require.NoError(t, err)
		assert.Empty(t, tasks, "all or nothing")
		assert.Equal(t, "first", texts[0])

		second.OnConflict, second.Delay = core.OnConflictReplace, 10*time.Minute
		got := w.submitOne(second)
		assert.True(t, got.Replaced)
		assert.False(t, got.Created)
		assert.Equal(t, time.Now().Add(10*time.Minute).UnixMilli(), got.Due.UnixMilli())
		w.runUntil(15 * time.Minute)
		assert.Equal(t, []string{"first", "second"}, texts)
		assert.Equal(t, int64(2), w.task("a", "1").RunCount, "history is kept")

		_, err = w.s.Submit(w.Context(), core.NewTask{Agent: "a", Kind: "k", OnConflict: "x"})
		assert.ErrorContains(t, err, `on_conflict must be one of`)
	})
}

// What is applied again and again, as a file of tasks is at each start, changes nothing if it is the same.
func TestReplacingARecurringTaskByItself(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, OnConflict: core.OnConflictReplace}
		w.submit(task)
		w.runUntil(30 * time.Minute)
		due := w.task("a", "1").NextRun
		got := w.submitOne(task)
		assert.False(t, got.Created || got.Replaced)
		assert.Equal(t, due, w.task("a", "1").NextRun)
		task.Every = 2 * time.Hour
		assert.True(t, w.submitOne(task).Replaced)
		once := core.NewTask{Agent: "a", ID: "2", Kind: "k", Delay: time.Hour, OnConflict: core.OnConflictReplace}
		w.submit(once)
		once.Delay = 2 * time.Hour
		assert.True(t, w.submitOne(once).Replaced, "its time is not part of what is compared")
	})
}

func TestReplaceDoesNotDisturbARun(t *testing.T) {
	for name, outcome := range map[string]error{"completes": nil, "fails": core.SkipRetry(errBoom), "snoozes": core.Snooze(time.Minute)} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				var texts []string
				core.Handle(w.s, "k", func(ctx context.Context, t *core.Task[note]) error {
					texts = append(texts, t.Payload.Text)
					if len(texts) > 1 {
						return nil
					}
					out, err := w.s.Submit(ctx, core.NewTask{
						Agent: "a", ID: "1", Kind: "k", Payload: note{Text: "new"}, Delay: time.Hour, OnConflict: core.OnConflictReplace, Group: "h",
					})
					require.NoError(w, err)
					assert.True(w, out[0].Replaced)
					assert.Equal(w, core.StatusInProgress, out[0].Status)
					time.Sleep(10 * time.Minute)
					return outcome
				})
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Payload: note{Text: "old"}, Group: "g"})
				_, _ = w.s.RunDue(w.Context(), core.Scope{})
				info := w.task("a", "1")
				assert.Equal(t, core.StatusWaiting, info.Status)
				assert.Equal(t, w.begun.Add(time.Hour).UnixMilli(), info.NextRun.UnixMilli(), "when the new definition said")
				assert.Equal(t, int64(1), info.RunCount)
				assert.Equal(t, 1, info.Attempt)
				w.runUntil(2 * time.Hour)
				assert.Equal(t, []string{"old", "new"}, texts)
				info = w.task("a", "1")
				assert.Equal(t, core.StatusCompleted, info.Status)
				assert.Equal(t, int64(2), info.RunCount)
				_, err := w.s.Group(w.Context(), "a", "g")
				assert.ErrorIs(t, err, core.ErrNotFound)
				h, err := w.s.Group(w.Context(), "a", "h")
				require.NoError(t, err)
				assert.Equal(t, model.GroupCounts{Completed: 1}, h)
			})
		})
	}
}

func TestReplaceAFinishedTaskBeginsAnew(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", OnConflict: core.OnConflictReplace}
		assert.True(t, w.submitOne(task).Created)
		w.run()
		assert.True(t, w.submitOne(task).Created)
		w.run()
		info := w.task("a", "1")
		assert.Equal(t, core.StatusCompleted, info.Status)
		assert.Equal(t, int64(2), info.RunCount, "with its history")
	})
}

// A replacement that meets a change is made again for the task as it is then.
func TestReplaceTriesAgain(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour})
		reads := 0
		w.store.after = func(verb string) {
			if verb != "read" {
				return
			}
			if reads++; reads == 1 { // between the read and the submit the task runs
				_, err := w.s.RunDue(w.Context(), core.Scope{})
				require.NoError(w, err)
			}
		}
		got := w.submitOne(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 2 * time.Hour, OnConflict: core.OnConflictReplace})
		assert.True(t, got.Replaced)
		info := w.task("a", "1")
		assert.Equal(t, 2*time.Hour, info.Every)
		assert.Equal(t, int64(1), info.RunCount, "the run in between is not forgotten")
	})
}

func TestUniqueKey(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		one := w.submitOne(core.NewTask{Agent: "a", Kind: "k", UniqueKey: "order 17"})
		again := w.submitOne(core.NewTask{Agent: "a", Kind: "k", UniqueKey: "order 17"})
		other := w.submitOne(core.NewTask{Agent: "a", Kind: "k", UniqueKey: "order 18"})
		assert.True(t, one.Created)
		assert.False(t, again.Created)
		assert.Equal(t, one.ID, again.ID)
		assert.NotEqual(t, one.ID, other.ID)
		_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", ID: "x", Kind: "k", UniqueKey: "y"})
		assert.ErrorContains(t, err, "unique_key excludes id")
	})
}

func TestExplain(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		release := make(chan struct{})
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		core.Handle(w.s, "slow", func(context.Context, *core.Task[note]) error { <-release; return nil })
		core.Handle(w.s, "bad", func(context.Context, *core.Task[note]) error { return errBoom })
		because := func(agent string) model.Because {
			e, err := w.s.Explain(w.Context(), agent, "1")
			require.NoError(w, err)
			require.NotEmpty(w, e.Reasons)
			return e.Reasons[0]
		}
		w.submit(
			core.NewTask{Agent: "done", ID: "1", Kind: "k"}, core.NewTask{Agent: "later", ID: "1", Kind: "k", Delay: time.Hour},
			core.NewTask{Agent: "running", ID: "1", Kind: "slow"}, core.NewTask{Agent: "stranger", ID: "1", Kind: "unknown"},
			core.NewTask{Agent: "retry", ID: "1", Kind: "bad", Backoff: time.Hour},
		)
		done := make(chan struct{})
		go func() { _, _ = w.s.RunDue(w.Context(), core.Scope{}); close(done) }()
		time.Sleep(time.Second)
		w.submit(core.NewTask{Agent: "fresh", ID: "1", Kind: "k"})
		for agent, want := range map[string]struct {
			code model.BecauseCode
			text string
		}{
			"done":     {model.BecauseFinished, "it completed at 2000-01-01T00:00:00.000Z"},
			"later":    {model.BecauseNotDue, "it is not due until 2000-01-01T01:00:00.000Z (in 59m59s)"},
			"running":  {model.BecauseRunning, "; its lease (fence "},
			"stranger": {model.BecauseNoHandler, `has a handler for the kind "unknown"`},
			"retry":    {model.BecauseRetry, "attempt 1 failed; the next is due at 2000-01-01T"},
			"fresh":    {model.BecauseWaiting, "it has been due since 2000-01-01T00:00:01.000Z (0s), and no process has claimed it yet; 0 others are ahead"},
		} {
			got := because(agent)
			assert.Equal(t, want.code, got.Code, agent)
			assert.Contains(t, got.Text, want.text)
		}
		_, err := w.s.Cancel(w.Context(), "running", "1", core.Order{By: "ann"})
		require.NoError(t, err)
		assert.Equal(t, model.BecauseEnding, because("running").Code)
		close(release)
		<-done
		_, err = w.s.Explain(w.Context(), "nobody", "1")
		assert.ErrorIs(t, err, core.ErrNotFound)
		_, err = w.s.Explain(w.Context(), "", "1")
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
	})
}

// Why a recurring task comes later than its interval says: since when it fails, and what that did.
func TestExplainTellsWhatFails(t *testing.T) {
	for name, c := range map[string]struct {
		task  core.NewTask
		runs  int
		fails func(n int) error
		code  model.BecauseCode
		want  []string
	}{
		"once": {
			core.NewTask{Every: time.Minute},
			1, func(int) error { return errBoom }, model.BecauseFailing,
			[]string{"its last occurrence failed, it has been failing since 2000-01-01T00:00:00.000Z, so its interval is stretched from 1m to 2m; it is due at 2000-01-01T00:02:00.000Z (in 2m0s): boom"},
		},
		"again": {
			core.NewTask{Every: 30 * time.Second},
			4, func(n int) error {
				if n == 1 {
					return nil
				}
				return errBoom
			}, model.BecauseFailing,
			[]string{"its last 3 occurrences failed, it has been failing since 2000-01-01T00:00:30.000Z, so its interval is stretched from 30s to 4m;"},
		},
		"for longer than is remembered": {
			core.NewTask{Every: 10 * time.Minute, PauseAfter: -1},
			30, func(int) error { return errBoom }, model.BecauseFailing,
			[]string{"its last 30 occurrences failed, it was already failing at 2000-01-01T01:40:00.000Z; it is due at "},
		},
		"interval of its own": {
			core.NewTask{Every: time.Hour}, 2, func(n int) error {
				if n == 1 {
					return core.NextIn(10 * time.Second)
				}
				return errBoom
			}, model.BecauseFailing, []string{"stretched from 10s to 20s"},
		},
		"cron": {
			core.NewTask{Cron: "0 * * * *"},
			2, func(int) error { return errBoom }, model.BecauseFailing,
			[]string{"its last 2 occurrences failed, it has been failing since 2000-01-01T01:00:00.000Z; it is due at 2000-01-01T03:00:00.000Z (in 1h0m0s): boom"},
		},
		"well again": {
			core.NewTask{Every: time.Minute}, 2, func(n int) error {
				if n == 1 {
					return errBoom
				}
				return nil
			}, model.BecauseNotDue, []string{"it is not due until"},
		},
		"told to wait": {
			core.NewTask{Every: time.Minute},
			1, func(int) error { return core.RetryAfter(time.Now().Add(time.Hour), errBoom) }, model.BecauseRetry,
			[]string{"its handler asked to be called again later, once, which is not charged; it is due at 2000-01-01T01:00:0", ": boom"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				n := 0
				core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { n++; return c.fails(n) })
				c.task.Agent, c.task.ID, c.task.Kind = "a", "1", "k"
				w.submit(c.task)
				for n < c.runs {
					report, _ := w.s.RunDue(w.Context(), core.Scope{})
					if n < c.runs {
						time.Sleep(time.Until(report.NextDueAt))
					}
				}
				e, err := w.s.Explain(w.Context(), "a", "1")
				require.NoError(t, err)
				require.Len(t, e.Reasons, 1)
				assert.Equal(t, c.code, e.Reasons[0].Code)
				for _, want := range c.want {
					assert.Contains(t, e.Reasons[0].Text, want)
				}
			})
		})
	}
}

func TestAgentsAndJobs(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.submit(
			core.NewTask{Agent: "a", ID: "job", Kind: "k", Every: time.Hour}, core.NewTask{Agent: "a", ID: "once", Kind: "k", Delay: time.Hour},
			core.NewTask{Agent: "b", ID: "job", Kind: "k", Cron: "@daily"},
		)
		jobs, _, err := w.s.Tasks(w.Context(), core.List{Agent: "a", Jobs: true})
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		assert.Equal(t, "job", jobs[0].ID)
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "b"}, core.Pause{}))
		agents, next, err := w.s.Agents(w.Context(), 0, "")
		require.NoError(t, err)
		assert.Empty(t, next)
		now := time.Now().Truncate(time.Millisecond).UTC()
		assert.ElementsMatch(t, []model.AgentStats{
			{Agent: "a", Live: 2, Due: now}, {Agent: "b", Live: 1, Due: now.Add(24 * time.Hour), Paused: true},
		}, agents)
		_, _, err = w.s.Agents(w.Context(), -1, "")
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
		require.NoError(t, w.s.Pause(w.Context(), core.Target{}, core.Pause{By: "ann", Reason: "moving", For: time.Minute}))
		pauses, next, err := w.s.Pauses(w.Context(), 0, "")
		require.NoError(t, err)
		assert.Empty(t, next)
		assert.ElementsMatch(t, []model.PauseInfo{
			{Target: core.Target{Agent: "b"}, Since: now}, {Order: core.Order{By: "ann", Reason: "moving"}, Since: now, Until: now.Add(time.Minute)},
		}, pauses)
		_, _, err = w.s.Pauses(w.Context(), 1001, "")
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
	})
}
