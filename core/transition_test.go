package core_test

// Transitions: what is reported once a change is stored, and what a rule may refuse before.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// A rule keeps the tasks of one kind from being deleted or cancelled while they wait, and the program hears of every change.
func ExampleTransition() {
	errKept := errors.New("audits are kept")
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{
		Allow: func(_ context.Context, t core.Transition) error {
			if t.Kind == "audit" && (t.Type == model.EventDelete || t.Type == model.EventCancel) {
				return errKept
			}
			return nil
		},
		OnEvent: func(e core.Event) { fmt.Printf("%s %s: %q to %q by %q\n", e.Type, e.ID, e.From, e.Status, e.By) },
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	_, _ = s.Submit(ctx, core.NewTask{Agent: "ada", ID: "1", Kind: "audit", Delay: time.Hour}, core.NewTask{Agent: "ada", ID: "2", Kind: "other", Delay: time.Hour})
	_, err = s.Cancel(ctx, "ada", "1", core.Order{By: "ops"})
	fmt.Println(err, errors.Is(err, errKept), core.CodeOf(err))
	_, _ = s.Cancel(ctx, "ada", "2", core.Order{By: "ops"})
	// Output:
	// enqueue 1: "" to "waiting" by ""
	// enqueue 2: "" to "waiting" by ""
	// cancel of task "1" of agent "ada" (waiting) is not allowed: audits are kept true forbidden
	// cancel 2: "waiting" to "cancelled" by "ops"
}

// told are the events about a task or a target, in order: type, old status, new status, who and why.
func (w *world) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, e := range w.events {
		out = append(out, fmt.Sprintf("%s %s%s%s%s %s>%s %s %s", e.Type, e.Agent, e.ID, e.Kind, e.Key, e.From, e.Status, e.By, e.Reason))
	}
	w.events = nil
	return out
}

// Every change of a task is reported with its old and new status, who asked for it and why.
func TestEveryChangeIsReported(t *testing.T) {
	config := core.Config{Kinds: map[string]core.KindConfig{"seen": {Activity: &core.Activity{Quiet: time.Minute}}}}
	virtual(t, config, func(w *world) {
		ctx := w.Context()
		core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error {
			if t.ID == "dies" {
				return core.SkipRetry(errors.New("boom"))
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour}) // it is there: nothing changes
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Minute, OnConflict: core.OnConflictReplace})
		require.NoError(w, w.s.Pause(ctx, core.Target{Agent: "a", ID: "1"}, core.Pause{By: "eve", Reason: "why", For: time.Hour}))
		require.NoError(w, w.s.Resume(ctx, core.Target{Agent: "a", ID: "1"}))
		require.NoError(w, w.s.Resume(ctx, core.Target{Agent: "a", ID: "1"})) // it is not paused: nothing changes
		_, err := w.s.RunNow(ctx, "a", "1")
		require.NoError(w, err)
		assert.Equal(w, []string{
			"enqueue a1k >waiting  ", "replace a1k waiting>waiting  ", "pause a1 > eve why", "resume a1 >  ", "run_now a1k waiting>waiting  ",
		}, w.told())
		w.run()
		assert.Equal(w, []string{
			"dequeue a1k waiting>in_progress  ", "start a1k in_progress>in_progress  ", "finish a1k in_progress>completed  ",
		}, w.told())
		require.NoError(w, w.s.Delete(ctx, "a", "1"))
		w.submit(core.NewTask{Agent: "a", ID: "dies", Kind: "k"})
		w.runFailing()
		w.told()
		_, err = w.s.Replay(ctx, "a", "dies")
		require.NoError(w, err)
		_, err = w.s.Cancel(ctx, "a", "dies", core.Order{By: "eve", Reason: "enough"})
		require.NoError(w, err)
		_, err = w.s.Cancel(ctx, "a", "dies", core.Order{}) // it is cancelled: nothing changes
		require.NoError(w, err)
		require.NoError(w, w.s.Delete(ctx, "a", "dies"))
		_, err = w.s.Notice(ctx, "seen", core.Subject{User: "u"})
		require.NoError(w, err)
		assert.Equal(w, []string{
			"replay adiesk failed>waiting  ", "cancel adiesk waiting>cancelled eve enough", "delete adiesk cancelled>  ",
			"activity uactivity/seen/u:default:defaultseen >waiting  ",
		}, w.told())
		for _, target := range []core.Target{{Agent: "b"}, {Kind: "k"}, {Key: "p"}, {}} {
			require.NoError(w, w.s.Pause(ctx, target, core.Pause{Ahead: true}))
			require.NoError(w, w.s.Resume(ctx, target))
		}
		assert.Equal(w, []string{"pause b >  ", "resume b >  ", "pause k >  ", "resume k >  ", "pause p >  ", "resume p >  ", "pause  >  ", "resume  >  "}, w.told())
	})
}

// What duly does by itself is reported as such: a pause after failures, the hold of a limit key, children, parks and recoveries.
func TestWhatDulyChangesIsReported(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{PauseAfter: 1, Backoff: -1}}, func(w *world) {
		core.Handle(w.s, "fails", func(context.Context, *core.Task[note]) error { return errors.New("boom") })
		core.Handle(w.s, "busy", func(context.Context, *core.Task[note]) error {
			return core.RetryAfter(time.Now().Add(time.Minute), nil)
		})
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "fails", Every: time.Hour})
		w.runFailing()
		paused := w.seen(model.EventPause)
		require.Len(w, paused, 1)
		assert.Equal(w, "duly", paused[0].By)
		assert.Equal(w, "the last occurrence failed: boom", paused[0].Reason)
		w.told()
		w.submit(core.NewTask{Agent: "a", ID: "2", Kind: "busy", LimitKey: "p"})
		w.run()
		held := w.seen(model.EventHold)
		require.Len(w, held, 1)
		assert.Equal(w, "p duly", held[0].Key+" "+held[0].By)
		assert.Equal(w, time.Minute, held[0].Next.Sub(held[0].Time).Round(time.Second))
		w.told()
		w.submit(core.NewTask{Agent: "c", ID: "1", Kind: "k", Cron: "* * * * * *", Overlap: core.OverlapAllow})
		time.Sleep(time.Second)
		w.run()
		assert.Contains(w, w.told()[1:], fmt.Sprintf("enqueue c1@%dk >waiting duly occurrence of 1", time.Now().UnixMilli()))
		w.submit(core.NewTask{Agent: "d", ID: "1", Kind: "unknown"})
		w.run()
		parked := w.seen(model.EventPark)
		require.Len(w, parked, 1)
		assert.Equal(w, []any{1, "d", "1", "no handler of its kind"}, []any{parked[0].Count, parked[0].Agent, parked[0].ID, parked[0].Reason})
	})
}

// A rule is asked before anything is written, with the status that the task has, and its refusal has a code and says why.
func TestARuleRefusesAnyChange(t *testing.T) {
	t.Parallel()
	var spy storetest.Spy
	spy.Store = memstore.New(memstore.Config{})
	var wrote []string
	spy.Before = func(_ context.Context, verb string) error {
		if !slices.Contains([]string{"Get", "List", "Stats", "Holds", "Look"}, verb) {
			wrote = append(wrote, verb)
		}
		return nil
	}
	kinds := map[string]core.KindConfig{"seen": {Activity: &core.Activity{}}}
	free, err := core.New(&spy, core.Config{Kinds: kinds})
	require.NoError(t, err)
	core.Handle(free, "k", func(context.Context, *core.Task[note]) error { return core.SkipRetry(errors.New("boom")) })
	ctx := t.Context()
	_, err = free.Submit(ctx, core.NewTask{Agent: "a", ID: "dead", Kind: "k"}, core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour})
	require.NoError(t, err)
	_, err = free.RunDue(ctx, core.Scope{})
	require.Error(t, err)
	_, err = free.Notice(ctx, "seen", core.Subject{User: "u"})
	require.NoError(t, err)
	var asked []core.Transition
	no := errors.New("the freeze")
	s, err := core.New(&spy, core.Config{Kinds: kinds, Allow: func(_ context.Context, t core.Transition) error {
		asked = append(asked, t)
		return no
	}})
	require.NoError(t, err)
	replaced := core.NewTask{Agent: "a", ID: "1", Kind: "k", OnConflict: core.OnConflictReplace}
	for want, do := range map[string]func() error{
		"enqueue > a/new":       func() error { _, err := s.Submit(ctx, core.NewTask{Agent: "a", ID: "new", Kind: "k"}); return err },
		"enqueue > a/":          func() error { _, err := s.Submit(ctx, core.NewTask{Agent: "a", Kind: "k"}); return err },
		"replace waiting> a/1":  func() error { _, err := s.Submit(ctx, replaced); return err },
		"activity waiting> u/":  func() error { _, err := s.Notice(ctx, "seen", core.Subject{User: "u"}); return err },
		"run_now waiting> a/1":  func() error { _, err := s.RunNow(ctx, "a", "1"); return err },
		"cancel waiting> a/1":   func() error { _, err := s.Cancel(ctx, "a", "1", core.Order{By: "duly"}); return err },
		"delete waiting> a/1":   func() error { return s.Delete(ctx, "a", "1") },
		"replay failed> a/dead": func() error { _, err := s.Replay(ctx, "a", "dead"); return err },
		"pause waiting> a/1":    func() error { return s.Pause(ctx, core.Target{Agent: "a", ID: "1"}, core.Pause{}) },
		"resume waiting> a/1":   func() error { return s.Resume(ctx, core.Target{Agent: "a", ID: "1"}) },
		"pause > a/":            func() error { return s.Pause(ctx, core.Target{Agent: "a"}, core.Pause{}) },
		"resume > /":            func() error { return s.Resume(ctx, core.Target{}) },
	} {
		asked, wrote = nil, nil
		err := do()
		var veto *core.VetoError
		require.ErrorAs(t, err, &veto, want)
		assert.ErrorIs(t, err, no)
		assert.Equal(t, core.CodeForbidden, core.CodeOf(err))
		assert.ErrorContains(t, err, "is not allowed: the freeze")
		assert.Empty(t, wrote, want)
		require.Len(t, asked, 1, want)
		id := asked[0].ID
		if len(id) > 4 {
			id = "" // it is made
		}
		assert.Equal(t, want, fmt.Sprintf("%s %s> %s/%s", asked[0].Type, asked[0].From, asked[0].Agent, id))
	}
	asked = nil
	kept, err := s.Submit(ctx, core.NewTask{Agent: "a", ID: "1", Kind: "k"})
	require.NoError(t, err, "it exists, and nothing changes")
	assert.False(t, kept[0].Created)
	assert.Empty(t, asked)
	_, err = s.Submit(ctx, core.NewTask{Agent: "b", ID: "2", Kind: "k"}, core.NewTask{Agent: "a", ID: "1", Kind: "k"})
	require.Error(t, err, "all or none")
}
