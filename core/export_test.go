package core_test

// Exports and imports: an agent that is forgotten and imported is what it was.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// every sort of schedule, none of them due within an hour.
func varied(n int) []core.NewTask {
	var tasks []core.NewTask
	for i := range n {
		t := core.NewTask{
			Agent: "a", ID: fmt.Sprintf("t%03d", i), Kind: "k", Payload: json.RawMessage(fmt.Sprintf(`{"n": %d, "text": "<&>"}`, i)),
			Labels: map[string]string{"tier": "gold"}, Level: core.Level(1 + i%3),
		}
		switch i % 6 {
		case 0:
			t.At = time.Now().Add(2*time.Hour + time.Duration(i)*time.Second + 7*time.Millisecond)
		case 1:
			t.Delay, t.Group, t.MaxAttempts, t.Timeout = 3*time.Hour, "g", 7, -1
		case 2:
			t.Every, t.Delay, t.Jitter = time.Hour, 90*time.Minute, time.Minute
		case 3:
			t.Every, t.From, t.Delay, t.Overlap, t.PauseAfter = 2*time.Hour, core.FromStart, 2*time.Hour, core.OverlapQueueOne, -1
		case 4:
			t.Cron, t.Zone, t.Jitter, t.Misfire, t.Urgent = "30 4 * * *", core.ZoneOfAgent, 5*time.Minute, core.MisfireAll, true
		default:
			t.Manual = true
		}
		t.Paused = i%50 == 0
		if t.Paused {
			t.PausedReason = "because"
		}
		tasks = append(tasks, t)
	}
	return tasks
}

// export is what there is of agent a.
func (w *world) export() string {
	w.Helper()
	var out bytes.Buffer
	n, err := w.s.Export(w.Context(), "a", &out)
	require.NoError(w, err)
	assert.Equal(w, strings.Count(out.String(), "\n"), n+1)
	return out.String()
}

// sorted are lines in an order that does not depend on where tasks wait.
func sorted(lines string) []string {
	return slices.Sorted(strings.SplitSeq(strings.TrimSpace(lines), "\n"))
}

func (w *world) imports(as, lines string) operate.Imported {
	w.Helper()
	done, err := w.s.Import(w.Context(), as, strings.NewReader(lines))
	require.NoError(w, err)
	return done
}

var seesActivity = core.Config{Kinds: map[string]core.KindConfig{"seen": {Activity: &core.Activity{Quiet: 2 * time.Hour, MaxWait: 9 * time.Hour}}}}

// Forgotten and imported, an agent has the same tasks at the same times: what is exported then is the same, byte by byte.
func TestExportAndImport(t *testing.T) {
	virtual(t, seesActivity, func(w *world) {
		ctx := w.Context()
		_, err := w.s.SetProfile(ctx, core.Profile{
			Agent: "a", Zone: "Asia/Tokyo", Quiet: []core.QuietHours{{From: "10:00", To: "13:00"}}, Labels: map[string]string{"l": "v"},
		})
		require.NoError(w, err)
		w.submit(varied(300)...)
		for i := range 6 {
			_, err := w.s.Notice(ctx, "seen", core.Subject{User: fmt.Sprint("u", i), Agent: "a"})
			require.NoError(w, err)
		}
		activity := core.Target{Agent: "a", ID: "activity/seen/u1:default:a"}
		require.NoError(w, w.s.Pause(ctx, activity, core.Pause{By: "eve", Until: time.Now().Add(24 * time.Hour)}))
		require.NoError(w, w.s.Pause(ctx, core.Target{Agent: "a"}, core.Pause{By: "eve", Reason: "moves", Until: time.Now().Add(48 * time.Hour)}))
		time.Sleep(time.Minute)
		before, tasks := w.export(), w.all("a")
		require.Len(w, tasks, 306)
		assert.Contains(w, before, `"text":"<&>"`)

		_, err = w.s.Forget(ctx, "a", nil)
		require.NoError(w, err)
		assert.Equal(w, operate.Imported{New: 308}, w.imports("", before))
		assert.Equal(w, sorted(before), sorted(w.export()))
		for i, now := range w.all("a") {
			was := tasks[i]
			assert.Equal(w, was.NextRun, now.NextRun, was.ID)
			assert.Equal(w, was.Due, now.Due, was.ID)
			require.Len(w, now.Pauses, len(was.Pauses), was.ID)
			for p := range now.Pauses {
				was.Pauses[p].Since = now.Pauses[p].Since
			}
			assert.Equal(w, was.Pauses, now.Pauses)
			assert.Equal(w, was.Labels, now.Labels)
		}
		assert.Equal(w, operate.Imported{Same: 308}, w.imports("", before), "again it changes nothing")
		assert.Equal(w, sorted(before), sorted(w.export()))

		t001 := w.task("a", "t001")
		one := t001.Definition()
		one.OnConflict, one.Delay, one.Kind = core.OnConflictReplace, 3*time.Hour, "other"
		w.submit(one)
		require.NoError(w, w.s.Resume(ctx, core.Target{Agent: "a", ID: "t000"}))
		assert.Equal(w, operate.Imported{Same: 308, Differs: 1}, w.imports("", before))
		assert.Equal(w, "other", w.task("a", "t001").Kind, "what exists stays as it is")
		assert.Len(w, w.task("a", "t000").Pauses, 1, "and what was resumed stays so, but for the pause of the agent")
	})
}

// all are the live tasks of an agent by id.
func (w *world) all(agent string) []core.TaskInfo {
	w.Helper()
	byID := map[string]core.TaskInfo{}
	for cursor := ""; ; {
		page, next, err := w.s.Tasks(w.Context(), core.List{Agent: agent, Status: []core.Status{core.StatusWaiting, core.StatusInProgress}, Cursor: cursor})
		require.NoError(w, err)
		for _, t := range page {
			byID[t.ID] = t
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	var out []core.TaskInfo
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		out = append(out, byID[id])
	}
	return out
}

// Under another name the tasks are another agent's, but for those that only the activity of a subject brings to life.
func TestImportForAnotherAgent(t *testing.T) {
	virtual(t, seesActivity, func(w *world) {
		w.submit(varied(12)...)
		_, err := w.s.Notice(w.Context(), "seen", core.Subject{User: "u", Agent: "a"})
		require.NoError(w, err)
		_, err = w.s.SetProfile(w.Context(), core.Profile{Agent: "a", Zone: "Asia/Tokyo"})
		require.NoError(w, err)
		done := w.imports("b", w.export())
		assert.Equal(w, 13, done.New)
		require.Len(w, done.Errors, 1)
		require.ErrorContains(w, done.Errors[0].Err, `activity is that of a subject of the agent "a"`)
		profile, err := w.s.Profile(w.Context(), "b")
		require.NoError(w, err)
		assert.Equal(w, "Asia/Tokyo", profile.Zone)
		a, b := w.all("a"), w.all("b")
		require.Len(w, b, 12)
		for i := range b {
			assert.Equal(w, a[i+1].ID, b[i].ID)
			assert.Equal(w, a[i+1].NextRun, b[i].NextRun, "the jitter of the first occurrence comes with it")
		}
	})
}

// A state comes with its task: attempts, failures, an interval and a checkpoint, and when it is due next.
// Exports of versions that had two labels as fields of a task are imported with them.
func TestImportReadsFormerLabels(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for id, task := range map[string]string{
			"1": `"mem_cube_id":"c","user_name":"ann","labels":{"tier":"gold"}`,
			"2": `"user_name":"ann"`,
		} {
			line := `{"task":{"agent_id":"a","id":"` + id + `","kind":"k",` + task + `},"due_at":"2030-01-02T15:04:05Z"}`
			done, err := w.s.Import(w.Context(), "", strings.NewReader(line))
			require.NoError(w, err)
			require.Equal(w, 1, done.New, done.Errors)
		}
		first, err := w.s.Task(w.Context(), "a", "1")
		require.NoError(w, err)
		assert.Equal(w, map[string]string{"mem_cube_id": "c", "user_name": "ann", "tier": "gold"}, first.Labels)
		second, err := w.s.Task(w.Context(), "a", "2")
		require.NoError(w, err)
		assert.Equal(w, map[string]string{"user_name": "ann"}, second.Labels)
	})
}

func TestImportGoesOn(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		answers := map[string]error{
			"retried": errors.New("boom"), "failing": errors.New("boom"), "slower": core.NextIn(5 * time.Hour), "yields": core.Yield(map[string]int{"at": 7}, time.Hour),
		}
		checkpoint := ""
		core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error {
			var at map[string]int
			if some, err := t.Checkpoint(&at); some && err == nil {
				checkpoint = fmt.Sprint(at["at"])
			}
			return answers[t.ID]
		})
		w.submit(core.NewTask{Agent: "a", ID: "retried", Kind: "k", Backoff: 10 * time.Hour}, core.NewTask{Agent: "a", ID: "yields", Kind: "k"},
			core.NewTask{Agent: "a", ID: "failing", Kind: "k", Every: time.Hour}, core.NewTask{Agent: "a", ID: "slower", Kind: "k", Every: time.Hour})
		w.runFailing()
		before, was := w.export(), w.all("a")
		_, err := w.s.Forget(w.Context(), "a", nil)
		require.NoError(w, err)
		w.imports("", before)
		assert.Equal(w, sorted(before), sorted(w.export()))
		now := w.all("a")
		for i := range was {
			assert.Equal(w, was[i].NextRun, now[i].NextRun, was[i].ID)
			assert.Equal(w, was[i].Attempt, now[i].Attempt, was[i].ID)
			assert.Equal(w, was[i].ConsecutiveFailures, now[i].ConsecutiveFailures, was[i].ID)
		}
		answers["yields"] = nil
		_, _ = w.s.RunDue(w.Context(), core.Scope{})
		time.Sleep(time.Hour)
		_, _ = w.s.RunDue(w.Context(), core.Scope{})
		assert.Equal(w, "7", checkpoint)
	})
}

// What is wrong is refused line by line, before it is written; all else is stored, also behind it.
func TestImportRefusesLines(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := func(fields string) string { return `{"task": {"kind": "k", "id": "x", "delay": "1h"` + fields + `}}` }
		wrong := []string{
			`{`, `[]`, `{"task": {"kind": "k"}, "task": {}}`, `{"tusk": 1}`, `{"agent_id": "a", "profile": {"zone": "Mars"}}`,
			`{"agent_id": 7}`, `{"agent_id": "a", "pause": {"until": "soon"}}`, `{"agent_id": "a", "pause": {"for": "1h"}}`,
			`{"agent_id": "a", "pause": {"reason": "` + strings.Repeat("x", 2000) + `"}}`,
			`{"task": {"kind": "k"}}`, task(`, "level": 9`), task(`, "on_conflict": "replace"`), task(`, "cron": "@daily"`),
			`{"task": {"kind": "k", "id": "x"}, "due_at": 7}`, `{"task": {"kind": "k", "id": "x"}, "due_at": "9999-01-01T00:00:00Z"}`,
			`{"task": {"kind": "k", "id": "x"}, "attempt": -1}`, `{"task": {"kind": "k", "id": "x"}, "interval": "1ms"}`,
			`{"task": {"kind": "k", "id": "x"}, "later": 1}`, `{"task": {"kind": "k", "id": "x"}, "pause": 1}`,
			`{"task": {"kind": "k", "id": "x"}, "activity": {"delay": "1h"}}`, `{"task": {"kind": "k", "id": "x"}, "activity": {"dilay": "1h"}}`,
			`{"task": {"kind": "k", "id": "x", "payload": "` + strings.Repeat("x", 800<<10) + `"}}`,
		}
		lines := []string{`{"agent_id": "a"}`, task(`, "tags": ["first"]`), ""}
		lines = append(lines, wrong...)
		lines = append(lines, `{"task": {"kind": "k", "id": "last", "manual": true}}`)
		done := w.imports("", strings.Join(lines, "\n"))
		assert.Equal(w, 2, done.New)
		assert.Equal(w, len(wrong), done.Refused)
		for i, e := range done.Errors {
			assert.Equal(w, i+4, e.Line, e.Error())
			assert.Equal(w, core.CodeInvalid, core.CodeOf(e.Err), e.Error())
		}
		assert.Equal(w, []string{"first"}, w.task("a", "x").Tags)
		w.task("a", "last")
		_, err := w.s.Profile(w.Context(), "a")
		require.ErrorIs(w, err, core.ErrNotFound)
		assert.Equal(w, "line 4: line is not valid JSON: unexpected end of JSON input", done.Errors[0].Error())

		assert.Equal(w, 1, w.imports("", "{}").Refused)
		assert.Equal(w, 1, w.imports("", task("")).Refused, "no agent")
		many := strings.Repeat("\n", operate.MaxImport) + task("")
		_, err = w.s.Import(w.Context(), "a", strings.NewReader(many))
		require.ErrorContains(w, err, "lines are more than 100000")
		_, err = w.s.Import(w.Context(), "\x00", strings.NewReader(""))
		require.Equal(w, core.CodeInvalid, core.CodeOf(err))
		_, err = w.s.Export(w.Context(), "nobody", &bytes.Buffer{})
		require.ErrorIs(w, err, core.ErrNotFound)
	})
}

// A limit refuses the lines that are too much, and a store that is away ends the import: done again it completes it.
func TestImportThatFails(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.submit(varied(250)...)
		lines := w.export()
		boom := errors.New("boom")
		w.store.fail = func(verb string, n int) error {
			if verb == "submit" && n == 3 {
				return &store.Error{Verb: "submit", Err: boom}
			}
			return nil
		}
		done, err := w.s.Import(w.Context(), "b", strings.NewReader(lines))
		require.ErrorIs(w, err, boom)
		assert.Equal(w, operate.Imported{New: 100}, done)
		assert.Equal(w, operate.Imported{New: 150, Same: 100}, w.imports("b", lines))
	})
}

// It is the agent that the tasks are imported to whose rights are asked for.
func TestImportAsksForRights(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.submit(varied(6)...)
		require.NoError(w, w.s.Pause(w.Context(), core.Target{Agent: "a"}, core.Pause{}))
		lines := w.export()
		ctx := core.WithPrincipal(w.Context(), core.Principal{Rights: core.AuthorizerFunc(func(_ context.Context, _ core.Principal, what core.Access) error {
			if what.Agent != "b" || what.Action != model.ActionSubmit {
				return errors.New("only b's tasks")
			}
			return nil
		})})
		done, err := w.s.Import(ctx, "", strings.NewReader(lines))
		require.NoError(w, err)
		assert.Equal(w, 7, done.Refused)
		assert.Equal(w, core.CodeForbidden, core.CodeOf(done.Errors[0].Err))
		done, err = w.s.Import(ctx, "b", strings.NewReader(lines))
		require.NoError(w, err)
		assert.Equal(w, 6, done.New)
		assert.Equal(w, 1, done.Refused, "the pause needs more")
	})
}
