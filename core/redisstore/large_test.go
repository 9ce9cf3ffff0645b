package redisstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// largeTasks are tasks of the agents that are named with the largest payloads.
func largeTasks(n int, agent func(i int) string) []core.Submission {
	subs := make([]core.Submission, n)
	for i := range subs {
		subs[i] = sub(agent(i), fmt.Sprint("large", i))
		subs[i].Body = make([]byte, largePayload)
	}
	return subs
}

// eachAlone submits tasks one by one, from as many goroutines, so that they are joined.
func (w *worst) eachAlone(subs []core.Submission) {
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

// takeAll claims until so many tasks are taken.
func (w *worst) takeAll(nonce string, n int) []core.Claimed {
	w.Helper()
	var all []core.Claimed
	for i := 0; len(all) < n; i++ {
		c := claim(w.T, w.st, fmt.Sprint(nonce, i), core.MaxClaim)
		require.NotEmpty(w, c.Tasks)
		all = append(all, c.Tasks...)
	}
	return all
}

// end settles the runs of large tasks at once.
func (w *worst) end(verb core.Verb, record []byte, held []core.Claimed) {
	w.Helper()
	runs := make([]core.Settlement, len(held))
	for i := range runs {
		runs[i] = core.Settlement{Run: held[i].Run, Kind: held[i].Kind, Verb: verb, Record: record, BodyLen: len(held[i].Body)}
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
			if name == script {
				n++
			}
		}
		return n
	}
	agent := func(int) string { return "a" }
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
		var held []core.Claimed
		assert.Equal(t, c.submits, count("submit", func() { _, _, _ = w.st.SubmitEach(t.Context(), subs) }), c.name)
		held = w.takeAll(c.name, len(subs))
		assert.Equal(t, c.releases, count("settle", func() { w.end(core.VerbAgain, nil, held) }), c.name)
		held = w.takeAll(c.name+"again", len(subs))
		assert.Equal(t, c.settles, count("settle", func() { w.end(core.VerbFail, make([]byte, c.record), held) }), c.name)
	}
	touches := largeTasks(8, agent)
	for i := range touches {
		touches[i].Pulse = &core.Pulse{Delay: time.Hour}
	}
	assert.Equal(t, 8, count("touch", func() { _, _ = w.st.Submit(t.Context(), touches) }), "touches")
}
