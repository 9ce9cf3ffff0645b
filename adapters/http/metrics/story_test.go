package metrics_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/http/metrics"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// What must not be seen in metrics.
const (
	agent  = "agent-7f3a"
	secret = "secret-9c2b"
)

// handlers are one for each way in which a run can end.
func handlers(raw core.Store) func(w *world) {
	return func(w *world) {
		core.Handle(w.s, "good", func(context.Context, *core.Task[any]) error { return nil })
		core.Handle(w.s, "bad", func(context.Context, *core.Task[any]) error { return core.SkipRetry(errors.New(secret)) })
		core.Handle(w.s, "unwanted", func(context.Context, *core.Task[any]) error { return core.Cancel(errors.New(secret)) })
		core.Handle(w.s, "idle", func(context.Context, *core.Task[any]) error { return errors.New("never runs") })
		core.Gate(w.s, "idle", func(context.Context, *core.RunInfo) (bool, error) { return false, nil })
		core.Handle(w.s, "poison", func(context.Context, *core.Task[any]) error { return nil })
		first := func(name string, err error) {
			var runs atomic.Int64
			core.Handle(w.s, name, func(context.Context, *core.Task[any]) error {
				if runs.Add(1) == 1 {
					return err
				}
				return nil
			})
		}
		first("flaky", errors.New(secret))
		first("later", core.Snooze(0))
		first("long", core.Yield(secret, 0))
		core.Handle(w.s, "frozen", func(ctx context.Context, task *core.Task[any]) error {
			if task.Crashes == 0 {
				w.takeOver(ctx, raw, task.RunInfo)
			}
			return nil
		})
	}
}

// takeOver does what happens to a frozen process: its lease runs out, and another claims the task.
func (w *world) takeOver(ctx context.Context, raw core.Store, task *core.RunInfo) {
	partition := store.PartitionOf(task.Agent, raw.Partitions())
	held, err := raw.Extend(ctx, []store.Extension{{Partition: partition, Fence: task.Fence, Lease: time.Millisecond}})
	if assert.NoError(w, err) && assert.True(w, held[0].Held) {
		w.crash(raw, task.Kind)
	}
}

// crash claims a task of a kind as a process that dies at once would, which has noted before if the task is a suspect.
func (w *world) crash(raw core.Store, kind string) {
	others := slices.DeleteFunc(w.s.Kinds(), func(other string) bool { return other == kind })
	assert.Eventually(w, func() bool {
		claims, err := raw.Claim(w.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf(agent, raw.Partitions()), Nonce: rand.Text()[:store.NonceLen], Kinds: []string{kind},
			Leave: others, Limit: 1, Lease: time.Millisecond,
		}})
		return err == nil && len(claims[0].Tasks) == 1
	}, 10*time.Second, time.Millisecond)
}

// drain runs what is due until some tasks have ended.
func (w *world) drain(done ...string) {
	w.Helper()
	require.Eventually(w, func() bool {
		_, _ = w.s.RunDue(w.Context(), core.Scope{})
		for _, id := range done {
			if task, err := w.s.Task(w.Context(), agent, id); err != nil || !task.Status.Finished() {
				return false
			}
		}
		return true
	}, 20*time.Second, time.Millisecond)
}

// Every metric says what has happened, and nothing about whose tasks these are. There is one slot, so that the frozen process
// does not take its own task over.
func TestTheMetricsTellWhatHasHappened(t *testing.T) {
	t.Parallel()
	raw, _ := redis(t)
	w := newWorld(t, raw, metrics.Config{Version: "v1.2.3", Fresh: time.Nanosecond}, core.Config{Concurrency: 1}, handlers(raw))

	before := w.scrape()
	assert.Zero(t, before.value("duly_runs_total", "kind", "good", "outcome", "success"), "a counter is there before its first step")
	assert.Zero(t, before.value("duly_submitted_total")+before.value("duly_ticks_total")+before.value("duly_recovered_total"))

	task := func(kind string) core.NewTask {
		return core.NewTask{Agent: agent, ID: "task-" + kind, Kind: kind, Group: secret, Payload: secret}
	}
	w.submit(task("poison"))
	for range 4 {
		w.crash(raw, "poison")
	}
	w.drain("task-poison")
	w.submit(task("frozen"))
	w.drain("task-frozen")
	later := core.NewTask{Agent: agent, ID: "tomorrow", Kind: "good", Delay: 24 * time.Hour}
	idle := task("idle")
	idle.Every = time.Hour
	w.submit(task("good"), task("bad"), task("unwanted"), task("flaky"), task("later"), task("long"), idle, later)
	w.submit(core.NewTask{Agent: agent, ID: "parked", Kind: secret})
	w.drain("task-good", "task-bad", "task-unwanted", "task-flaky", "task-later", "task-long")

	p := w.scrape()
	for kind, want := range map[string]map[string]float64{
		"good": {"success": 1}, "bad": {"failed": 1}, "unwanted": {"cancelled": 1}, "idle": {"skipped": 1},
		"flaky": {"retried": 1, "success": 1}, "later": {"snoozed": 1, "success": 1}, "long": {"yielded": 1, "success": 1},
		"frozen": {"lost": 1, "success": 1}, "poison": {"crashed": 1},
	} {
		assert.Equal(t, want, p.runs(kind), kind)
	}
	assert.Equal(t, 2.0, p.value("duly_run_seconds", "kind", "flaky"))
	assert.Equal(t, 2.0, p.value("duly_lag_seconds", "kind", "frozen"), "both starts")
	assert.Zero(t, p.value("duly_lag_seconds", "kind", "poison")+p.value("duly_run_seconds", "kind", "poison"), "it never started here")
	assert.Zero(t, p.value("duly_run_seconds", "kind", "idle"), "a gate is no run")
	assert.Equal(t, 11.0, p.value("duly_submitted_total"))
	assert.Equal(t, 1.0, p.value("duly_leases_lost_total"))
	assert.Equal(t, 2.0, p.value("duly_recovered_total"), "the last crash of each: the others were found by those who crashed next")
	assert.GreaterOrEqual(t, p.value("duly_ticks_total"), 3.0)
	assert.Equal(t, p.value("duly_ticks_total"), p.value("duly_tick_seconds"))
	assert.Equal(t, map[string]float64{"waiting": 3, "resting": 0, "in_progress": 0, "completed": 5, "failed": 2, "cancelled": 1}, map[string]float64{
		"waiting": p.value("duly_tasks", "status", "waiting"), "resting": p.value("duly_tasks", "status", "resting"), "in_progress": p.value("duly_tasks", "status", "in_progress"),
		"completed": p.value("duly_tasks", "status", "completed"), "failed": p.value("duly_tasks", "status", "failed"),
		"cancelled": p.value("duly_tasks", "status", "cancelled"),
	})
	assert.Equal(t, 1.0, p.value("duly_parked_tasks", "reason", "no_handler"))
	assert.Equal(t, 1.0, p.value("duly_store_up"))
	assert.Zero(t, p.value("duly_overdue_seconds"))
	assert.Zero(t, p.value("duly_dropped_records"))
	assert.Equal(t, 1.0, p.value("duly_build_info", "version", "v1.2.3"))
	for _, verb := range []string{"submit", "claim", "settle", "read", "stats"} {
		assert.Positive(t, p.value("duly_store_calls_total", "verb", verb), verb)
		assert.Equal(t, p.value("duly_store_calls_total", "verb", verb), p.value("duly_store_seconds", "verb", verb), verb)
	}
	assert.Positive(t, p.value("go_goroutines"))
	assert.Positive(t, p.value("process_start_time_seconds"))
	p.tellsNothingElse()
}

// tellsNothingElse checks that labels are those that are bounded, and that no id, payload or error is to be seen.
func (p page) tellsNothingElse() {
	p.Helper()
	allowed := []string{"kind", "outcome", "status", "reason", "role", "state", "verb", "fault", "version", "code"}
	for _, name := range p.ours() {
		for _, m := range p.families[name].GetMetric() {
			for _, l := range m.GetLabel() {
				assert.Contains(p, allowed, l.GetName(), name)
			}
		}
	}
	for _, hidden := range []string{agent, secret, "task-", "tomorrow", "parked\"", token} {
		assert.NotContains(p, p.text, hidden)
	}
}

// The metrics are named and described as Prometheus wants it.
func TestTheMetricsAreWellFormed(t *testing.T) {
	t.Parallel()
	raw, _ := redis(t)
	w := newWorld(t, raw, metrics.Config{Version: "v1"}, core.Config{}, handlers(raw))
	p := w.scrape()
	problems, err := testutil.GatherAndLint(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		var all []*dto.MetricFamily
		for _, family := range p.families {
			all = append(all, family)
		}
		return all, nil
	}))
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.Greater(t, len(p.ours()), 14)
}

// What waits for somebody to claim it is seen to wait; what is paused is seen to be.
func TestWhatNobodyRunsIsSeen(t *testing.T) {
	t.Parallel()
	raw, _ := redis(t)
	w := newWorld(t, raw, metrics.Config{Fresh: time.Nanosecond}, core.Config{}, handlers(raw))
	w.submit(core.NewTask{Agent: agent, ID: "1", Kind: "good", At: time.Now().Add(-time.Hour)})
	assert.Eventually(t, func() bool { return w.scrape().value("duly_overdue_seconds") > 0.001 }, 10*time.Second, time.Millisecond)
	require.NoError(t, w.s.Pause(t.Context(), core.Target{Agent: agent}, core.Pause{Reason: secret}))
	_, err := w.s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	p := w.scrape()
	assert.Equal(t, 1.0, p.value("duly_parked_tasks", "reason", "paused"))
	assert.Zero(t, p.value("duly_parked_tasks", "reason", "no_handler"))
	assert.Equal(t, 2.0, p.value("duly_store_calls_total", "verb", "control"), "and whether hosts are called by alarms")
	assert.False(t, strings.Contains(p.text, secret))
}

// A limit shows what it allows, what runs and what waits; lifted, it is gone.
func TestTheMetricsOfLimits(t *testing.T) {
	t.Parallel()
	raw, _ := redis(t)
	var during page
	w := newWorld(t, raw, metrics.Config{Fresh: time.Nanosecond}, core.Config{Concurrency: 1}, func(w *world) {
		core.Handle(w.s, "good", func(context.Context, *core.Task[any]) error {
			during = w.scrape()
			return nil
		})
	})
	paced := core.LimitTarget{Key: "openai:*", Each: core.EachKey}
	require.NoError(t, w.s.SetLimits(t.Context(), core.Limit{About: core.LimitTarget{Kind: "good"}, Concurrency: 2},
		core.Limit{About: paced, Rate: 1, Per: time.Hour, Burst: -1}))
	for _, id := range []string{"1", "2", "3"} {
		w.submit(core.NewTask{Agent: agent, ID: id, Kind: "good", LimitKey: "openai:" + secret})
	}
	_, err := w.s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	kind := []string{"kind", "good", "limit_key", "", "each", ""}
	key := []string{"kind", "", "limit_key", "openai:*", "each", "key"}
	assert.Equal(t, 2.0, during.value("duly_limit_concurrency", kind...))
	assert.Equal(t, 1.0, during.value("duly_limit_running", kind...))
	assert.Equal(t, 1.0, during.value("duly_limit_running", key...))
	assert.Empty(t, during.series("duly_limit_concurrency", key...), "it has no bound of runs")
	p := w.scrape()
	assert.Equal(t, 2.0, p.value("duly_limit_waiting", key...))
	assert.Zero(t, p.value("duly_limit_waiting", kind...)+p.value("duly_limit_running", key...))
	assert.NotContains(t, p.text, secret, "a limit key that no limit names")
	assert.NotContains(t, p.text, agent)
	require.NoError(t, w.s.LiftLimit(t.Context(), paced))
	assert.Empty(t, w.scrape().series("duly_limit_waiting", key...))
}
