package importer

// Jobs of OpenClaw: a job is a task of its agent, with its message as the payload.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// clawJob is what of a job says when it runs, and what.
type clawJob struct {
	ID       string `json:"id"`
	AgentID  string `json:"agentId"`
	Name     string `json:"name"`
	Enabled  *bool  `json:"enabled"`
	Schedule struct {
		Kind    string `json:"kind"`
		At      string `json:"at"`
		AtMs    int64  `json:"atMs"`
		EveryMs int64  `json:"everyMs"`
		Expr    string `json:"expr"`
		TZ      string `json:"tz"`
	} `json:"schedule"`
	Payload map[string]any `json:"payload"`
}

// clawKind is the kind of jobs of OpenClaw: OpenClaw itself runs the job that has the id of the task.
const clawKind = "openclaw"

// openclaw reads jobs.json.
func (f *Found) openclaw(data []byte, agent string) error {
	var file struct {
		Jobs []clawJob `json:"jobs"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return &core.InvalidError{Field: "file", Reason: "is no jobs.json of OpenClaw: " + err.Error()}
	}
	for i := range file.Jobs {
		f.clawJob(&file.Jobs[i], agent)
	}
	if len(f.Tasks) > 0 {
		f.Kinds[clawKind] = Handler{Exec: []string{"sh", "-c", `exec openclaw cron run "$DULY_TASK_ID"`}}
		f.left("handlers", "OpenClaw runs its job when duly says so: disable the jobs there (`openclaw cron disable ID`), or each runs twice")
	}
	return nil
}

// clawJob reads one.
func (f *Found) clawJob(j *clawJob, agent string) {
	where := fmt.Sprintf("job %s (%s)", j.ID, j.Name)
	t := Task{
		Agent: cmp.Or(j.AgentID, agent), ID: j.ID, Kind: clawKind, Zone: j.Schedule.TZ, Paused: j.Enabled != nil && !*j.Enabled,
		Payload: map[string]any{"name": j.Name},
	}
	for _, name := range []string{"message", "text"} { // of a turn of the agent, or of an event
		if text, ok := j.Payload[name].(string); ok {
			t.Payload["message"] = text
		}
	}
	if j.ID == "" {
		f.left(where, "left out: it has no id")
		return
	}
	if j.when(f, where, &t) {
		f.Tasks = append(f.Tasks, t)
	}
}

// when sets when a task runs, and reports whether duly can do so.
func (j *clawJob) when(f *Found, where string, t *Task) bool {
	switch s := &j.Schedule; s.Kind {
	case "cron":
		if !f.cron(where, s.Expr, s.TZ) {
			return false
		}
		t.Cron = s.Expr
		if s.TZ == "" {
			f.left(where, "its schedule has no zone: OpenClaw reads it in that of its machine, duly in `zone:` of the file, or UTC")
		}
	case "every":
		t.Every = fmt.Sprint(time.Duration(s.EveryMs) * time.Millisecond)
		if s.EveryMs < 1000 {
			f.left(where, "left out: it recurs more often than once a second")
			return false
		}
	case "at":
		t.At = s.At
		if s.AtMs > 0 {
			t.At = time.UnixMilli(s.AtMs).UTC().Format(time.RFC3339)
		}
		if _, err := time.Parse(time.RFC3339, t.At); err != nil {
			f.left(where, "left out: %q is no time", t.At)
			return false
		}
	default:
		f.left(where, "left out: duly knows no schedule of the kind %q", s.Kind)
		return false
	}
	return true
}
