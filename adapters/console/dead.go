package console

// The page of dead tasks: by what went wrong, over all of them.

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// deadPage is the page of dead tasks.
type deadPage struct {
	Filter      filter
	First, Rest []filterField
	Open        bool
	Groups      []deadRow
	Others      int    // groups that are not shown
	Total       string // tasks that were counted
	On          string // the address that counts on; empty once all are counted
	Capped      bool   // there are more than are counted
	List        string
	Orders      []bulkOrder
}

// deadRow are dead tasks that failed alike.
type deadRow struct {
	inspect.DeadGroup

	Share, Names, Of string // of all that were counted; the kinds; how many agents
	List             string
	Spark            spark // when they ended, from the first of all until now
	Orders           []bulkOrder
}

// Bounds of the count of dead tasks.
const (
	groupsShown  = 20
	kindsNamed   = 3
	deadReads    = 5                // calls of the store for a page
	mostDead     = 20_000           // tasks that are counted
	mostTallies  = 16               // filters whose counts are kept
	tallyFresh   = 10 * time.Second // a count that is complete is shown for so long
	tallyTooLong = 2 * time.Minute  // one that no page has gone on with is begun again
)

// dead is the page of dead tasks.
func (c *console) dead(v *visit) (*page, error) {
	f := filterOf(v.q).with("cause", "").with("status", "")
	if err := v.may(model.ActionRead, f["agent"]); err != nil {
		return nil, err
	}
	p := deadPage{
		Filter: f, First: f.fields("text", "agent", "kind", "since"), Rest: f.fields("until", "key", "label", "group", "session"), Open: f.has("until", "key", "label", "group", "session"),
	}
	failed := f.with("status", "failed")
	l, err := failed.list(v)
	if err != nil {
		return nil, err
	}
	t := c.tallies.find(failed.at(""), v.now, v.q.Get("more") != "")
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.countOn(v, c.scheduler, l); err != nil {
		return nil, err
	}
	p.List = failed.at("/tasks")
	p.Total, p.Capped = count(t.total), t.total >= mostDead && t.cursor != ""
	if !t.done {
		p.On = f.at("/dead", "more", "1")
	}
	steers := v.steers(f["agent"])
	p.Groups, p.Others = t.rows(failed, steers, v.now)
	if steers && t.total > 0 {
		p.Orders = ordersFor(failed)
	}
	return &page{name: "dead", title: "Dead tasks", body: p}, nil
}

// tallies are the counts of dead tasks that are under way, or were made just now, by filter. A page goes on with a count where the one before has stopped,
// so that no page takes long however many are dead.
type tallies struct {
	mu sync.Mutex
	of map[string]*tally
}

// tally is a count of dead tasks, by what went wrong. Its mutex is held while it goes on.
type tally struct {
	mu     sync.Mutex
	groups map[string]*inspect.DeadGroup
	total  int
	cursor string // where it goes on
	done   bool
	at     time.Time // of the last page that it was on; guarded by tallies
}

// find is the count of a filter: a new one, unless one is under way or fresh. on says that a page wants to go on with its count.
func (a *tallies) find(key string, now time.Time, on bool) *tally {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.of, func(_ string, t *tally) bool { return now.Sub(t.at) > tallyTooLong })
	t := a.of[key]
	if t == nil || !on && now.Sub(t.at) > tallyFresh {
		if len(a.of) >= mostTallies {
			oldest := slices.MinFunc(slices.Collect(maps.Keys(a.of)), func(x, y string) int { return a.of[x].at.Compare(a.of[y].at) })
			delete(a.of, oldest)
		}
		t = &tally{groups: map[string]*inspect.DeadGroup{}}
		if a.of == nil {
			a.of = map[string]*tally{}
		}
		a.of[key] = t
	}
	t.at = now
	return t
}

// forget drops all counts. One that a page goes on with meanwhile ends with that page.
func (a *tallies) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.of)
}

// countOn counts the next dead tasks.
func (t *tally) countOn(v *visit, s *core.Scheduler, l core.List) error {
	if t.done {
		return nil
	}
	l.Limit, l.Reads, l.Cursor = inspect.MaxPage, deadReads, t.cursor
	tasks, next, err := s.Tasks(v.r.Context(), l)
	if err != nil {
		return err
	}
	inspect.GroupDead(t.groups, tasks)
	t.total, t.cursor = t.total+len(tasks), next
	t.done = next == "" || t.total >= mostDead
	return nil
}

// rows are the largest groups, and how many others there are.
func (t *tally) rows(failed filter, steers bool, now time.Time) ([]deadRow, int) {
	first := now
	for _, g := range t.groups {
		if g.First.Before(first) {
			first = g.First
		}
	}
	groups := slices.SortedFunc(maps.Values(t.groups), func(a, b *inspect.DeadGroup) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), b.Last.Compare(a.Last), strings.Compare(a.Cause, b.Cause))
	})
	others := max(len(groups)-groupsShown, 0)
	var out []deadRow
	for _, g := range groups[:len(groups)-others] {
		alike := failed.with("cause", g.Cause)
		row := deadRow{DeadGroup: *g, Share: percent(int64(g.Tasks), int64(t.total)), Names: mostOf(g.Kinds), Of: counted(len(g.Agents), "agent"), List: alike.at("/tasks")}
		row.Spark = endsOf(g.Ended, first, now)
		row.Kinds, row.Agents, row.Ended = nil, nil, nil // the count goes on with these while the page is written
		if steers {
			row.Orders = ordersFor(alike)
		}
		out = append(out, row)
	}
	return out, others
}

// deadSteps is how many parts the line of a group has.
const deadSteps = 32

// endsOf draws how many tasks ended when, between two times.
func endsOf(ended []time.Time, first, now time.Time) spark {
	values := make([]float64, deadSteps)
	whole := max(now.Sub(first), time.Second)
	for _, at := range ended {
		values[min(max(int(deadSteps*float64(at.Sub(first))/float64(whole)), 0), deadSteps-1)]++
	}
	return sparkOf(values, "when they failed, over the last "+rough(whole))
}

// mostOf names the kinds of which there are most.
func mostOf(kinds map[string]int) string {
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int { return cmp.Or(cmp.Compare(kinds[b], kinds[a]), strings.Compare(a, b)) })
	more := ""
	if n := len(names) - kindsNamed; n > 0 {
		names, more = names[:kindsNamed], " and "+count(n)+" more"
	}
	return short(strings.Join(names, ", ")) + more
}
