package importer

// Jobs of Hermes: a job is a task, and Hermes runs it.

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// hermesJob is what of a job says when it runs, and what.
type hermesJob struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Prompt   string `json:"prompt"`
	Enabled  *bool  `json:"enabled"`
	State    string `json:"state"`
	Schedule struct {
		Kind    string  `json:"kind"`
		Expr    string  `json:"expr"`
		Minutes float64 `json:"minutes"`
		RunAt   string  `json:"run_at"`
	} `json:"schedule"`
	Repeat struct {
		Times     *int `json:"times"`
		Completed int  `json:"completed"`
	} `json:"repeat"`
}

// hermesKind is the kind of jobs of Hermes: Hermes itself runs the job that has the id of the task, and delivers what it says.
const hermesKind = "hermes"

// hermes reads jobs.json.
func (f *Found) hermes(data []byte, agent string) error {
	var file struct {
		Jobs []hermesJob `json:"jobs"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return &core.InvalidError{Field: "file", Reason: "is no jobs.json of Hermes: " + err.Error()}
	}
	for i := range file.Jobs {
		f.hermesJob(&file.Jobs[i], agent)
	}
	if len(f.Tasks) > 0 {
		f.Kinds[hermesKind] = Handler{Exec: []string{"sh", "-c", `hermes cron run "$DULY_TASK_ID" && exec hermes cron tick`}}
		f.left("handlers", "Hermes runs its job when duly says so: stop what ticks in Hermes (its gateway does), or each runs twice")
	}
	return nil
}

// hermesJob reads one.
func (f *Found) hermesJob(j *hermesJob, agent string) {
	where := fmt.Sprintf("job %s (%s)", j.ID, j.Name)
	switch {
	case j.ID == "":
		f.left(where, "left out: it has no id")
		return
	case j.State == "completed":
		f.left(where, "left out: it has ended")
		return
	}
	t := Task{
		Agent: agent, ID: j.ID, Kind: hermesKind, Paused: j.Enabled != nil && !*j.Enabled || j.State == "paused",
		Payload: map[string]any{"name": j.Name, "message": j.Prompt},
	}
	switch s := &j.Schedule; s.Kind {
	case "cron":
		if !f.cron(where, s.Expr, "") {
			return
		}
		t.Cron = s.Expr
		f.left(where, "its schedule has no zone: Hermes reads it in that of its machine, duly in `zone:` of the file, or UTC")
	case "interval":
		if !f.every(where, &t, time.Duration(s.Minutes*float64(time.Minute))) {
			return
		}
	case "once":
		at, ok := instant(s.RunAt)
		if !ok {
			f.left(where, "left out: %q is no time with a zone", s.RunAt)
			return
		}
		t.At = at
	default:
		f.left(where, "left out: duly knows no schedule of the kind %q", s.Kind)
		return
	}
	if n := j.Repeat.Times; n != nil && j.Schedule.Kind != "once" {
		f.left(where, "it ends after %d runs, of which it has made %d: duly counts none, delete the task then", *n, j.Repeat.Completed)
	}
	f.add(t)
}

// instant is a time as duly.yaml has it, from one of ISO 8601 with an offset.
func instant(text string) (string, bool) {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05.999999999Z0700"} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC().Format(time.RFC3339), true
		}
	}
	return "", false
}
