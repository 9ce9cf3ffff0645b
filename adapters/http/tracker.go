package http

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Calls about more than one task, and about the process itself.

// group answers with the counts of a group of an agent's tasks.
// The status of the group is part of the counts.
func (a *api) group(r *http.Request, _ operation.None) (model.GroupCounts, error) {
	return a.scheduler.Group(r.Context(), r.PathValue("agent"), r.PathValue("group"))
}

// agents answers with a page of the agents that have live tasks.
func (a *api) agents(r *http.Request, p operation.Page) (operation.Agents, error) {
	all, next, err := a.scheduler.Agents(r.Context(), p.Limit, p.Cursor)
	return operation.Agents{Agents: some(all), Next: next}, err
}

// pauses answers with a page of all that is paused.
func (a *api) pauses(r *http.Request, p operation.Page) (operation.Pauses, error) {
	all, next, err := a.scheduler.Pauses(r.Context(), p.Limit, p.Cursor)
	return operation.Pauses{Pauses: some(all), Next: next}, err
}

// stats answers with the counters of the whole store, or with the runs of the last time.
func (a *api) stats(r *http.Request, q operation.Window) (any, error) {
	if q.Window == "" {
		return a.scheduler.Stats(r.Context())
	}
	d, err := inspect.ParseDuration(q.Window)
	if err != nil {
		return nil, &core.InvalidError{Field: "window", Reason: "must be a duration such as 1h or 24h, not " + strconv.Quote(q.Window)}
	}
	return a.scheduler.Window(r.Context(), d)
}

// processes answers with the processes that have lately reported what they run.
func (a *api) processes(r *http.Request, _ operation.Empty) (operation.Processes, error) {
	all, err := a.scheduler.Processes(r.Context())
	return operation.Processes{Processes: some(all)}, err
}

// health answers that the process is up, regardless of its store.
// Restarting a process because its store is away would not help.
func (a *api) health(*http.Request, operation.None) (operation.Health, error) {
	return operation.Health{Status: "ok", Version: a.config.Version}, nil
}

// ready answers whether the process can do its work. It can while some partitions are away: taking it out of service would stop
// the others too. The store's error is for the log.
func (a *api) ready(r *http.Request, _ operation.None) (operation.Readiness, error) {
	// The scheduler first, as it costs nothing to ask.
	own := a.scheduler.Ready()
	if stuck, ok := errors.AsType[*model.AbandonedError](own); ok {
		return operation.Readiness{}, stuck
	}
	if err := a.config.Ready(r.Context()); err != nil {
		a.config.Logger.LogAttrs(r.Context(), slog.LevelDebug, "not ready", slog.Any("err", err))
		return operation.Readiness{}, errNotReady
	}
	st := a.scheduler.Slots()
	says := operation.Readiness{Status: "ready", Slots: operation.Slots{Total: st.Total, InUse: st.InUse}, Abandoned: st.Abandoned}
	if away, ok := errors.AsType[*core.AwayError](own); ok {
		says.Status, says.Away = "degraded", away.Partitions
	}
	return says, nil
}
