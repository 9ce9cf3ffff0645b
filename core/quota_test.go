package core_test

// Quotas: what an agent may store, whoever stores it for the agent.

import (
	"context"
	"encoding/json"
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
	"github.com/seed-6f6f2c11/duly/core/store"
)

// asAgent is a context of a caller that may do everything for the agent a, and nothing for all.
func asAgent(ctx context.Context) context.Context {
	return core.WithPrincipal(ctx, core.Principal{Name: "a", Rights: core.AuthorizerFunc(func(_ context.Context, _ core.Principal, what core.Access) error {
		if what.Agent != "a" {
			return errors.New("not yours")
		}
		return nil
	})})
}

// refusal submits tasks, which have to be refused by a quota, and returns the refusal.
func (w *world) refusal(ctx context.Context, part string, tasks ...core.NewTask) string {
	w.Helper()
	_, err := w.s.Submit(ctx, tasks...)
	require.Error(w, err)
	require.Equal(w, model.CodeQuota, core.CodeOf(err), "%v", err)
	require.Contains(w, err.Error(), part)
	return err.Error()
}

func TestQuotasRefuseWhatTheyNeverAllow(t *testing.T) {
	for name, c := range map[string]struct {
		quota store.Quota
		right []core.NewTask
		wrong map[string]core.NewTask
	}{
		"kinds": {
			store.Quota{Kinds: []string{"k", "report-*"}},
			[]core.NewTask{{}, {Kind: "report-daily"}},
			map[string]core.NewTask{"other": {Kind: "other"}, "its beginning": {Kind: "report"}},
		},
		"interval": {
			store.Quota{Interval: 5 * time.Minute},
			[]core.NewTask{
				{},
				{Every: 5 * time.Minute},
				{Every: 5 * time.Minute, Jitter: time.Minute},
				{Cron: "*/5 * * * *"},
				{When: "every 10 minutes"},
				{Manual: true},
				{Every: 6 * time.Minute, From: core.FromStart, Jitter: time.Minute},
				{Cron: "0 9 1 1 *"},
			},
			map[string]core.NewTask{
				"every": {Every: 299 * time.Second}, "from its start": {Every: 5 * time.Minute, From: core.FromStart, Jitter: time.Minute},
				"cron": {Cron: "*/4 * * * *"}, "one in a list": {Cron: "0,4 9 * * *"}, "far away": {Cron: "0,1 9 25 12 *"}, "jitter": {Cron: "*/5 * * * *", Jitter: time.Second},
				"a phrase": {When: "every 2 minutes"}, "seconds": {Cron: "0,30 0 0 * * *"},
			},
		},
		"horizon": {
			store.Quota{Horizon: 48 * time.Hour},
			[]core.NewTask{{}, {Delay: 48 * time.Hour}, {Cron: "0 9 * * *"}, {Every: 48 * time.Hour}, {Manual: true}},
			map[string]core.NewTask{
				"delay": {Delay: 49 * time.Hour}, "at": {At: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}, "every": {Every: 49 * time.Hour},
				"cron": {Cron: "0 0 1 1 *"}, "the first of an interval": {Every: time.Hour, Delay: 72 * time.Hour},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{Zone: "UTC"}, func(w *world) {
				w.profile(core.Profile{Agent: "a", Quota: c.quota})
				ada := asAgent(w.Context())
				for _, task := range c.right {
					task.Agent = "a"
					if task.Kind == "" {
						task.Kind = "k"
					}
					_, err := w.s.Submit(ada, task)
					require.NoError(t, err)
				}
				for label, task := range c.wrong {
					task.Agent, task.ID = "a", label
					if task.Kind == "" {
						task.Kind = "k"
					}
					text := w.refusal(ada, "the quota "+name+` of agent "a": `, task)
					assert.True(t, strings.HasSuffix(text, "or ask an operator to raise it"), text)
					assert.Contains(t, w.refusal(ada, name, core.NewTask{Agent: "a", Kind: "k", ID: "before " + label}, task), "tasks[1].")
					_, err := w.s.Task(t.Context(), "a", "before "+label)
					require.ErrorIs(t, err, core.ErrNotFound, "nothing of the call is stored")
					_, err = w.s.Submit(t.Context(), task)
					require.NoError(t, err, "an operator is not bound")
				}
			})
		})
	}
}

// A process that has never seen the profile of an agent, or has seen another one, learns it in the step that stores a task.
func TestQuotasHoldForProcessesThatDoNotKnowThem(t *testing.T) {
	st := memstore.New(memstore.Config{})
	operator, other := newWorldOn(t, st, core.Config{}), newWorldOn(t, st, core.Config{Kinds: map[string]core.KindConfig{"seen": {Activity: &core.Activity{Dimensions: 3}}}})
	ada := asAgent(t.Context())
	task := core.NewTask{Agent: "a", Kind: "k", Every: time.Minute}
	operator.profile(core.Profile{Agent: "a", Quota: store.Quota{Interval: time.Hour, Live: 2, Kinds: []string{"k"}}})
	other.refusal(ada, "interval", task)
	_, err := other.s.Notice(ada, "seen", core.Subject{User: "u", Agent: "a"})
	require.Equal(t, model.CodeQuota, core.CodeOf(err), "%v", err)
	operator.profile(core.Profile{Agent: "a", Quota: store.Quota{Interval: time.Second, Live: 2}})
	_, err = other.s.Submit(ada, core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Minute})
	require.Error(t, err, "it checks by what it has seen last")
	_, err = other.s.Submit(ada, core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 2 * time.Hour})
	require.NoError(t, err, "the store says that it has changed")
	_, err = other.s.Submit(ada, core.NewTask{Agent: "a", ID: "2", Kind: "k", Every: time.Minute})
	require.NoError(t, err)
	text := other.refusal(ada, "live", core.NewTask{Agent: "a", ID: "3", Kind: "k"})
	assert.Equal(t, `the quota live of agent "a": 2 of 2 live tasks are there: cancel or delete some, wait until some have ended, or ask an operator to raise it`, text)
	_, err = other.s.Submit(core.WithPrincipal(t.Context(), core.Principal{Name: "root"}), core.NewTask{Agent: "a", ID: "3", Kind: "k"})
	require.NoError(t, err, "an operator")
	require.NoError(t, operator.s.DeleteProfile(t.Context(), "a"))
	_, err = other.s.Submit(ada, core.NewTask{Agent: "a", ID: "4", Kind: "k", Every: 2 * time.Hour})
	require.NoError(t, err, "it has none any more")
}

// Only callers for all agents change a quota; the agent's own keep it, whatever they do to the profile.
func TestQuotasBelongToOperators(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ada := asAgent(w.Context())
		q := store.Quota{Live: 1, Bytes: 1 << 20, Interval: time.Minute, Horizon: time.Hour, Kinds: []string{"k"}, Depth: 1, Spawned: 2, Recurring: 3, Submits: 4}
		set := w.profile(core.Profile{Agent: "a", Quota: q})
		assert.Equal(t, q, set.Quota)
		_, err := w.s.SetProfile(ada, core.Profile{Agent: "a", Quota: store.Quota{Live: 100}})
		require.Equal(t, model.CodeForbidden, core.CodeOf(err))
		kept, err := w.s.SetProfile(ada, core.Profile{Agent: "a", Zone: "Asia/Tokyo"})
		require.NoError(t, err)
		assert.Equal(t, q, kept.Quota)
		require.NoError(t, w.s.DeleteProfile(ada, "a"))
		_, err = w.s.Forget(ada, "a", nil)
		require.NoError(t, err)
		left, err := w.s.Profile(w.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, &store.QuotaUse{}, left.Used)
		assert.Equal(t, q, left.Quota)
		data, err := json.Marshal(left)
		require.NoError(t, err)
		assert.Contains(t, string(data), `"quota":{"live":1,"recurring":3,"bytes":1048576,"submits":4,"interval":"1m","horizon":"1h","kinds":["k"],"depth":1,"spawned":2}`)
		var read core.Profile
		require.NoError(t, read.Read(data))
		left.Used = nil // it is no setting
		assert.Equal(t, left, read)
		for field, q := range map[string]store.Quota{
			"quota.live": {Live: -1}, "quota.kinds[0]": {Kinds: []string{"*"}}, "quota.kinds[1]": {Kinds: []string{"a", "a*b"}}, "quota.interval": {Interval: -time.Second},
			"quota.horizon": {Interval: time.Hour, Horizon: time.Minute}, "quota.depth": {Depth: 1 << 40}, "quota.bytes": {Bytes: 1 << 50},
		} {
			_, err := w.s.SetProfile(w.Context(), core.Profile{Agent: "a", Quota: q})
			var wrong *core.InvalidError
			require.ErrorAs(t, err, &wrong, field)
			assert.Equal(t, field, wrong.Field)
		}
	})
}

// Only callers for all agents change the tenant of an agent; its own keep it, whatever they do to the profile.
func TestTenantsBelongToOperators(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ada := asAgent(w.Context())
		assert.Equal(t, "acme", w.profile(core.Profile{Agent: "a", Tenant: "acme"}).Tenant)
		_, err := w.s.SetProfile(ada, core.Profile{Agent: "a", Tenant: "mine"})
		require.Equal(t, model.CodeForbidden, core.CodeOf(err))
		require.ErrorContains(t, err, "the tenant of an agent")
		kept, err := w.s.SetProfile(ada, core.Profile{Agent: "a", Zone: "Asia/Tokyo"})
		require.NoError(t, err)
		assert.Equal(t, "acme", kept.Tenant)
		require.NoError(t, w.s.DeleteProfile(ada, "a"))
		_, err = w.s.Forget(ada, "a", nil)
		require.NoError(t, err)
		left, err := w.s.Profile(w.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, "acme", left.Tenant)
		data, err := json.Marshal(left)
		require.NoError(t, err)
		var read core.Profile
		require.NoError(t, read.Read(data))
		assert.Equal(t, left, read)
		_, err = w.s.SetProfile(w.Context(), core.Profile{Agent: "a", Tenant: strings.Repeat("x", 257)})
		var wrong *core.InvalidError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, "tenant", wrong.Field)
	})
}

// What recurs already counts once a quota is set, where it waits, runs or is paused; what the agent has too much of stays.
func TestQuotasCountWhatExists(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return core.NextIn(time.Hour) })
		for i := range 5 {
			w.submit(core.NewTask{Agent: "a", ID: fmt.Sprint(i), Kind: "k", Every: time.Hour}, core.NewTask{Agent: "a", ID: fmt.Sprint("once", i), Kind: "k", Delay: time.Hour})
		}
		err := w.s.Pause(w.Context(), store.Target{Agent: "a", ID: "1"}, model.Pause{})
		require.NoError(t, err)
		w.profile(core.Profile{Agent: "a", Quota: store.Quota{Recurring: 4}})
		ada := asAgent(w.Context())
		again := core.NewTask{Agent: "a", ID: "new", Kind: "k", Every: time.Hour}
		w.refusal(ada, "5 of 4 live tasks that recur", again)
		w.submit(core.NewTask{Agent: "a", ID: "once", Kind: "k", Delay: time.Hour})
		_, err = w.s.Submit(ada, core.NewTask{Agent: "a", ID: "0", Kind: "k", Delay: time.Hour, OnConflict: core.OnConflictReplace})
		require.NoError(t, err, "it recurs no more")
		w.refusal(ada, "4 of 4", again)
		_, err = w.s.Cancel(w.Context(), "a", "1", core.Order{})
		require.NoError(t, err)
		_, err = w.s.Submit(ada, again)
		require.NoError(t, err)
	})
}

// A run that says when it runs next, and an edit, come no sooner than the interval allows; nothing fails for that.
func TestIntervalsOfRunsAndEditsArePutOff(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.profile(core.Profile{Agent: "a", Quota: store.Quota{Interval: time.Hour}})
		ada := asAgent(w.Context())
		ran := w.clocks(func(n int) error {
			if n == 2 {
				return core.NextIn(2 * time.Hour)
			}
			return core.NextIn(time.Second)
		})
		_, err := w.s.Submit(ada, core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour})
		require.NoError(t, err)
		w.runUntil(5 * time.Hour)
		assert.Equal(t, []string{"0 00:00", "0 01:00", "0 03:00", "0 04:00"}, (*ran)[:4])
		for range 3 {
			_, err = w.s.Edit(ada, "a", "1", json.RawMessage(`{"delay": "1s"}`))
			require.NoError(t, err)
		}
		assert.Equal(t, "0 06:00", w.due("1"), "an hour after its last run, at the soonest")
		_, err = w.s.Edit(ada, "a", "1", json.RawMessage(`{"every": "10m"}`))
		require.Equal(t, model.CodeQuota, core.CodeOf(err), "%v", err)
		_, err = w.s.Edit(w.Context(), "a", "1", json.RawMessage(`{"every": "10m", "delay": "1s"}`))
		require.NoError(t, err)
		assert.Equal(t, "0 05:00", w.due("1"), "an operator may")
	})
}

// A run that submits itself for ever stops at the depth that the quota allows, by a message that says so, whatever the process allows.
func TestAPromptThatSchedulesItselfStops(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.profile(core.Profile{Agent: "a", Quota: store.Quota{Depth: 3}})
		var last error
		runs := 0
		core.Handle(w.s, "k", func(ctx context.Context, t *core.Task[note]) error {
			runs++
			_, last = w.s.Submit(ctx, core.NewTask{Agent: "a", Kind: "k", MaxAttempts: 1})
			return last
		})
		w.submit(core.NewTask{Agent: "a", ID: "0", Kind: "k", MaxAttempts: 1})
		w.runUntil(time.Minute)
		assert.Equal(t, 4, runs)
		require.Equal(t, model.CodeQuota, core.CodeOf(last))
		assert.Equal(t, `tasks that submit tasks have come to depth 4 below task "0" of agent "a", and the limit is 3: `+
			"let the task recur instead of submitting itself, or raise the quota depth of the agent", last.Error())
	})
}

// The tasks that a root submits are counted by the quota, if it is tighter than the process.
func TestQuotasOfSpawnedTasks(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.profile(core.Profile{Agent: "a", Quota: store.Quota{Spawned: 5}})
		w.submit(core.NewTask{Agent: "a", ID: "0", Kind: "k", Delay: time.Hour})
		in, err := w.s.WithParent(w.Context(), "a/0")
		require.NoError(t, err)
		for i := range 5 {
			_, err := w.s.Submit(in, core.NewTask{Agent: "a", ID: fmt.Sprint("s", i), Kind: "k", Delay: time.Hour})
			require.NoError(t, err)
		}
		assert.Contains(t, w.refusal(in, "raise the quota spawned", core.NewTask{Agent: "a", Kind: "k"}), "have submitted 5 tasks within an hour")
	})
}

// Occurrences that are tasks of their own need room too; a replay by the agent as well.
func TestQuotasBindWhatDulyMakesForAnAgent(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.profile(core.Profile{Agent: "a", Quota: store.Quota{Live: 2}})
		ada := asAgent(w.Context())
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return core.SkipRetry(errBoom) })
		w.submit(core.NewTask{Agent: "a", ID: "dead", Kind: "k"})
		w.runUntil(time.Minute)
		_, err := w.s.Submit(ada, core.NewTask{Agent: "a", ID: "many", Kind: "k", Every: time.Hour, From: core.FromStart, Overlap: core.OverlapAllow})
		require.NoError(t, err)
		_, err = w.s.Submit(ada, core.NewTask{Agent: "a", ID: "other", Kind: "none"})
		require.NoError(t, err)
		w.runUntil(3 * time.Hour)
		assert.Contains(t, w.task("a", "many").LastError, `the quota live of agent "a": 2 of 2`)
		_, err = w.s.Replay(ada, "a", "dead")
		require.Equal(t, model.CodeQuota, core.CodeOf(err), "%v", err)
		_, err = w.s.Replay(w.Context(), "a", "dead")
		require.NoError(t, err)
	})
}
