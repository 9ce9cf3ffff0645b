package console

// The pages of pauses and of processes.

import (
	"net/url"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// pausesPage is a page of pauses.
type pausesPage struct {
	Pauses []model.PauseInfo
	More   string
	Begun  bool
	Steers bool
	Whole  bool // everything is paused, as far as this page shows
}

// pausesShown is how many pauses a page has.
const pausesShown = 100

// pauses is a page of all that is paused.
func (c *console) pauses(v *visit) (*page, error) {
	if err := v.may(model.ActionRead, ""); err != nil {
		return nil, err
	}
	p := pausesPage{Steers: v.steers(""), Begun: v.q.Get("cursor") != ""}
	var next string
	var err error
	if p.Pauses, next, err = c.scheduler.Pauses(v.r.Context(), pausesShown, v.q.Get("cursor")); err != nil {
		return nil, err
	}
	for i := range p.Pauses {
		p.Whole = p.Whole || p.Pauses[i].Target == core.Target{}
	}
	if next != "" {
		p.More = Path + "/pauses?" + url.Values{"cursor": {next}}.Encode()
	}
	return &page{name: "pauses", title: "Pauses", body: p}, nil
}

// processesPage is the page of processes.
type processesPage struct{ Processes []processRow }

// processRow is a process, and whether it can take more.
type processRow struct {
	model.Process

	State badge
}

// processes is the page of the processes that have said lately what they run.
func (c *console) processes(v *visit) (*page, error) {
	if err := v.may(model.ActionRead, ""); err != nil {
		return nil, err
	}
	all, err := c.scheduler.Processes(v.r.Context())
	if err != nil {
		return nil, err
	}
	var p processesPage
	for i := range all {
		row := processRow{Process: all[i], State: badge{"good", "free"}}
		switch {
		case all[i].Abandoned > 0:
			row.State = badge{"bad", "abandoned runs"}
		case all[i].Slots > 0 && all[i].InUse >= all[i].Slots:
			row.State = badge{"warn", "full"}
		case all[i].InUse > 0:
			row.State = badge{"busy", "working"}
		}
		p.Processes = append(p.Processes, row)
	}
	return &page{name: "processes", title: "Processes", body: p}, nil
}
