package console

// The first page: how much there is to do, how late it is, and what is wrong.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// nowPage is the first page.
type nowPage struct {
	Tiles    []tile
	Findings []finding
	Charts   []chart
	Periods  []periodLink
	Self     string // the address of this page, with the period
	Kinds    []kindRow
	Windows  bool // something counts the runs of the last hours
	Steers   bool
	Empty    bool // nothing was ever submitted
	Stats    inspect.Stats
}

// tile is one figure.
type tile struct {
	Name, Value, Note, Class, To string
}

// kindRow is a kind on the first page, and on the page of kinds.
type kindRow struct {
	inspect.KindInfo

	Hour   inspect.KindWindow // of the last hour
	State  badge
	Target core.Target
	Spark  spark // what ran of it within a day; empty where that is not shown
}

// facts are what the store and this process say of all tasks together.
type facts struct{ *inspect.Health }

// read reads the facts.
func (c *console) read(v *visit) (*facts, error) {
	h, err := c.scheduler.Health(v.r.Context())
	if err != nil {
		return nil, err
	}
	return &facts{h}, nil
}

// now is the first page.
func (c *console) now(v *visit) (*page, error) {
	if err := v.may(model.ActionRead, ""); err != nil {
		return single(err)
	}
	over, err := periodOf(v)
	if err != nil {
		return nil, err
	}
	f, err := c.read(v)
	if err != nil {
		return nil, err
	}
	p := nowPage{
		Findings: f.findings(v.steers("")), Kinds: f.rows(), Windows: f.Windows, Steers: v.steers(""), Stats: f.Stats,
		Empty: f.Stats.Submitted == 0, Self: Path + "?over=" + over.Name,
	}
	asking, err := c.asking(v)
	if err != nil {
		return nil, err
	}
	p.Tiles = f.tiles(asking)
	if f.Windows {
		trend, err := c.scheduler.Trend(v.r.Context(), over.of, over.steps)
		if err != nil {
			return nil, err
		}
		p.Charts, p.Periods = over.small(&trend, trend.Steps), over.links(Path, nil)
	}
	v.now = f.Stats.Now // times are those of the store
	return &page{name: "now", title: "Now", body: p}, nil
}

// single is the answer to a visitor who may see single agents only: the page on which to name one.
func single(err error) (*page, error) {
	if core.CodeOf(err) == core.CodeForbidden {
		return &page{to: Path + "/agents"}, nil
	}
	return nil, err
}

// tiles are the figures at the top.
func (f *facts) tiles(asking tile) []tile {
	s := &f.Stats
	next := tile{Name: "Next due", Value: when(s.Now, s.NextDue).Text}
	if late := s.Now.Sub(s.NextDue); !s.NextDue.IsZero() && late >= time.Second {
		next.Name, next.Value, next.Note = "Due since", rough(late), "the oldest that waits"
		if f.Overdue() > 0 {
			next.Class = "bad"
		}
	} else if s.NextDue.IsZero() {
		next.Value, next.Note = "–", "nothing is scheduled"
	}
	next.To = filter{"status": overdue}.at("/tasks")
	running := tile{Name: "Running", Value: count(s.InProgress), To: filter{"status": "in_progress"}.at("/tasks")}
	slots, used := 0, 0
	for i := range f.Processes {
		slots, used = slots+f.Processes[i].Slots, used+f.Processes[i].InUse
	}
	if slots > 0 {
		running.Note = count(used) + " of " + counted(slots, "slot")
	}
	held := tile{Name: "Held", Value: count(s.Held), Note: "due, and paused", To: Path + "/held"}
	if s.Held > 0 {
		held.Class = "warn"
	}
	dead := tile{Name: "Dead", Value: count(s.Failed), Note: "of all time", To: Path + "/dead"}
	waiting := tile{Name: "Waiting", Value: count(s.Waiting), Note: restingNote(s.Resting), To: filter{"status": "waiting"}.at("/tasks")}
	all := []tile{next, running, waiting, asking, held, dead}
	if f.Windows {
		all = append(all, f.lag())
	}
	return append(all, tile{Name: "Agents", Value: count(s.Agents), Note: "with live tasks", To: Path + "/agents"})
}

// restingNote says how many tasks wait for activity.
func restingNote(n int64) string {
	if n == 0 {
		return "for their time"
	}
	return "and " + count(n) + " resting"
}

// lag is the tile of how late runs were in the last hour: it shows the kind that was latest, which a sum would hide.
func (f *facts) lag() tile {
	t := tile{Name: "Lag, p95", Value: "–", Note: "no run in the last hour", To: Path + "/charts"}
	var worst *inspect.KindWindow
	for i := range f.Hour.Kinds {
		if k := &f.Hour.Kinds[i]; worst == nil || k.LagP95 > worst.LagP95 {
			worst = k
		}
	}
	if worst != nil {
		t.Value, t.Note = took(worst.LagP95), "1 h, "+short(worst.Kind)
	}
	return t
}

// rows are the kinds.
func (f *facts) rows() []kindRow {
	hour := map[string]inspect.KindWindow{}
	for _, k := range f.Hour.Kinds {
		hour[k.Kind] = k
	}
	rows := make([]kindRow, len(f.Kinds.Kinds))
	for i := range rows {
		k := f.Kinds.Kinds[i]
		rows[i] = kindRow{KindInfo: k, Hour: hour[k.Kind], Target: core.Target{Kind: k.Kind}, State: kindState(&k)}
	}
	return rows
}

// kindState is whether the tasks of a kind run.
func kindState(k *inspect.KindInfo) badge {
	switch {
	case k.Pause != nil:
		return badge{"warn", "paused"}
	case k.Settings.Disabled:
		return badge{"idle", "disabled"}
	case k.Unhandled():
		return badge{"bad", "no process"}
	case k.Counters.Running > 0:
		return badge{"busy", "running"}
	default:
		return badge{"idle", "idle"}
	}
}
