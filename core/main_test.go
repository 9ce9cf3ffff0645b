package core_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a scheduler on a store in memory, in virtual time.
type world struct {
	*testing.T

	s     *core.Scheduler
	store *watched
	begun time.Time

	mu     sync.Mutex
	events []core.Event
}

// virtual runs a test in a bubble: time passes at once when everybody waits.
func virtual(t *testing.T, config core.Config, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(newWorld(t, config)) })
}

func newWorld(t *testing.T, config core.Config) *world {
	t.Helper()
	return newWorldOn(t, memstore.New(memstore.Config{Partitions: 8}), config)
}

func newWorldOn(t *testing.T, st store.Store, config core.Config) *world {
	t.Helper()
	w := &world{T: t, begun: time.Now(), store: watch(st)}
	config.OnEvent = func(e core.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}
	s, err := core.New(w.store, config)
	require.NoError(t, err)
	w.s = s
	return w
}

func (w *world) submit(tasks ...core.NewTask) {
	w.Helper()
	_, err := w.s.Submit(w.Context(), tasks...)
	require.NoError(w, err)
}

// run pulls once and wants no error.
func (w *world) run() core.Report {
	w.Helper()
	report, err := w.s.RunDue(w.Context(), core.Scope{})
	require.NoError(w, err)
	return report
}

// runFailing pulls once and wants failed runs.
func (w *world) runFailing() core.Report {
	w.Helper()
	report, err := w.s.RunDue(w.Context(), core.Scope{})
	var failed *core.RunsError
	require.ErrorAs(w, err, &failed)
	return report
}

// runUntil pulls again and again, sleeping until something is due, until a time has passed.
func (w *world) runUntil(d time.Duration) core.Report {
	w.Helper()
	end := time.Now().Add(d)
	var sum core.Report
	for {
		r, _ := w.s.RunDue(w.Context(), core.Scope{})
		sum.Ran += r.Ran
		sum.Completed += r.Completed
		sum.Failed += r.Failed
		sum.Retried += r.Retried
		sum.Recovered += r.Recovered
		if r.NextDueAt.IsZero() || r.NextDueAt.After(end) {
			time.Sleep(time.Until(end))
			return sum
		}
		time.Sleep(time.Until(r.NextDueAt))
	}
}

func (w *world) task(agent, id string) core.TaskInfo {
	w.Helper()
	info, err := w.s.Task(w.Context(), agent, id)
	require.NoError(w, err)
	return info
}

func (w *world) seen(t model.EventType) []core.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []core.Event
	for _, e := range w.events {
		if e.Type == t {
			out = append(out, e)
		}
	}
	return out
}

// watched counts the calls of a store and can make them fail. Verbs that are much alike count as one.
type watched struct {
	storetest.Spy

	mu    sync.Mutex
	calls map[string]int
	fail  func(verb string, n int) error // n is the number of the call, from 1
	after func(verb string)              // called when a call has been answered
	alter func(claims []store.Claim)     // changes the answer to a claim
	deaf  bool                           // commands are not carried out, as if nothing were as it was read
	hang  atomic.Bool                    // heartbeats are not answered
	sizes []int                          // of the extend calls
	lease []time.Duration                // of the first claim in each of them
}

// alike are the names that the verbs of a store count under.
var alike = map[string]string{
	"Submit": "submit", "Touch": "submit", "Look": "claim", "Claim": "claim", "Settle": "settle", "Extend": "extend",
	"Get": "read", "List": "read", "Find": "read", "Group": "read", "Agents": "read", "Holds": "read", "Stats": "stats",
	"Replay": "control", "RunNow": "control", "Cancel": "control", "Delete": "control", "Hold": "control", "Unhold": "control",
	"Audit": "control", "Profile": "profile", "ProfileOf": "profile", "Profiles": "profile", "Replan": "replan",
}

func watch(st core.Store) *watched {
	w := &watched{Spy: storetest.Spy{Store: st}}
	w.Before = func(_ context.Context, verb string) error { return w.called(alike[verb]) }
	w.After = func(_ context.Context, verb string, answer any) error {
		if name := alike[verb]; w.after != nil && (name == "claim" || name == "read") {
			w.after(name)
		}
		if claims, ok := answer.([]store.Claim); ok && w.alter != nil {
			w.alter(claims)
		}
		return nil
	}
	return w
}

func (s *watched) called(verb string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[verb]++
	switch {
	case s.fail != nil:
		return s.fail(verb, s.calls[verb])
	case s.deaf && verb == "control":
		return store.ErrChanged
	default:
		return nil
	}
}

func (s *watched) count(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[verb]
}

func (s *watched) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, k := range s.calls {
		n += k
	}
	return n
}

func (s *watched) failing(fail func(verb string, n int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.calls = fail, nil
}

func (s *watched) Extend(ctx context.Context, leases []store.Extension) ([]store.Extended, error) {
	s.mu.Lock()
	s.sizes = append(s.sizes, len(leases))
	s.lease = append(s.lease, leases[0].Lease)
	s.mu.Unlock()
	if s.hang.Load() {
		<-ctx.Done()
		return nil, &store.Error{Verb: "extend", Err: ctx.Err()}
	}
	return s.Spy.Extend(ctx, leases)
}

// note is a payload.
type note struct {
	Text string `json:"text"`
}

func numbered(agent, kind string, n int) []core.NewTask {
	tasks := make([]core.NewTask, n)
	for i := range tasks {
		tasks[i] = core.NewTask{Agent: agent, ID: fmt.Sprintf("%03d", i), Kind: kind}
	}
	return tasks
}
