package console

// The list of tasks, of one agent or of all, and the search for one.

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// tasksPage is a page of the list of tasks.
type tasksPage struct {
	Filter      filter
	First, Rest []filterField // of the form: those that are wanted most, and the others
	Open        bool          // one of the others is set
	Tabs        []statusTab
	Tasks       []core.TaskInfo
	Begun       string // the address of the first page, on a later one
	More        string
	Orders      []bulkOrder
	Ended       bool // the tasks have ended
	Ticks       bool // they can be replayed one by one
	All         string
	Sorts       []sortLink
	Order       string // by what the list is in order
	Unsorted    bool   // there are too many to sort: some are shown as they were found
	Plain       string // the list that is not sorted
}

// sortLink is an order of the list.
type sortLink struct {
	Value, Label string
	Current      bool
}

// statusTab is a status that the list can show.
type statusTab struct {
	Label, To, Count string
	Current          bool
}

// bulkOrder is an order for all tasks of a filter.
type bulkOrder struct {
	Label, To string
	Danger    bool
}

// mostListed is how many calls of the store a page of the list makes for its tasks.
const mostListed = 8

// Parts of the filter that the form of the list has.
var (
	firstFilters = []string{"text", "agent", "kind"}
	restFilters  = []string{"key", "label", "group", "session", "due", "since", "until"}
)

// tasks is a page of the list of tasks.
func (c *console) tasks(v *visit) (*page, error) {
	f := filterOf(v.q)
	if err := v.may(model.ActionRead, f["agent"]); err != nil {
		if f["agent"] == "" {
			return single(err)
		}
		return nil, err
	}
	p := tasksPage{Filter: f, First: f.fields(firstFilters...), Rest: f.fields(restFilters...), Open: f.has(restFilters...), All: Path + "/tasks"}
	l, err := f.list(v)
	if err != nil {
		return nil, err
	}
	p.Ended = l.Status != nil && !slices.ContainsFunc(l.Status, func(s core.Status) bool { return !s.Finished() })
	if err := listed(v, &p, l); err != nil {
		return nil, err
	}
	if p.Tabs, err = c.statusTabs(v, f); err != nil {
		return nil, err
	}
	if v.steers(f["agent"]) {
		p.Orders, p.Ticks = ordersFor(f), f["status"] == "failed"
	}
	return &page{name: "tasks", title: "Tasks", body: p}, nil
}

// listed reads the tasks of a page. They are sorted if all that match are found by the calls of one page.
func listed(v *visit, p *tasksPage, l core.List) error {
	by, cursor := v.q.Get("sort"), v.q.Get("cursor")
	for _, s := range sorts {
		p.Sorts = append(p.Sorts, sortLink{s.name, s.label, s.name == by})
	}
	if !slices.ContainsFunc(p.Sorts, func(s sortLink) bool { return s.Current }) {
		return &core.InvalidError{Field: "sort", Reason: "must be due, ended or created"}
	}
	l.Limit, l.Reads, p.Order = tasksShown, mostListed, p.Filter.orderIn()
	from, sort := 0, by != ""
	if sort {
		l.Limit = inspect.MaxPage
		from, _ = strconv.Atoi(cursor)
	} else {
		l.Cursor = cursor
	}
	tasks, next, err := v.scheduler.Tasks(v.r.Context(), l)
	if err != nil {
		return err
	}
	p.Tasks = tasks
	switch {
	case sort && next == "":
		sorted(tasks, by)
		from = min(max(from, 0), len(tasks))
		p.Order = sortWord(by)
		if p.Tasks = tasks[from:min(from+tasksShown, len(tasks))]; from+tasksShown < len(tasks) {
			p.More = p.Filter.at("/tasks", "sort", by, "cursor", strconv.Itoa(from+tasksShown))
		}
	case sort:
		p.Unsorted, p.Plain = true, p.Filter.at("/tasks")
		p.Tasks = tasks[:min(tasksShown, len(tasks))]
	case next != "":
		p.More = p.Filter.at("/tasks", "cursor", next)
	}
	if cursor != "" {
		p.Begun = p.Filter.at("/tasks", "sort", by)
	}
	return nil
}

// statusTabs are the statuses that the list can show of the filter, with the counts that the store keeps: of all agents, or of a kind.
func (c *console) statusTabs(v *visit, f filter) ([]statusTab, error) {
	counts := map[string]int64{}
	if bare := f.with("status", "").with("kind", ""); len(bare) == 0 {
		stats, err := c.scheduler.Stats(v.r.Context())
		if err != nil {
			return nil, err
		}
		v.now = stats.Now
		counts = countsOf(&stats, f["kind"])
	}
	shown := []struct{ label, status string }{{"Live", ""}, {"Due now", overdue}, {"Running", "in_progress"}, {"Waiting", "waiting"}, {"Dead", "failed"}}
	if f["agent"] != "" {
		shown = append(shown, []struct{ label, status string }{{"Completed", "completed"}, {"Cancelled", "cancelled"}}...)
		shown[0].label = "All"
	}
	var out []statusTab
	for _, s := range shown {
		tab := statusTab{Label: s.label, To: f.with("status", s.status).at("/tasks"), Current: f["status"] == s.status}
		if n, known := counts[s.status]; known {
			tab.Count = count(n)
		}
		out = append(out, tab)
	}
	return out, nil
}

// countsOf are how many tasks there are now of a status, as far as the store counts them: of a kind, or of all if it is empty.
func countsOf(s *inspect.Stats, kind string) map[string]int64 {
	if kind == "" {
		return map[string]int64{"": s.Waiting + s.Resting + s.InProgress, "in_progress": s.InProgress, "waiting": s.Waiting + s.Resting}
	}
	for i := range s.Kinds {
		if k := &s.Kinds[i]; k.Kind == kind {
			return map[string]int64{"": k.Live, "in_progress": k.Running, "waiting": k.Live - k.Running}
		}
	}
	return map[string]int64{"": 0, "in_progress": 0, "waiting": 0}
}

// verbsFor are the orders for all tasks of a filter. Without a filter there are none: everything is paused on the page of pauses.
func verbsFor(f filter) []operate.BulkVerb {
	switch status := f["status"]; {
	case status == "failed":
		return []operate.BulkVerb{operate.BulkReplay, operate.BulkDelete}
	case status == "completed" || status == "cancelled", status == "" && f.has("since", "until"):
		return []operate.BulkVerb{operate.BulkDelete}
	case !f.narrows():
		return nil
	case status == "waiting" || status == overdue:
		return []operate.BulkVerb{operate.BulkRun, operate.BulkPause, operate.BulkResume, operate.BulkCancel}
	default:
		return []operate.BulkVerb{operate.BulkPause, operate.BulkResume, operate.BulkCancel}
	}
}

// ordersFor are the buttons for all tasks of a filter.
func ordersFor(f filter) []bulkOrder {
	var out []bulkOrder
	for _, do := range verbsFor(f) {
		out = append(out, bulkOrder{Label: bulkVerbs[do].label + " all", To: f.at("/bulk", "do", string(do)), Danger: bulkVerbs[do].danger})
	}
	return out
}

// mostSplits is at how many places a search is taken for an agent and the id of a task.
const mostSplits = 4

// find leads to the task or the agent that a search names: by the agent and the id with a slash between, or by the id of the agent. Any other text leads to
// the list of tasks whose ids or errors have it.
func (c *console) find(v *visit) (*page, error) {
	text := strings.TrimSpace(v.q.Get("q"))
	if text == "" {
		return &page{to: Path + "/tasks"}, nil
	}
	name := strings.TrimPrefix(text, "/") // the key that leads to the field, typed once more
	for from, n := 0, 0; n < mostSplits; n++ {
		cut := strings.IndexAny(name[from:], "/ ")
		if cut < 0 {
			break
		}
		agent, id := strings.TrimSpace(name[:from+cut]), strings.TrimSpace(name[from+cut+1:])
		from += cut + 1
		if there, err := c.isTask(v, agent, id); there || err != nil {
			return &page{to: taskURL(agent, id)}, err
		}
	}
	for _, agent := range slices.Compact([]string{text, name}) {
		if there, err := c.isAgent(v, agent); there || err != nil {
			return &page{to: agentURL(agent)}, err
		}
	}
	if v.may(model.ActionRead, "") != nil {
		return nil, problem.New(core.CodeNotFound, "there is no such task or agent that you may see: type the agent and the id of a task, as agent/id, or the id of an agent")
	}
	return &page{to: filter{"text": text}.at("/tasks")}, nil
}

// sees reports whether the visitor may see the tasks of an agent.
func (v *visit) sees(agent string) bool { return v.may(model.ActionRead, agent) == nil }

// isTask reports whether an agent that the visitor may see has a task.
func (c *console) isTask(v *visit, agent, id string) (bool, error) {
	if agent == "" || id == "" || !v.sees(agent) {
		return false, nil
	}
	_, err := c.scheduler.Task(v.r.Context(), agent, id)
	return err == nil, unlessAbsent(err)
}

// isAgent reports whether there is an agent with tasks, or a profile, that the visitor may see.
func (c *console) isAgent(v *visit, agent string) (bool, error) {
	if !v.sees(agent) {
		return false, nil
	}
	tasks, _, err := c.scheduler.Tasks(v.r.Context(), core.List{Agent: agent, Brief: true, Limit: 1})
	if len(tasks) > 0 || unlessAbsent(err) != nil {
		return true, unlessAbsent(err)
	}
	_, err = c.scheduler.Profile(v.r.Context(), agent)
	return err == nil, unlessAbsent(err)
}

// unlessAbsent is an error other than that something does not exist, or cannot.
func unlessAbsent(err error) error {
	if code := core.CodeOf(err); code == core.CodeNotFound || code == core.CodeInvalid {
		return nil
	}
	return err
}
