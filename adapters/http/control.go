package http

import (
	"errors"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// An operator's calls. Each answers with the new state of what it changed, so that a client needs no second request.

// Errors about members of a wrong type.
const (
	mustBeString = "must be a string"
	mustBeBool   = "must be true or false"
)

// target is the target of a request to pause or resume: the names in its path, or all tasks. A target wider than an agent
// is not for callers that may touch some agents only.
// A task or an agent was checked with the path, before the call began.
//
// A request without a body must not stop the fleet: its body has to ask for all tasks, and only where the path names nothing.
func (a *api) target(r *http.Request, all bool) (core.Target, error) {
	t := core.Target{Agent: r.PathValue("agent"), ID: r.PathValue("id"), Kind: r.PathValue("kind"), Key: r.PathValue("key")}
	if t.Agent == "" {
		if err := a.allowAll(r); err != nil {
			return t, err
		}
	}
	switch {
	case t == core.Target{} && !all:
		return t, &core.InvalidError{Field: "all", Reason: "must be true: this is about all tasks of all agents"}
	case t != core.Target{} && all:
		return t, &core.InvalidError{Field: "all", Reason: "must be left out: the path says what is meant"}
	}
	return t, nil
}

// pause keeps tasks from being started. The answer is the task's new state, or the name of anything wider.
func (a *api) pause(r *http.Request) (int, any, error) {
	data, err := optionalBody(r)
	if err != nil {
		return 0, nil, err
	}
	// Durations and times have no zero here: a pause until nothing would be an endless one.
	var p core.Pause
	var all bool
	if err := decode(data,
		strictjson.Field{Name: "reason", Into: &p.Reason, Must: mustBeString, Zero: true},
		strictjson.Field{Name: "by", Into: &p.By, Must: mustBeString, Zero: true},
		strictjson.Field{Name: "until", Into: &p.Until, Must: `must be a time such as "2026-01-02T15:04:05Z"`},
		strictjson.Field{Name: "for", Into: (*strictjson.Duration)(&p.For), Must: `must be a duration such as "90s" or "1h30m"`},
		strictjson.Field{Name: "ahead", Into: &p.Ahead, Must: mustBeBool},
		strictjson.Field{Name: "all", Into: &all, Must: mustBeBool},
	); err != nil {
		return 0, nil, err
	}
	t, err := a.target(r, all)
	if err != nil {
		return 0, nil, err
	}
	if err := a.scheduler.Pause(r.Context(), t, p); err != nil {
		return 0, nil, toCome(err)
	}
	return a.after(r, t, true)
}

// toCome explains how to pause what does not exist yet.
func toCome(err error) error {
	if _, unknown := errors.AsType[*operate.UnknownTargetError](err); unknown {
		return problem.New(core.CodeNotFound, err.Error()+`; send "ahead": true if it is still to be created`)
	}
	return err
}

// resume ends a pause. With ahead it is no error if the target does not exist yet: it was not paused ahead either.
// It is the same rule as that of the command line's --ahead.
func (a *api) resume(r *http.Request) (int, any, error) {
	data, err := optionalBody(r)
	if err != nil {
		return 0, nil, err
	}
	var ahead, all bool
	if err := decode(data,
		strictjson.Field{Name: "ahead", Into: &ahead, Must: mustBeBool},
		strictjson.Field{Name: "all", Into: &all, Must: mustBeBool},
	); err != nil {
		return 0, nil, err
	}
	t, err := a.target(r, all)
	if err != nil {
		return 0, nil, err
	}
	err = a.scheduler.Resume(r.Context(), t)
	if _, unknown := errors.AsType[*operate.UnknownTargetError](err); err != nil && (!unknown || !ahead) {
		return 0, nil, toCome(err)
	}
	return a.after(r, t, false)
}

// after is the answer to a change of a target.
// For a task that is the task, for anything wider a short statement.
func (a *api) after(r *http.Request, t core.Target, paused bool) (int, any, error) {
	if t.ID != "" {
		return a.task(r)
	}
	return http.StatusOK, struct {
		Target core.Target `json:"target"`
		Paused bool        `json:"is_paused"`
	}{t, paused}, nil
}

// runNow makes a task due now and answers with it.
// A body would be a parameter that is never read, so it is refused.
func (a *api) runNow(r *http.Request) (int, any, error) {
	if err := noBody(r); err != nil {
		return 0, nil, err
	}
	if _, err := a.scheduler.RunNow(r.Context(), r.PathValue("agent"), r.PathValue("id")); err != nil {
		return 0, nil, err
	}
	return a.task(r)
}

// cancel ends a task and answers with it: its status shows whether it has ended, or ends with its run.
func (a *api) cancel(r *http.Request) (int, any, error) {
	data, err := optionalBody(r)
	if err != nil {
		return 0, nil, err
	}
	var by core.Order
	if err := decode(data,
		strictjson.Field{Name: "reason", Into: &by.Reason, Must: mustBeString, Zero: true},
		strictjson.Field{Name: "by", Into: &by.By, Must: mustBeString, Zero: true},
	); err != nil {
		return 0, nil, err
	}
	if _, err := a.scheduler.Cancel(r.Context(), r.PathValue("agent"), r.PathValue("id"), by); err != nil {
		return 0, nil, err
	}
	return a.task(r)
}

// remove forgets a task.
// Nothing is left to answer with, so the answer repeats the request.
func (a *api) remove(r *http.Request) (int, any, error) {
	agent, id := r.PathValue("agent"), r.PathValue("id")
	if err := a.scheduler.Delete(r.Context(), agent, id); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, struct {
		Agent   string `json:"agent_id"`
		ID      string `json:"id"`
		Deleted bool   `json:"deleted"`
	}{agent, id, true}, nil
}

// explain answers why a task has not run.
func (a *api) explain(r *http.Request) (int, any, error) {
	e, err := a.scheduler.Explain(r.Context(), r.PathValue("agent"), r.PathValue("id"))
	return http.StatusOK, e, err
}

// activity notes that a subject was active.
// The status is 202: the run comes later, if at all.
func (a *api) activity(r *http.Request) (int, any, error) {
	data, err := requestbody.JSON(r)
	if err != nil {
		return 0, nil, err
	}
	var kind string
	var s core.Subject
	if err := decode(data,
		strictjson.Field{Name: "kind", Into: &kind, Must: mustBeString},
		strictjson.Field{Name: "user_id", Into: &s.User, Must: mustBeString},
		strictjson.Field{Name: "device_id", Into: &s.Device, Must: mustBeString},
		strictjson.Field{Name: "agent_id", Into: &s.Agent, Must: mustBeString},
	); err != nil {
		return 0, nil, err
	}
	noticed, err := a.scheduler.Notice(r.Context(), kind, s)
	return http.StatusAccepted, noticed, err
}

// optionalBody is the body of a request that may have none.
// Length zero means none. A body of unknown length, in a chunked request, is read.
func optionalBody(r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 {
		return []byte("{}"), nil
	}
	return requestbody.JSON(r)
}

// noBody rejects any body other than an empty object.
func noBody(r *http.Request) error {
	data, err := optionalBody(r)
	if err != nil {
		return err
	}
	return decode(data)
}
