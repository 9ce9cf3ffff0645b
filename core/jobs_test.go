package core_test

// The registry over all agents, and lists by label.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// allJobs reads pages until the last one, and returns how often each job came, and how many pages were empty.
func (w *world) allJobs(l core.List) (jobs map[string]int, pages, empty int) {
	w.Helper()
	jobs, l.Jobs = map[string]int{}, true
	for {
		before := w.store.count("read")
		page, next, err := w.s.Tasks(w.Context(), l)
		require.NoError(w, err)
		// 128 agents, or 128 pages of tasks, and the pages of agents.
		require.LessOrEqual(w, w.store.count("read")-before, 128+128, "a page has a bounded cost")
		pages++
		if len(page) == 0 {
			empty++
		}
		for i := range page {
			jobs[page[i].Agent+"/"+page[i].ID]++
		}
		if l.Cursor = next; next == "" {
			return jobs, pages, empty
		}
	}
}

// All jobs of all agents come on pages of bounded cost, each once, however few agents have some.
func TestJobsOfAllAgents(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for i := range 400 {
			agent := fmt.Sprintf("agent<%d>", i)
			w.submit(core.NewTask{Agent: agent, ID: "once", Kind: "k", Delay: time.Hour})
			if i%20 == 0 {
				w.submit(core.NewTask{Agent: agent, ID: "job", Kind: "k", Every: time.Hour, Labels: map[string]string{"tier": fmt.Sprint(i % 40)}},
					core.NewTask{Agent: agent, ID: "by hand", Kind: "other", Manual: true, Labels: map[string]string{"tier": "0", "user_name": "ann"}})
			}
		}
		jobs, pages, _ := w.allJobs(core.List{Limit: 7})
		assert.Len(w, jobs, 40)
		for name, n := range jobs {
			assert.Equal(w, 1, n, name)
		}
		assert.Greater(w, pages, 5)
		for _, c := range []struct {
			list core.List
			want int
		}{
			{core.List{Kind: "other"}, 20},
			{core.List{Labels: map[string]string{"tier": "0"}}, 30},
			{core.List{Labels: map[string]string{"tier": "0"}, Kind: "k"}, 10},
			{core.List{Labels: map[string]string{"user_name": "ann", "tier": "0"}}, 20},
			{core.List{Labels: map[string]string{"tier": "gold"}}, 0},
			{core.List{Labels: map[string]string{"none": ""}}, 0},
			{core.List{Agent: "agent<20>", Labels: map[string]string{"tier": "20"}}, 1},
		} {
			jobs, _, _ := w.allJobs(c.list)
			assert.Len(w, jobs, c.want, "%+v", c.list)
		}
		_, pages, empty := w.allJobs(core.List{Kind: "unknown"})
		assert.Equal(w, pages, empty, "a page may be empty and have a cursor")
		assert.Greater(w, pages, 2)
	})
}

// An agent with many other tasks takes several pages, and none of them longer than any other.
func TestJobsBehindManyTasks(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for first := range 2 {
			var tasks []core.NewTask
			for i := range 500 {
				tasks = append(tasks, core.NewTask{Agent: "a", ID: fmt.Sprint(first, i), Kind: "k", Delay: time.Minute, Info: fmt.Appendf(nil, "%2000d", i)})
			}
			w.submit(tasks...)
		}
		w.submit(core.NewTask{Agent: "a", ID: "job", Kind: "k", Every: time.Hour, Delay: time.Hour}, core.NewTask{Agent: "b", ID: "job", Kind: "k", Every: time.Hour})
		jobs, _, _ := w.allJobs(core.List{Limit: 1})
		assert.Equal(w, map[string]int{"a/job": 1, "b/job": 1}, jobs)
	})
}

func TestJobsOfAllAgentsRefuse(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for cursor, want := range map[string]string{
			"%": "cursor must be the next_cursor of a page over all agents", "bm8": "cursor must be the next_cursor of a page over all agents",
		} {
			_, _, err := w.s.Tasks(w.Context(), core.List{Jobs: true, Cursor: cursor})
			require.EqualError(w, err, want)
		}
		_, _, err := w.s.Tasks(w.Context(), core.List{Jobs: true, Labels: map[string]string{"": "x"}})
		require.Equal(w, core.CodeInvalid, core.CodeOf(err))
		_, _, err = w.s.Tasks(w.Context(), core.List{Agent: "a", Brief: true, Labels: map[string]string{"a": "x"}})
		require.ErrorContains(w, err, "brief cannot be combined")
		for _, bad := range []string{"", "x", "=x"} {
			_, _, err := inspect.ParseLabel(bad)
			require.ErrorContains(w, err, "label must be name=value")
		}
	})
}
