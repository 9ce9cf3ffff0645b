package console

// The choice of tasks that a page shows, and that an order for all of them is about: every part of it is in the address.

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// filter is a choice of tasks, by the names that addresses have for its parts. A part that is not given is absent.
type filter map[string]string

// filterNames are the parts of a filter.
var filterNames = []string{"status", "agent", "kind", "key", "label", "group", "session", "text", "cause", "due", "since", "until"}

// filterOf is the filter of an address.
func filterOf(q url.Values) filter {
	f := filter{}
	for _, name := range filterNames {
		if value := strings.TrimSpace(q.Get(name)); value != "" {
			f[name] = value
		}
	}
	return f
}

// with is the filter with another value of a part; without that part if it is empty.
func (f filter) with(name, value string) filter {
	out := maps.Clone(f)
	if out[name] = value; value == "" {
		delete(out, name)
	}
	return out
}

// at is the address of a page about the tasks of the filter, with more names and values.
func (f filter) at(path string, more ...string) string {
	q := url.Values{}
	for name, value := range f {
		q.Set(name, value)
	}
	for pair := range slices.Chunk(more, 2) {
		if pair[1] != "" {
			q.Set(pair[0], pair[1])
		}
	}
	if len(q) == 0 {
		return Path + path
	}
	return Path + path + "?" + q.Encode()
}

// overdue is the status, in addresses, of tasks that are due and could start.
const overdue = "overdue"

// list is the filter as the scheduler reads it.
func (f filter) list(v *visit) (core.List, error) {
	l := core.List{Agent: f["agent"], Kind: f["kind"], Key: f["key"], Group: f["group"], Session: f["session"], Text: f["text"], Cause: f["cause"]}
	ended := []core.Status{core.StatusFailed}
	if l.Agent != "" {
		ended = append(ended, core.StatusCompleted, core.StatusCancelled)
	}
	switch status := f["status"]; {
	case status == overdue:
		l.Overdue = true
	case status != "":
		l.Status = []core.Status{core.Status(status)}
	case f["since"] != "" || f["until"] != "":
		l.Status = ended
	case l.Agent == "":
		l.Status = []core.Status{core.StatusWaiting, core.StatusInProgress}
	}
	if f["label"] != "" {
		name, value, err := inspect.ParseLabel(f["label"])
		if err != nil {
			return l, err
		}
		l.Labels = map[string]string{name: value}
	}
	if f["due"] != "" {
		within, err := inspect.ParseDuration(f["due"])
		if err != nil || within < 0 {
			return l, &core.InvalidError{Field: "due", Reason: "must be how soon, such as 1h or 7d"}
		}
		l.DueBy = v.now.Add(within)
	}
	var err error
	if l.Since, err = v.scheduler.TimeOrAgo(v.r.Context(), "since", f["since"]); err == nil {
		l.Until, err = v.scheduler.TimeOrAgo(v.r.Context(), "until", f["until"])
	}
	return l, err
}

// Orders that a list of tasks can have, in addresses.
var sorts = []struct{ name, label string }{{"", "as found"}, {"due", "Due, soonest first"}, {"ended", "Ended, last first"}, {"created", "Created, last first"}}

// sortWord says by what a sorted list is in order.
func sortWord(by string) string {
	for _, s := range sorts {
		if s.name == by {
			return strings.ToLower(s.label)
		}
	}
	return by
}

// orderIn says by what the list of the filter is in order, where it is not sorted.
func (f filter) orderIn() string {
	ended := f["status"] == "failed" || f["status"] == "" && f.has("since", "until")
	switch status := f["status"]; {
	case f["agent"] != "" && status == "waiting":
		return "by due time"
	case f["agent"] != "" && (status != "" && status != overdue || ended):
		return "by id"
	case f["agent"] != "":
		return "waiting ones by due time, then running, held and ended ones, by id"
	case ended:
		return "the last ended first"
	case status == "in_progress":
		return "by the end of their leases"
	case status == overdue:
		return "agents that have waited longest first"
	default:
		return "agent by agent, in no order of their own"
	}
}

// sorted puts tasks into an order.
func sorted(tasks []core.TaskInfo, by string) {
	key := func(t *core.TaskInfo) (at time.Time, last bool) {
		switch by {
		case "due":
			return t.NextRun, false
		case "ended":
			return t.Finished, true
		default:
			return t.Submitted, true
		}
	}
	slices.SortStableFunc(tasks, func(a, b core.TaskInfo) int {
		x, last := key(&a)
		y, _ := key(&b)
		switch {
		case x.IsZero() || y.IsZero(): // what has no such time comes last
			return cmp.Compare(truth(x.IsZero()), truth(y.IsZero()))
		case last:
			return y.Compare(x)
		default:
			return x.Compare(y)
		}
	})
}

// truth is 1 for true.
func truth(is bool) int {
	if is {
		return 1
	}
	return 0
}

// narrows reports whether the filter has a part beside the status.
func (f filter) narrows() bool { return len(f.with("status", "")) > 0 }

// filterField is a part of a filter in a form.
type filterField struct{ Name, Label, Value, Hint string }

// fields are the parts of a filter that a form has: those that are wanted most, and the others.
func (f filter) fields(names ...string) []filterField {
	var out []filterField
	for _, one := range []filterField{
		{Name: "text", Label: "Id, or error", Hint: "a part of it"},
		{Name: "agent", Label: "Agent"},
		{Name: "kind", Label: "Kind"},
		{Name: "key", Label: "Limit key"},
		{Name: "label", Label: "Label", Hint: "name=value"},
		{Name: "group", Label: "Group"},
		{Name: "session", Label: "Session"},
		{Name: "due", Label: "Due within", Hint: "such as 1h"},
		{Name: "since", Label: "Ended since", Hint: "such as 1d"},
		{Name: "until", Label: "Ended before", Hint: "such as 2h"},
	} {
		if slices.Contains(names, one.Name) {
			one.Value = f[one.Name]
			out = append(out, one)
		}
	}
	return out
}

// has reports whether the filter has one of some parts.
func (f filter) has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return f[name] != "" })
}
