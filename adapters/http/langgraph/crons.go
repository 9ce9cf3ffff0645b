package langgraph

// The calls that create, change and delete crons.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/door"
	"github.com/seed-6f6f2c11/duly/adapters/internal/fields"
	"github.com/seed-6f6f2c11/duly/core"
)

// Door has the calls. Its zero value is ready.
type Door struct {
	Clock core.Clock // core.SystemClock if nil
}

// api answers the requests.
type api struct {
	scheduler *core.Scheduler
	host      door.Host
	clock     core.Clock
}

// Routes are the calls of the API.
func (d Door) Routes(s *core.Scheduler, host door.Host) []door.Route {
	a := &api{scheduler: s, host: host, clock: d.Clock}
	if a.clock == nil {
		a.clock = core.SystemClock{}
	}
	const base = "/runs/crons"
	table := []door.Route{
		{Method: http.MethodPost, Path: base, Submits: true, Respond: a.create},
		{Method: http.MethodPost, Path: "/threads/{thread}" + base, Submits: true, Respond: a.create},
		{Method: http.MethodPatch, Path: base + "/{id}", Submits: true, Respond: a.update},
		{Method: http.MethodDelete, Path: base + "/{id}", Respond: a.remove},
		{Method: http.MethodPost, Path: base + "/search", Reads: true, Respond: a.search},
		{Method: http.MethodPost, Path: base + "/count", Reads: true, Respond: a.count},
	}
	for i := range table {
		table[i].KeyHeader = "X-Api-Key"
		table[i].Respond = door.Unprocessable(theirs, table[i].Respond)
	}
	return table
}

// theirs are the fields of the API by those of the task that they become.
var theirs = map[string]string{"agent_id": "assistant_id", "cron": "schedule", "zone": "timezone", "payload": "input"}

// change is what a request says about a cron. What is nil is not said.
type change struct {
	schedule, zone *string
	enabled        *bool
	end            *time.Time // zero to take it away
	completed      *string
	run            fields.Fields // for the run; null takes a field away
}

// readChange reads the fields that both creating and changing have; the rest is for the run.
func readChange(f fields.Fields) (*change, error) {
	c := &change{}
	var end string
	endless := f.Null("end_time")
	for name, field := range map[string]struct {
		into any
		kind string
	}{
		"schedule": {&c.schedule, "a string"}, "timezone": {&c.zone, "a string, the name of a zone such as Europe/Stockholm"}, "enabled": {&c.enabled, "true or false"},
		"end_time": {&end, "a string with a time, such as 2027-01-31T09:00:00Z"}, "on_run_completed": {&c.completed, `"delete" or "keep"`},
	} {
		if _, err := f.Take(name, field.kind, field.into); err != nil {
			return nil, err
		}
	}
	switch {
	case endless:
		c.end = new(time.Time)
	case end != "":
		at, err := parseTime(end)
		if err != nil {
			return nil, &core.InvalidError{Field: "end_time", Reason: "must be a time, such as 2027-01-31T09:00:00Z"}
		}
		c.end = &at
	}
	if c.completed != nil && *c.completed != "delete" && *c.completed != "keep" {
		return nil, &core.InvalidError{Field: "on_run_completed", Reason: `must be "delete" or "keep"`}
	}
	if c.schedule != nil && len(strings.Fields(*c.schedule)) > 5 {
		return nil, &core.InvalidError{Field: "schedule", Reason: "must have five fields: minute, hour, day of month, month and day of week"}
	}
	if metadata := f["metadata"]; metadata != nil && !f.Null("metadata") {
		if _, err := fields.Of("metadata", metadata); err != nil {
			return nil, err
		}
	}
	c.run = f
	return c, nil
}

// parseTime reads a time; one without a zone is in UTC, as Python writes it.
func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04:05", text)
	}
	return at.UTC(), err
}

// into puts the change into what a task keeps.
func (c *change) into(p *payload, now time.Time) {
	p.Run, p.Updated = p.Run.Merge(c.run), now
	if c.end != nil {
		p.End = *c.end
	}
	if c.completed != nil {
		p.Completed = *c.completed
	}
}

// disabled is why a cron that is not enabled is paused.
const disabled = "enabled: false"

// create stores a cron, on the thread of the path if that has one.
func (a *api) create(r *http.Request) (int, any, error) {
	f, err := fields.Body(r)
	if err != nil {
		return 0, nil, err
	}
	var assistant string
	if err := f.Need("assistant_id", "a string", &assistant); err != nil {
		return 0, nil, err
	}
	if err := a.host.Allow(r, assistant); err != nil {
		return 0, nil, err
	}
	for _, name := range []string{"cron_id", "thread_id"} { // the path says which thread
		delete(f, name)
	}
	c, err := readChange(f)
	if err != nil {
		return 0, nil, err
	}
	if c.schedule == nil {
		return 0, nil, &core.InvalidError{Field: "schedule", Reason: "is required"}
	}
	thread := r.PathValue("thread")
	if thread != "" && !door.IsID(thread) {
		return 0, nil, &core.InvalidError{Field: "thread_id", Reason: notThread}
	}
	now := a.clock.Now().UTC()
	p := payload{Thread: thread, Created: now}
	c.into(&p, now)
	t := core.NewTask{Agent: assistant, ID: "cron-" + rand.Text(), Kind: Kind, Cron: *c.schedule, Zone: "UTC", Payload: p}
	if c.zone != nil {
		t.Zone = zoneOf(*c.zone)
	}
	if c.enabled != nil && !*c.enabled {
		t.Paused, t.PausedReason = true, disabled
	}
	if _, err := a.scheduler.Submit(r.Context(), t); err != nil {
		return 0, nil, err
	}
	return a.answer(r.Context(), assistant, t.ID)
}

// answer is a cron as it is now.
func (a *api) answer(ctx context.Context, agent, task string) (int, any, error) {
	c, err := a.cron(ctx, agent, task)
	return http.StatusOK, c, err
}

// cron reads a cron.
func (a *api) cron(ctx context.Context, agent, task string) (*cron, error) {
	t, err := a.scheduler.Task(ctx, agent, task)
	if core.CodeOf(err) == core.CodeInvalid {
		err = errNoCron
	}
	if err != nil {
		return nil, err
	}
	c, is := shown(&t)
	if !is {
		return nil, errNoCron
	}
	return c, nil
}

// named is the task of the cron that the path names, for a caller that may touch its agent.
func (a *api) named(r *http.Request) (agent, task string, err error) {
	agent, task, err = taskOf(r.PathValue("id"))
	if err == nil {
		err = a.host.Allow(r, agent)
	}
	if err == nil {
		_, err = a.cron(r.Context(), agent, task)
	}
	return agent, task, err
}

// remove deletes a cron.
func (a *api) remove(r *http.Request) (int, any, error) {
	agent, task, err := a.named(r)
	if err == nil {
		err = a.scheduler.Delete(r.Context(), agent, task)
	}
	return http.StatusNoContent, nil, err
}

// update changes a cron.
func (a *api) update(r *http.Request) (int, any, error) {
	agent, task, err := a.named(r)
	if err != nil {
		return 0, nil, err
	}
	f, err := fields.Body(r)
	if err != nil {
		return 0, nil, err
	}
	for _, name := range []string{"assistant_id", "thread_id"} {
		if f[name] != nil && !f.Null(name) {
			return 0, nil, &core.InvalidError{Field: name, Reason: "cannot be changed: create another cron"}
		}
		delete(f, name)
	}
	c, err := readChange(f)
	if err == nil {
		err = a.apply(r.Context(), agent, task, c)
	}
	if err != nil {
		return 0, nil, err
	}
	return a.answer(r.Context(), agent, task)
}

// pauses reports whether the change disables a cron and nothing else.
func (c *change) pauses() bool {
	return c.enabled != nil && !*c.enabled && c.schedule == nil && c.zone == nil && c.end == nil && c.completed == nil && len(c.run) == 0
}

// apply makes a change. A cron that is enabled again goes on with its next time: what fell due meanwhile is not made up for.
func (a *api) apply(ctx context.Context, agent, task string, c *change) error {
	on := core.Target{Agent: agent, ID: task}
	if c.enabled != nil && !*c.enabled {
		if err := a.scheduler.Pause(ctx, on, core.Pause{Reason: disabled}); err != nil {
			return err
		}
		if c.pauses() { // a run that is under way does not stand in the way
			return nil
		}
	}
	if err := a.edit(ctx, agent, task, c); err != nil {
		return err
	}
	if c.enabled != nil && *c.enabled {
		return a.scheduler.Resume(ctx, on)
	}
	return nil
}

// edit changes what the task keeps, and its schedule.
func (a *api) edit(ctx context.Context, agent, task string, c *change) error {
	t, err := a.scheduler.Task(ctx, agent, task)
	if err != nil {
		return err
	}
	var p payload
	if err := json.Unmarshal(t.Payload, &p); err != nil {
		return errNoCron
	}
	c.into(&p, a.clock.Now().UTC())
	said := map[string]any{"payload": p}
	if c.enabled != nil && *c.enabled { // its next time is worked out again
		said["cron"], said["zone"] = t.Cron, zoneOf(t.Zone)
	}
	if c.schedule != nil {
		said["cron"] = *c.schedule
	}
	if c.zone != nil {
		said["zone"] = zoneOf(*c.zone)
	}
	data, err := json.Marshal(said)
	if err != nil {
		return err
	}
	_, err = a.scheduler.Edit(ctx, agent, task, data)
	return err
}
