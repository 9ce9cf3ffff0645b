package redisstore_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/race"
)

// largeTasks are tasks of the agents that are named with the largest payloads.
func largeTasks(n int, agent func(i int) string) []store.Submission {
	subs := make([]store.Submission, n)
	for i := range subs {
		subs[i] = sub(agent(i), fmt.Sprint("large", i))
		subs[i].Body = make([]byte, largePayload)
	}
	return subs
}

// eachAlone submits tasks one by one, from as many goroutines, so that they are joined.
func (w *worst) eachAlone(subs []store.Submission) {
	w.Helper()
	var wait sync.WaitGroup
	for i := range subs {
		wait.Go(func() {
			_, err := w.st.Submit(w.Context(), subs[i:i+1])
			assert.NoError(w, err)
		})
	}
	wait.Wait()
}

// taken numbers the claims of takeAll, for their nonces.
var taken atomic.Int64

// takeAll claims until so many tasks are taken.
func (w *worst) takeAll(n int) []store.Claimed {
	w.Helper()
	var all []store.Claimed
	for len(all) < n {
		c := claim(w.T, w.st, fmt.Sprint("take", taken.Add(1)), store.MaxClaim)
		require.NotEmpty(w, c.Tasks)
		all = append(all, c.Tasks...)
	}
	return all
}

// end settles the runs of large tasks at once.
func (w *worst) end(verb store.Verb, record []byte, held []store.Claimed) {
	w.Helper()
	runs := make([]store.Settlement, len(held))
	for i := range runs {
		runs[i] = store.Settlement{Run: held[i].Run, Kind: held[i].Kind, Verb: verb, Record: record, BodyLen: len(held[i].Body)}
	}
	out, err := w.st.Settle(w.Context(), runs)
	require.NoError(w, err)
	for i := range out {
		require.NoError(w, out[i].Err)
	}
}

// What is settled, or submitted each for itself, is split by its bytes; what is small goes together.
func TestCallsAreSplitByBytes(t *testing.T) {
	t.Parallel()
	w := newWorst(t)
	count := func(script string, call func()) (n int) {
		_, names := w.scripts(call)
		for _, name := range names {
			if strings.TrimPrefix(name, "plain") == script {
				n++
			}
		}
		return n
	}
	agent := agentOf
	for _, c := range []struct {
		name                       string
		body, record               int
		submits, settles, releases int
	}{
		{"small", 1, 1, 1, 1, 1},
		{"large bodies", 100 << 10, 1, 4, 4, 4},
		{"large records", 1, 100 << 10, 1, 4, 1},
		{"the largest", largePayload, largePayload, 8, 8, 8},
	} {
		subs := largeTasks(8, agent)
		for i := range subs {
			subs[i].ID, subs[i].Body = c.name+subs[i].ID, make([]byte, c.body)
		}
		var held []store.Claimed
		assert.Equal(t, c.submits, count("submit", func() { _, _, _ = w.st.SubmitEach(t.Context(), subs) }), c.name)
		held = w.takeAll(len(subs))
		assert.Equal(t, c.releases, count("settle", func() { w.end(store.VerbAgain, nil, held) }), c.name)
		held = w.takeAll(len(subs))
		assert.Equal(t, c.settles, count("settle", func() { w.end(store.VerbFail, make([]byte, c.record), held) }), c.name)
	}
	var touches []store.Touch
	for _, s := range largeTasks(8, agent) {
		touches = append(touches, touching(s))
	}
	assert.Equal(t, 8, count("touch", func() { _, _ = w.st.Touch(t.Context(), touches) }), "touches")
}

// boundedEach demands of each script of some calls that it is not slow: for each the best of the rounds counts. There are two at least, so
// that one meets what the one before it has left.
func (w *worst) boundedEach(name string, call func(round int)) {
	w.Helper()
	best := map[string]time.Duration{}
	for round := 0; round < 2 || round < mostRounds && slices.Max(slices.Collect(maps.Values(best))) > mostTime; round++ {
		worst := map[string]time.Duration{}
		took, names := w.scripts(func() { call(round) })
		for i, n := range names {
			worst[n] = max(worst[n], took[i])
		}
		for n, d := range worst {
			if b, ok := best[n]; !ok || d < b {
				best[n] = d
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(best)) {
		w.report(name+", "+n, []time.Duration{best[n]}, []string{n})
	}
}

// Nor do the largest payloads make a step long, beside a flood of small tasks.
func TestLargePayloadsOfTheWorstTenant(t *testing.T) { //nolint:paralleltest // it measures
	if testing.Short() || race.Enabled {
		t.Skip("it takes a while")
	}
	w := newWorst(t)
	w.waiting(w.agent, worstTasks, []byte("body"))
	record := make([]byte, largePayload)
	for name, agent := range map[string]func(round, i int) string{
		"of one agent":   func(round, _ int) string { return fmt.Sprint("one", round) },
		"of many agents": func(round, i int) string { return fmt.Sprint("many", round, "-", i) },
	} {
		w.boundedEach("large tasks "+name, func(round int) {
			subs := largeTasks(store.MaxClaim, func(i int) string { return agent(round, i) })
			w.eachAlone(subs)
			w.eachAlone(subs) // they exist
			small := slices.Clone(subs)
			for i := range small {
				small[i].Body = []byte("small")
			}
			_, _, err := w.st.SubmitEach(t.Context(), small)
			require.NoError(t, err)
			w.end(store.VerbAgain, nil, w.takeAll(len(subs)))
			w.end(store.VerbFail, record, w.takeAll(len(subs)))
		})
	}
}

// Nor does a page of an audit read more than a few large tasks.
func TestAuditsOfLargePayloads(t *testing.T) { //nolint:paralleltest // it measures
	if testing.Short() {
		t.Skip("it takes a while")
	}
	w := newWorst(t)
	const tasks = worstLarge / 4
	body := binary.AppendUvarint([]byte{3}, largePayload) // one field, as an audit looks for the group of a task in its body
	w.waiting("large", tasks, append(body, make([]byte, largePayload)...))
	w.do("HSET", part+"bytes", "large", tasks*largePayload>>10)
	w.do("HSET", part+"counters", "live", tasks)
	w.do("HSET", part+"kinds", "lk", tasks)
	w.boundedEach("audit of large tasks", func(int) {
		assert.Equal(t, tasks, w.audit().Tasks)
	})
}

// audit audits everything, and repairs what it finds.
func (w *worst) audit() inspect.AuditReport {
	w.Helper()
	s, err := core.New(w.st, core.Config{})
	require.NoError(w, err)
	report, err := s.Audit(w.Context(), inspect.AuditOptions{Repair: true})
	require.NoError(w, err)
	return report
}

// What is parked, and the kinds that run, are looked at page by page.
func TestAuditsOfManyKinds(t *testing.T) {
	t.Parallel()
	w := newWorst(t)
	const kinds = 300
	var subs []store.Submission
	for i := range kinds {
		s := sub("a", fmt.Sprint(i))
		s.Kind = fmt.Sprintf("kind%03d", i)
		subs = append(subs, s)
	}
	_, err := w.st.Submit(t.Context(), subs)
	require.NoError(t, err)
	for i := range 10 {
		claim(t, w.st, fmt.Sprint("park", i), store.MaxClaim)
	}
	for i := range kinds {
		w.do("HINCRBY", part+"parked", fmt.Sprintf("kind%03d", i), 3)
		w.do("HSET", part+"kinds", fmt.Sprintf("rkind%03d", i), 7)
	}
	report := w.audit()
	assert.GreaterOrEqual(t, report.Found, kinds)
	assert.Zero(t, w.audit().Found)
	stats, err := w.st.Stats(t.Context())
	require.NoError(t, err)
	for _, k := range stats.Kinds {
		require.Zero(t, k.Running, k.Kind)
	}
	n, err := w.c.HGet(t.Context(), part+"parked", "kind123").Int()
	require.NoError(t, err)
	assert.Equal(t, 1, n)
}
