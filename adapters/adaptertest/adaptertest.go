// Package adaptertest is one story that every adapter has to tell, on any store: what comes in at the host's end is submitted
// and runs when it is due, once; a budget that is too small leaves the rest whole; what makes no sense changes nothing.
package adaptertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Adapter is what the story needs of an adapter, driven as its host would.
// It is small, so that each host's test can drive the real entry of its
// adapter, and not a shortcut behind it.
type Adapter interface {
	// Submit brings tasks in, as JSON. Its error is what the host answers.
	Submit(ctx context.Context, tasks string) error
	// Trigger runs what is due, and returns when that has ended. The end of ctx is the end of the host's patience.
	Trigger(ctx context.Context, pull Pull) (Result, error)
	// Malformed sends what makes no sense to the adapter.
	Malformed(ctx context.Context) error
}

// ErrUnsupported is what an Adapter answers to what its host cannot ask for.
// The story continues without that part, or does it by the scheduler.
var ErrUnsupported = errors.New("the host has no such thing")

// Pull is what a trigger asks for.
type Pull struct {
	Agents []string // nil for all
	Max    int      // zero for no limit
}

// Result is what the host answers. Known is false where it answers nothing.
type Result struct {
	Known                            bool
	Ran, Completed, Failed, Released int
	More                             bool
	Failures                         []Failure
}

// Failure is a run that failed, as a report names it.
// Its fields are those of the JSON of a report, read back as a client would.
type Failure struct {
	Agent string `json:"agent_id"`
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Error string `json:"error"`
}

// Decode reads a report.
// It reads only what the story compares, so that a new field of the report needs no change here.
func Decode(data []byte) (Result, error) {
	var r Result
	err := json.Unmarshal(data, &r)
	r.Known = true
	return r, err
}

// World is a scheduler on a store, with the handlers of the story. It counts what they and the store do.
// Each adapter of one test may have a world of its own, on the same store.
type World struct {
	Scheduler *core.Scheduler

	// store counts calls, so that "nothing is asked of the store" can be checked.
	store  *watchedStore
	starts *Starts
	begun  chan struct{} // a slow task sends when it has begun
}

// Starts counts the starts of tasks, in as many worlds as share it.
type Starts struct {
	// A zero Starts is ready.
	mu   sync.Mutex
	of   map[string]int
	runs map[string]int // by world
}

// add counts one start.
func (s *Starts) add(world, agent, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of, s.runs = map[string]int{}, map[string]int{}
	}
	s.of[agent+"/"+id]++
	s.runs[world]++
}

// count is how often a task has started.
func (s *Starts) count(agent, id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[agent+"/"+id]
}

// total is how many tasks have started at all.
func (s *Starts) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of)
}

// NewWorld makes a world on a store.
// Its three kinds are all that the story needs: one that counts, one that fails for
// good, and one that runs until it is stopped.
func NewWorld(tb testing.TB, name string, on core.Store, starts *Starts) *World {
	tb.Helper()
	w := &World{store: &watchedStore{Store: on}, starts: starts, begun: make(chan struct{}, 10)}
	var err error
	w.Scheduler, err = core.New(w.store, core.Config{})
	require.NoError(tb, err)
	core.Handle(w.Scheduler, "count", func(_ context.Context, t *core.Task[any]) error {
		w.starts.add(name, t.Agent, t.ID)
		return nil
	})
	core.Handle(w.Scheduler, "fail", func(context.Context, *core.Task[any]) error { return core.SkipRetry(errors.New("boom")) })
	core.Handle(w.Scheduler, "slow", func(ctx context.Context, _ *core.Task[any]) error {
		w.begun <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	return w
}

// OnClaim calls hear with what each later look and claim returns.
func (w *World) OnClaim(hear func(store.Claim)) { w.store.hear.Store(&hear) }

// watchedStore counts the calls that look, claim or write, and reports what claims bring.
type watchedStore struct {
	core.Store

	calls atomic.Int64
	hear  atomic.Pointer[func(store.Claim)]
}

// Turn is made of Settle and Claim.
func (s *watchedStore) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	return store.InTurn(ctx, s, runs, requests)
}

// Claim is the store's.
func (s *watchedStore) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	s.calls.Add(1)
	claims, err := s.Store.Claim(ctx, requests)
	// A claim that failed returns nothing that a caller could wait for.
	if hear := s.hear.Load(); hear != nil && err == nil {
		for i := range claims {
			(*hear)(claims[i])
		}
	}
	return claims, err
}

// Look is the store's.
func (s *watchedStore) Look(ctx context.Context, requests []store.LookRequest) ([]store.Look, error) {
	s.calls.Add(1)
	looks, err := s.Store.Look(ctx, requests)
	if hear := s.hear.Load(); hear != nil && err == nil {
		for i := range looks {
			(*hear)(store.Claim{Look: looks[i]})
		}
	}
	return looks, err
}

// Submit is the store's.
func (s *watchedStore) Submit(ctx context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	s.calls.Add(1)
	return s.Store.Submit(ctx, tasks)
}

// Run tells the story of an adapter.
// Its parts follow one another on the same store, so that what one
// leaves behind would disturb the next.
func Run(t *testing.T, w *World, a Adapter) {
	t.Helper()
	s := &story{T: t, World: w, adapter: a}
	s.runsOnceWhenDue()
	s.budgetOfTasks()
	s.budgetOfTime()
	s.failure()
	s.nonsense()
}

// story is one adapter's telling: the test, its world, and the adapter.
type story struct {
	*testing.T
	*World

	adapter Adapter
}

// submit brings a task in by the adapter, or by the scheduler if its host brings none.
func (s *story) submit(agent, id, kind, more string) {
	s.Helper()
	task := fmt.Sprintf(`{"agent_id":%q,"id":%q,"kind":%q%s}`, agent, id, kind, more)
	err := s.adapter.Submit(s.Context(), task)
	if errors.Is(err, ErrUnsupported) {
		var tasks []core.NewTask
		tasks, err = model.ParseTasks([]byte(task))
		require.NoError(s, err)
		_, err = s.Scheduler.Submit(s.Context(), tasks...)
	}
	require.NoError(s, err)
}

// trigger runs what is due by the adapter, without an error.
func (s *story) trigger(pull Pull) Result {
	s.Helper()
	r, err := s.adapter.Trigger(s.Context(), pull)
	require.NoError(s, err)
	return r
}

// task is a task as the scheduler reports it, independent of the adapter's answer.
func (s *story) task(agent, id string) core.TaskInfo {
	s.Helper()
	task, err := s.Scheduler.Task(s.Context(), agent, id)
	require.NoError(s, err)
	return task
}

// runsOnceWhenDue has a task wait for its time, and a task of another agent that no pull asks for.
func (s *story) runsOnceWhenDue() {
	s.Helper()
	s.submit("ada", "one", "count", `,"delay":"300ms"`)
	s.submit("bob", "other", "count", "")
	due := s.task("ada", "one").Due
	// A slow machine may be past the due time already, and then there is nothing to check.
	if s.trigger(Pull{Agents: []string{"ada"}}); s.Scheduler.Until(due) > 0 {
		assert.Equal(s, core.StatusWaiting, s.task("ada", "one").Status, "not before it is due")
	}
	<-time.After(s.Scheduler.Until(due)) // it is this time that the story is about
	r := s.trigger(Pull{Agents: []string{"ada"}})
	assert.Equal(s, core.StatusCompleted, s.task("ada", "one").Status)
	assert.Equal(s, core.StatusWaiting, s.task("bob", "other").Status, "nobody asked for it")
	if r.Known {
		assert.Equal(s, Result{Known: true, Ran: 1, Completed: 1}, r)
	}
	if r = s.trigger(Pull{}); r.Known {
		assert.Equal(s, Result{Known: true, Ran: 1, Completed: 1}, r, "the other agent's")
	}
	if r = s.trigger(Pull{}); r.Known {
		assert.Equal(s, Result{Known: true}, r, "nothing is due")
	}
	assert.Equal(s, 1, s.starts.count("ada", "one"))
	assert.Equal(s, 1, s.starts.count("bob", "other"))
}

// budgetOfTasks allows one run of two: the other one is left for the next trigger, and More says so.
func (s *story) budgetOfTasks() {
	s.Helper()
	s.submit("ada", "b1", "count", "")
	s.submit("ada", "b2", "count", "")
	r, err := s.adapter.Trigger(s.Context(), Pull{Max: 1})
	if !errors.Is(err, ErrUnsupported) {
		require.NoError(s, err)
		assert.Equal(s, Result{Known: true, Ran: 1, Completed: 1, More: true}, r)
	}
	s.trigger(Pull{})
	assert.Equal(s, 1, s.starts.count("ada", "b1"))
	assert.Equal(s, 1, s.starts.count("ada", "b2"))
}

// budgetOfTime ends the host's patience while a task runs: it is released, and no attempt is charged.
func (s *story) budgetOfTime() {
	s.Helper()
	s.submit("ada", "slow", "slow", "")
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.adapter.Trigger(ctx, Pull{}) // a caller that disconnected gets no answer
	}()
	select {
	case <-s.begun:
	case <-ended:
		require.Fail(s, "it ended before the task began")
	}
	cancel()
	<-ended
	task := s.task("ada", "slow")
	assert.Equal(s, core.StatusWaiting, task.Status, "given back")
	assert.Zero(s, task.ErrorCount, "uncharged")
	// Nothing of this part may run in the next one.
	_, err := s.Scheduler.Cancel(s.Context(), "ada", "slow", core.Order{})
	require.NoError(s, err)
}

// failure has one handler fail beside one that does not: the host's answer
// names the one, and the other is done.
func (s *story) failure() {
	s.Helper()
	s.submit("ada", "bad", "fail", "")
	s.submit("ada", "good", "count", "")
	if r := s.trigger(Pull{}); r.Known {
		require.Len(s, r.Failures, 1, "every host names what failed")
		failed := r.Failures[0]
		assert.Equal(s, Failure{"ada", "bad", "fail", failed.Error}, failed)
		assert.NotEmpty(s, failed.Error)
		r.Failures = nil
		assert.Equal(s, Result{Known: true, Ran: 2, Completed: 1, Failed: 1}, r)
	}
	assert.Equal(s, core.StatusFailed, s.task("ada", "bad").Status)
	assert.Equal(s, core.StatusCompleted, s.task("ada", "good").Status)
}

// nonsense sends what no adapter may take: the store is not asked for any of it.
func (s *story) nonsense() {
	s.Helper()
	before := s.store.calls.Load()
	_, err := s.adapter.Trigger(s.Context(), Pull{Agents: []string{"a\x00b"}})
	require.ErrorContains(s, err, "has the control character U+0000", "a forbidden agent")
	if err := s.adapter.Submit(s.Context(), `{"agent_id":"a\u0000b","kind":"count"}`); !errors.Is(err, ErrUnsupported) {
		require.Error(s, err)
	}
	if err := s.adapter.Malformed(s.Context()); !errors.Is(err, ErrUnsupported) {
		require.Error(s, err)
	}
	assert.Equal(s, before, s.store.calls.Load(), "no call of the store")
}

// Together lets adapters, each with a world on the same store and the same starts, run many tasks at once, and demands that
// each starts exactly once and that every adapter did some of the work.
// It is for several hosts on one Redis, as an installation may have them during a move.
func Together(t *testing.T, tasks int, starts *Starts, worlds map[string]*World, adapters map[string]Adapter) {
	t.Helper()
	var first *World
	for _, w := range worlds {
		first = w
	}
	batch := make([]core.NewTask, tasks)
	for i := range batch {
		batch[i] = core.NewTask{Agent: fmt.Sprintf("agent-%d", i%100), ID: fmt.Sprint(i), Kind: "count"}
	}
	_, err := first.Scheduler.Submit(t.Context(), batch...)
	require.NoError(t, err)
	var group sync.WaitGroup
	for name, a := range adapters {
		group.Go(func() {
			// Each adapter pulls until all tasks have started, on any adapter.
			for starts.total() < tasks {
				pull := Pull{Max: 20}
				_, err := a.Trigger(t.Context(), pull)
				if errors.Is(err, ErrUnsupported) {
					_, err = a.Trigger(t.Context(), Pull{})
				}
				if !assert.NoError(t, err, name) {
					return
				}
			}
		})
	}
	group.Wait()
	for i := range batch {
		assert.Equal(t, 1, starts.count(batch[i].Agent, batch[i].ID), "starts of %s", batch[i].ID)
	}
	stats, err := first.Scheduler.Stats(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, tasks, stats.Completed)
	for name := range adapters {
		t.Logf("%s ran %d", name, starts.runs[name])
	}
}
