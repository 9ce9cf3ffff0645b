package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
)

// events collects what a scheduler hears, until the test ends.
type events struct {
	mu   sync.Mutex
	told []string
	next string
}

func hears(t *testing.T, s *core.Scheduler, after string) *events {
	t.Helper()
	e := &events{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Listen(ctx, after, e.add) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	synctest.Wait()
	return e
}

func (e *events) add(p inspect.EventPage) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, i := range p.Items {
		text := fmt.Sprintf("%s %s/%s", i.Event.Type, i.Event.Agent, i.Event.ID)
		if i.Data == nil {
			text = fmt.Sprint("lost ", i.Lost)
		}
		e.told = append(e.told, text)
	}
	e.next = p.Next
	return nil
}

// heard is what has come by now.
func (e *events) heard() []string {
	time.Sleep(time.Second)
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.told)
}

// at is how far it has come.
func (e *events) at() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.next
}

// What one process does reaches whoever listens in another, in order; also what happens while nobody reads for a moment.
func TestEventsReachOtherProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(memstore.Config{Partitions: 4})
		works, err := core.New(st, core.Config{Name: "works"})
		require.NoError(t, err)
		core.Handle(works, "k", func(context.Context, *core.Task[any]) error { return nil })
		looks, err := core.New(st, core.Config{})
		require.NoError(t, err)
		do := func(id string) {
			_, err := works.Submit(t.Context(), core.NewTask{Agent: "a", ID: id, Kind: "k"})
			require.NoError(t, err)
			require.NoError(t, works.Pause(t.Context(), core.Target{Agent: "a", ID: id}, core.Pause{}))
			require.NoError(t, works.Resume(t.Context(), core.Target{Agent: "a", ID: id}))
			_, err = works.RunDue(t.Context(), core.Scope{})
			require.NoError(t, err)
		}
		want := func(ids ...string) (all []string) {
			for _, id := range ids {
				for _, event := range []string{"enqueue", "pause", "resume", "dequeue", "start", "finish"} {
					all = append(all, event+" a/"+id)
				}
			}
			return all
		}
		do("0")
		first := hears(t, looks, "")
		do("1")
		assert.Equal(t, want("1"), first.heard(), "from now on")
		from := first.at()
		do("2")
		do("3")
		assert.Equal(t, want("2", "3"), hears(t, looks, from).heard())
		assert.Equal(t, want("1", "2", "3"), first.heard())
		err = looks.Listen(t.Context(), "yesterday", first.add)
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
		stop := errors.New("enough")
		assert.ErrorIs(t, looks.Listen(t.Context(), "", func(inspect.EventPage) error { return stop }), stop)
	})
}

// gatedFeed is a feed that counts what is published, and can hold it up or fail it.
type gatedFeed struct {
	feed.Feed

	mu     sync.Mutex
	calls  int
	events int
	lost   int
	gate   chan struct{}
	fail   error
}

func (f *gatedFeed) Publish(ctx context.Context, lost int, all [][]byte) (bool, error) {
	if f.gate != nil {
		<-f.gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.fail != nil {
		return false, f.fail
	}
	listened, err := f.Feed.Publish(ctx, lost, all)
	if err == nil {
		f.events, f.lost = f.events+len(all), f.lost+lost
	}
	return listened, err
}

// submits makes a scheduler whose events go to a feed, and what makes it submit n tasks.
func submits(t *testing.T, f *gatedFeed) (s *core.Scheduler, submit func(n int)) {
	t.Helper()
	st := memstore.New(memstore.Config{})
	f.Feed = st
	s, err := core.New(st, core.Config{Feed: f})
	require.NoError(t, err)
	made := 0
	return s, func(n int) {
		for left := n; left > 0; left -= core.MaxSubmit {
			var tasks []core.NewTask
			for range min(left, core.MaxSubmit) {
				made++
				tasks = append(tasks, core.NewTask{Agent: fmt.Sprint("a", made), ID: "1", Kind: "k"})
			}
			_, err := s.Submit(t.Context(), tasks...)
			require.NoError(t, err)
		}
	}
}

func TestNobodyIsToldWhileNobodyListens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &gatedFeed{}
		s, submit := submits(t, f)
		submit(10)
		s.FlushEvents(t.Context())
		synctest.Wait()
		assert.Zero(t, f.calls)
		_, err := f.Follow(t.Context(), feed.Follow{Limit: 1, For: time.Minute})
		require.NoError(t, err)
		submit(10)
		synctest.Wait()
		assert.Equal(t, 10, f.events)
		time.Sleep(2 * time.Minute)
		calls := f.calls
		submit(10)
		synctest.Wait()
		assert.Equal(t, calls, f.calls, "nobody listens any more")
	})
}

// A store that takes its time holds up nothing, and what there is no room for is counted: each event is told or lost.
func TestEventsThatComeTooFastAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &gatedFeed{gate: make(chan struct{})}
		s, submit := submits(t, f)
		e := hears(t, s, "")
		submit(6000)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.FlushEvents(ctx) // does not wait
		close(f.gate)
		synctest.Wait()
		submit(1)
		synctest.Wait()
		assert.Equal(t, 6001, f.events+f.lost)
		assert.Greater(t, f.lost, 1000)
		told := e.heard()
		assert.Contains(t, told, fmt.Sprint("lost ", f.lost))
		assert.True(t, strings.HasPrefix(told[len(told)-1], "enqueue a6001"), "the last one comes behind those that were lost")
	})
}

// Events that could not be handed over are counted as lost once the store can be reached again.
func TestEventsOfAFailingStoreAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &gatedFeed{fail: errors.New("away")}
		s, submit := submits(t, f)
		e := hears(t, s, "")
		submit(3)
		synctest.Wait()
		submit(1)
		synctest.Wait()
		assert.Empty(t, e.heard())
		assert.LessOrEqual(t, f.calls, 4, "it does not try again by itself")
		f.mu.Lock()
		f.fail = nil
		f.mu.Unlock()
		submit(1)
		synctest.Wait()
		assert.Equal(t, []string{"lost 4", "enqueue a5/1"}, e.heard())
	})
}

// A host that stands still between calls has handed over everything when FlushEvents returns.
func TestFlushEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &gatedFeed{}
		s, submit := submits(t, f)
		hears(t, s, "")
		submit(1000)
		s.FlushEvents(t.Context())
		assert.Equal(t, 1000, f.events)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.gate = make(chan struct{})
		submit(1)
		s.FlushEvents(ctx) // does not wait
		close(f.gate)
	})
}

// A store that keeps no events says so.
func TestAStoreWithoutEvents(t *testing.T) {
	t.Parallel()
	type plain struct{ core.Store }
	s, err := core.New(plain{memstore.New(memstore.Config{})}, core.Config{})
	require.NoError(t, err)
	assert.ErrorIs(t, s.Listen(t.Context(), "", nil), inspect.ErrNoFeed)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", Kind: "k"})
	require.NoError(t, err)
	s.FlushEvents(t.Context())
}
