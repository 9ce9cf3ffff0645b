package langgraph

// The calls that look for crons.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/fields"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// Bounds of a search. Crons are put in order here, as the store keeps them by time alone, so there is a bound to how many are read.
const (
	defaultLimit = 10
	mostLimit    = 1000
	mostCrons    = 10_000
	mostKept     = 16 << 20 // bytes of payloads: of what is held at once, and of an answer
)

// query is what a search asks for.
type query struct {
	assistant, thread string
	enabled           *bool
	metadata          fields.Fields
	limit, offset     int
	sortBy, order     string
	fields            []string // nil for all
}

// readFilter reads which crons are wanted, for a caller that may see them.
func (a *api) readFilter(r *http.Request, f fields.Fields) (*query, error) {
	q := &query{limit: defaultLimit, sortBy: "created_at", order: "desc"}
	_, err := f.Take("assistant_id", "a string", &q.assistant)
	if err == nil {
		_, err = f.Take("thread_id", "a string", &q.thread)
	}
	if err == nil {
		_, err = f.Take("enabled", "true or false", &q.enabled)
	}
	if err == nil {
		_, err = f.Take("metadata", "an object", &q.metadata)
	}
	switch {
	case err != nil:
		return nil, err
	case q.assistant != "":
		return q, a.host.Allow(r, q.assistant)
	case a.host.AllowAll(r) != nil:
		return nil, problem.New(core.CodeForbidden, "the credential is for single assistants: set assistant_id to one of them")
	default:
		return q, nil
	}
}

// sorts are what crons are put in order by.
var sorts = map[string]func(a, b *cron) int{
	"cron_id":       func(a, b *cron) int { return strings.Compare(a.ID, b.ID) },
	"assistant_id":  func(a, b *cron) int { return strings.Compare(a.Assistant, b.Assistant) },
	"thread_id":     func(a, b *cron) int { return nulls(a.Thread, b.Thread, strings.Compare) },
	"next_run_date": func(a, b *cron) int { return nulls(a.Next, b.Next, time.Time.Compare) },
	"end_time":      func(a, b *cron) int { return nulls(a.End, b.End, time.Time.Compare) },
	"created_at":    func(a, b *cron) int { return a.Created.Compare(b.Created) },
	"updated_at":    func(a, b *cron) int { return a.Updated.Compare(b.Updated) },
}

// nulls compares what may be missing, which is greater than all else, as in Postgres.
func nulls[T any](a, b *T, compare func(a, b T) int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return compare(*a, *b)
	}
}

// readPage reads in which order and how many are wanted.
func (q *query) readPage(f fields.Fields) error {
	for name, field := range map[string]struct {
		into any
		kind string
	}{
		"limit": {&q.limit, "a whole number"}, "offset": {&q.offset, "a whole number"}, "sort_by": {&q.sortBy, "a string"}, "sort_order": {&q.order, `"asc" or "desc"`},
		"select": {&q.fields, "an array of strings"},
	} {
		if _, err := f.Take(name, field.kind, field.into); err != nil {
			return err
		}
	}
	switch {
	case q.limit < 1 || q.limit > mostLimit:
		return &core.InvalidError{Field: "limit", Reason: fmt.Sprintf("must be between 1 and %d, not %d", mostLimit, q.limit)}
	case q.offset < 0:
		return &core.InvalidError{Field: "offset", Reason: fmt.Sprintf("must be at least 0, not %d", q.offset)}
	case sorts[q.sortBy] == nil:
		return &core.InvalidError{Field: "sort_by", Reason: "must be one of cron_id, assistant_id, thread_id, next_run_date, end_time, created_at and updated_at"}
	case q.order != "asc" && q.order != "desc":
		return &core.InvalidError{Field: "sort_order", Reason: `must be "asc" or "desc"`}
	}
	return f.Rest()
}

// matches reports whether a cron is wanted.
func (q *query) matches(c *cron) bool {
	if q.thread != "" && (c.Thread == nil || *c.Thread != q.thread) || q.enabled != nil && *q.enabled != c.Enabled {
		return false
	}
	if len(q.metadata) == 0 {
		return true
	}
	has, err := fields.Of("metadata", c.Metadata)
	for name, value := range q.metadata {
		if err != nil || !sameJSON(has[name], value) {
			return false
		}
	}
	return true
}

// sameJSON compares values regardless of spaces.
func sameJSON(a, b json.RawMessage) bool {
	var left, right bytes.Buffer
	return json.Compact(&left, a) == nil && json.Compact(&right, b) == nil && left.Len() > 0 && bytes.Equal(left.Bytes(), right.Bytes())
}

// find calls use with each cron that matches.
func (a *api) find(ctx context.Context, q *query, use func(c *cron)) error {
	l := core.List{Agent: q.assistant, Kind: Kind, Jobs: true, Limit: inspect.MaxPage}
	for read := 0; ; {
		tasks, next, err := a.scheduler.Tasks(ctx, l)
		if err != nil {
			return err
		}
		for i := range tasks {
			if c, is := shown(&tasks[i]); is && q.matches(c) {
				use(c)
			}
		}
		if l.Cursor = next; next == "" {
			return nil
		}
		if read += len(tasks); read > mostCrons {
			return problem.New(problem.CodeTooLarge, fmt.Sprintf("there are more than %d crons: set assistant_id to search those of one assistant, or list them by GET /v1/jobs", mostCrons))
		}
	}
}

// count is how many crons match.
func (a *api) count(r *http.Request) (int, any, error) {
	f, err := fields.Body(r)
	if err != nil {
		return 0, nil, err
	}
	q, err := a.readFilter(r, f)
	if err == nil {
		err = f.Rest()
	}
	n := 0
	if err == nil {
		err = a.find(r.Context(), q, func(*cron) { n++ })
	}
	return http.StatusOK, n, err
}

// search is a page of the crons that match.
func (a *api) search(r *http.Request) (int, any, error) {
	f, err := fields.Body(r)
	if err != nil {
		return 0, nil, err
	}
	q, err := a.readFilter(r, f)
	if err == nil {
		err = q.readPage(f)
	}
	if err != nil {
		return 0, nil, err
	}
	var all []*cron
	kept := 0
	if err := a.find(r.Context(), q, func(c *cron) {
		if kept += len(c.Payload); kept > mostKept {
			c.Payload, c.Metadata = nil, nil // read again if it is on the page
		}
		all = append(all, c)
	}); err != nil {
		return 0, nil, err
	}
	slices.SortStableFunc(all, func(a, b *cron) int {
		way := cmp.Or(sorts[q.sortBy](a, b), strings.Compare(a.ID, b.ID))
		if q.order == "desc" {
			return -way
		}
		return way
	})
	from := min(q.offset, len(all))
	return a.page(r.Context(), q, all[from:min(from+q.limit, len(all))])
}

// page is the answer with some crons.
func (a *api) page(ctx context.Context, q *query, crons []*cron) (int, any, error) {
	out, size := []any{}, 0
	for _, c := range crons {
		c, err := a.whole(ctx, c)
		if core.CodeOf(err) == core.CodeNotFound { // it has ended meanwhile
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		if size += len(c.Payload) + len(c.Metadata); size > mostKept {
			return 0, nil, problem.New(problem.CodeTooLarge, "the crons of this page are too large for one answer: ask for fewer with limit")
		}
		one, err := selected(c, q.fields)
		if err != nil {
			return 0, nil, err
		}
		out = append(out, one)
	}
	return http.StatusOK, out, nil
}

// whole is a cron with its payload, which is read again if it was not kept.
func (a *api) whole(ctx context.Context, c *cron) (*cron, error) {
	if c.Payload != nil {
		return c, nil
	}
	agent, task, err := taskOf(c.ID)
	if err != nil {
		return nil, err
	}
	return a.cron(ctx, agent, task)
}

// selected are the fields of a cron that are wanted.
func selected(c *cron, names []string) (any, error) {
	if names == nil {
		return c, nil
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	all, err := fields.Of("cron", data)
	if err != nil {
		return nil, err
	}
	all["now"] = nil // a field of the API that means the time of the server, which it does not send
	some := fields.Fields{}
	for _, name := range names {
		value, is := all[name]
		switch {
		case !is:
			return nil, &core.InvalidError{Field: "select", Reason: fmt.Sprintf("has %q, which is no field of a cron", name)}
		case value != nil:
			some[name] = value
		}
	}
	return some, nil
}
