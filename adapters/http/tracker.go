package http

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Calls about more than one task, and about the process itself.

// group answers with the counts of a group of an agent's tasks.
// The status of the group is part of the counts.
func (a *api) group(r *http.Request) (int, any, error) {
	counts, err := a.scheduler.Group(r.Context(), r.PathValue("agent"), r.PathValue("group"))
	return http.StatusOK, counts, err
}

// agents answers with a page of the agents that have live tasks.
// Only callers for all agents may see who exists.
func (a *api) agents(r *http.Request) (int, any, error) {
	limit, cursor, err := a.pageOfAll(r)
	if err != nil {
		return 0, nil, err
	}
	agents, next, err := a.scheduler.Agents(r.Context(), limit, cursor)
	if agents == nil {
		agents = []model.AgentStats{}
	}
	return http.StatusOK, struct {
		Agents []model.AgentStats `json:"agents"`
		Next   string             `json:"next_cursor"`
	}{agents, next}, err
}

// pauses answers with a page of all that is paused.
func (a *api) pauses(r *http.Request) (int, any, error) {
	limit, cursor, err := a.pageOfAll(r)
	if err != nil {
		return 0, nil, err
	}
	pauses, next, err := a.scheduler.Pauses(r.Context(), limit, cursor)
	return http.StatusOK, struct {
		Pauses []model.PauseInfo `json:"pauses"`
		Next   string            `json:"next_cursor"`
	}{pauses, next}, err
}

// pageOfAll reads limit and cursor of a listing over all agents, which a caller for some agents may not see.
// Checked in this order, so that a mistake in the request is named before the grant is looked at.
func (a *api) pageOfAll(r *http.Request) (limit int, cursor string, err error) {
	q, err := query(r, "limit", "cursor")
	if err == nil {
		limit, err = pageSize(q)
	}
	if err == nil {
		err = a.allowAll(r)
	}
	return limit, q.Get("cursor"), err
}

// stats answers with the counters of the whole store.
func (a *api) stats(r *http.Request) (int, any, error) {
	q, err := query(r, "window")
	if err == nil {
		err = a.allowAll(r)
	}
	if err != nil {
		return 0, nil, err
	}
	if text := q.Get("window"); text != "" {
		return a.window(r, text)
	}
	stats, err := a.scheduler.Stats(r.Context())
	return http.StatusOK, stats, err
}

// window answers with the runs of the last time.
func (a *api) window(r *http.Request, text string) (int, any, error) {
	d, err := inspect.ParseDuration(text)
	if err != nil {
		return 0, nil, &core.InvalidError{Field: "window", Reason: "must be a duration such as 1h or 24h, not " + strconv.Quote(text)}
	}
	window, err := a.scheduler.Window(r.Context(), d)
	return http.StatusOK, window, err
}

// kinds answers with all kinds: there are few, so that one page has them.
func (a *api) kinds(r *http.Request) (int, any, error) {
	_, err := query(r)
	if err == nil {
		err = a.allowAll(r)
	}
	if err != nil {
		return 0, nil, err
	}
	kinds, err := a.scheduler.DescribeKinds(r.Context())
	return http.StatusOK, kinds, err
}

// processes answers with the processes that have lately reported what they run.
func (a *api) processes(r *http.Request) (int, any, error) {
	_, err := query(r)
	if err == nil {
		err = a.allowAll(r)
	}
	if err != nil {
		return 0, nil, err
	}
	processes, err := a.scheduler.Processes(r.Context())
	if processes == nil {
		processes = []model.Process{}
	}
	return http.StatusOK, struct {
		Processes []model.Process `json:"processes"`
	}{processes}, err
}

// metrics answers a scrape: the metrics are of all agents together.
// The grant for some agents is not enough, as no series is theirs alone.
func (a *api) metrics(w http.ResponseWriter, r *http.Request) {
	if err := a.allowAll(r); err != nil {
		a.refuse(w, r, err)
		return
	}
	a.config.Metrics.ServeHTTP(w, r)
}

// health answers that the process is up, regardless of its store.
// Restarting a process because its store is away would not help.
func (a *api) health(*http.Request) (int, any, error) {
	return http.StatusOK, struct {
		Status  string `json:"status"`
		Version string `json:"version,omitempty"`
	}{"ok", a.config.Version}, nil
}

// readiness is what a process reports about itself.
// It has no name of an agent or a task, as it needs no credential.
type readiness struct {
	Status    string `json:"status"` // ready, or degraded while partitions of the store are away
	Slots     slots  `json:"slots"`
	Abandoned int    `json:"abandoned"` // handlers that ignore their cancelled contexts
	Away      []int  `json:"away,omitempty"`
}

// slots are how many runs the process may have at once, and how many it has.
type slots struct {
	Total int `json:"total"`
	InUse int `json:"in_use"`
}

// ready answers whether the process can do its work. It can while some partitions are away: taking it out of service would stop
// the others too. The store's error is for the log.
func (a *api) ready(r *http.Request) (int, any, error) {
	// The scheduler first, as it costs nothing to ask.
	own := a.scheduler.Ready()
	if stuck, ok := errors.AsType[*model.AbandonedError](own); ok {
		return 0, nil, stuck
	}
	if err := a.config.Ready(r.Context()); err != nil {
		a.config.Logger.LogAttrs(r.Context(), slog.LevelDebug, "not ready", slog.Any("err", err))
		return 0, nil, errNotReady
	}
	st := a.scheduler.Slots()
	says := readiness{Status: "ready", Slots: slots{st.Total, st.InUse}, Abandoned: st.Abandoned}
	if away, ok := errors.AsType[*core.AwayError](own); ok {
		says.Status, says.Away = "degraded", away.Partitions
	}
	return http.StatusOK, says, nil
}
