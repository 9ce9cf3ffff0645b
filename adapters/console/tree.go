package console

// The tasks that the runs of a task have submitted, and those of these: a tree, beside it when each waited and ran on one axis of time.

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// tree is a task and all below it, as far as they were found.
type tree struct {
	Rows          []treeRow
	Width, Height int
	From, To      shownTime
	Cut           bool // there are more than are drawn
	Partly        bool // the agent has more tasks than were looked through
}

// treeRow is a task of the tree.
type treeRow struct {
	ID, Agent, Kind, To string
	Depth               int // at most mostIndent
	Deep                string
	State               badge
	Parts               []part
	Y                   int
	Self                bool
}

// Bounds of a tree.
const (
	treeReads  = 2   // calls of the store
	treeLooked = 500 // tasks that are looked through
	treeShown  = 40
	mostIndent = 5
)

// treeOf reads the tree that a task is in: of the tasks of its agent, of which the first ones are looked through. Nil if it is alone.
func treeOf(v *visit, t *core.TaskInfo, runs *running) (*tree, error) {
	tasks, next, err := v.scheduler.Tasks(v.r.Context(), core.List{Agent: t.Agent, Limit: treeLooked, Reads: treeReads})
	if err != nil {
		return nil, err
	}
	since := time.Time{}
	if runs != nil {
		since = runs.Since
	}
	out := growTree(t, since, tasks, v.now)
	if out != nil {
		out.Partly = next != ""
	}
	return out, nil
}

// parentOf is the task that a task comes from: that whose run has submitted it, or the recurring one that it is an occurrence of.
func parentOf(t *core.TaskInfo) (model.TaskName, bool) {
	switch {
	case t.Origin != nil:
		return t.Origin.By, true
	case t.Parent != "":
		return model.TaskName{Agent: t.Agent, ID: t.Parent}, true
	default:
		return model.TaskName{}, false
	}
}

// titled is the name of a task.
func titled(t *core.TaskInfo) model.TaskName { return model.TaskName{Agent: t.Agent, ID: t.ID} }

// growTree is what of some tasks is below a task, whose run began at since if one is under way. Nil if nothing is.
func growTree(root *core.TaskInfo, since time.Time, tasks []core.TaskInfo, now time.Time) *tree {
	below := map[model.TaskName][]*core.TaskInfo{}
	for i := range tasks {
		if by, has := parentOf(&tasks[i]); has && titled(&tasks[i]) != titled(root) {
			below[by] = append(below[by], &tasks[i])
		}
	}
	if len(below[titled(root)]) == 0 {
		return nil
	}
	var order []*core.TaskInfo
	depths := map[model.TaskName]int{}
	var add func(t *core.TaskInfo, depth int)
	add = func(t *core.TaskInfo, depth int) {
		if _, seen := depths[titled(t)]; seen {
			return
		}
		depths[titled(t)] = depth
		order = append(order, t)
		children := below[titled(t)]
		slices.SortStableFunc(children, func(a, b *core.TaskInfo) int {
			return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID))
		})
		for _, child := range children {
			add(child, depth+1)
		}
	}
	add(root, 0)
	out := &tree{Width: weekWidth, Cut: len(order) > treeShown}
	order = order[:min(len(order), treeShown)]
	from, to := spanOf(order, now)
	out.From, out.To = when(now, from), when(now, to)
	for _, t := range order {
		row := treeRowOf(t, depths[titled(t)], len(out.Rows), from, to, now)
		if begun := cmp.Or(since, t.UpdatedAt); t.Status == core.StatusInProgress && !begun.IsZero() {
			row.place(begun, now, from, to, "busy", "running for "+took(now.Sub(begun)))
		}
		out.Rows, since = append(out.Rows, row), time.Time{} // of others it is known when they last changed
	}
	out.Height = len(out.Rows) * weekRowHi
	return out
}

// spanOf is from when to when tasks were there: until now, unless all have ended.
func spanOf(tasks []*core.TaskInfo, now time.Time) (from, to time.Time) {
	from = now
	for _, t := range tasks {
		if begun := beginOf(t); !begun.IsZero() && begun.Before(from) {
			from = begun
		}
		switch {
		case !t.Status.Finished():
			to = now
		case t.Finished.After(to):
			to = t.Finished
		}
	}
	if !to.After(from) {
		to = from.Add(time.Millisecond)
	}
	return from, to
}

// beginOf is when a task is drawn from: its first run that is kept, for one that recurs, or when it was submitted.
func beginOf(t *core.TaskInfo) time.Time {
	if t.Recurring() && len(t.Runs) > 0 {
		return t.Runs[0].Started
	}
	return t.Submitted
}

// treeRowOf is a row: a thin part from when the task was submitted until it ended, and a part for each run.
func treeRowOf(t *core.TaskInfo, depth, line int, from, to, now time.Time) treeRow {
	row := treeRow{
		ID: t.ID, Agent: t.Agent, Kind: t.Kind, To: taskURL(t.Agent, t.ID), Depth: min(depth, mostIndent), State: stateOf(t, now), Y: line * weekRowHi, Self: depth == 0,
	}
	row.Deep = "d" + count(row.Depth)
	end := to
	if t.Status.Finished() && !t.Finished.IsZero() {
		end = t.Finished
	}
	if begun := beginOf(t); begun.Before(end) {
		row.place(begun, end, from, to, "wait", "submitted "+t.Submitted.UTC().Format("15:04:05.000 MST"))
	}
	for i := range t.Runs {
		r := &t.Runs[i]
		row.place(r.Started, r.Started.Add(r.Duration), from, to, outcomeOf(r.Outcome).Class, r.Started.UTC().Format("15:04:05.000")+", "+outcomeOf(r.Outcome).Word+" after "+took(r.Duration))
	}
	return row
}

// place adds a part from one time to another.
func (r *treeRow) place(begin, end, from, to time.Time, class, title string) {
	x := max(xOf(begin, from, to), 0)
	width := max(xOf(end, from, to)-x, 2)
	if x+width > weekWidth {
		x = max(weekWidth-width, 0)
	}
	r.Parts = append(r.Parts, part{X: tenth(x), Width: tenth(min(width, weekWidth)), Class: class, Title: r.ID + ": " + title})
}

// tenth rounds a length.
func tenth(v float64) float64 { return float64(int(v*10+0.5)) / 10 }
