package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
)

func (p *process) listCommand(o *options) *cobra.Command {
	var l core.List
	var statuses []string
	cmd := command("list", "List the tasks of an agent",
		"  duly list --agent ada\n  duly list --agent ada --status failed --json",
		func(cmd *cobra.Command, _ []string) error {
			for _, s := range statuses {
				l.Status = append(l.Status, core.Status(s))
			}
			c, err := loadConfig(cmd.Context(), o)
			if err != nil {
				return err
			}
			scheduler, store, err := c.scheduler(cmd.Context())
			if err != nil {
				return err
			}
			defer store.end()
			tasks, next, err := scheduler.Tasks(cmd.Context(), l)
			if err != nil {
				return err
			}
			if tasks == nil {
				tasks = []core.TaskInfo{}
			}
			answer := struct {
				Tasks []core.TaskInfo `json:"tasks"`
				Next  string          `json:"next_cursor"`
			}{tasks, next}
			return o.print(p.stdout, answer, func(w *page) { printTasks(w, tasks, next) })
		})
	flags := cmd.Flags()
	flags.StringVar(&l.Agent, "agent", "", "the agent (required)")
	flags.StringSliceVar(&statuses, "status", nil, "only these: waiting, in_progress, completed, failed, cancelled")
	flags.StringVar(&l.Kind, "kind", "", "only this kind")
	flags.StringVar(&l.Group, "group", "", "only this group")
	flags.IntVar(&l.Limit, "limit", 0, "most tasks, up to 1000 (default 100)")
	flags.StringVar(&l.Cursor, "cursor", "", "go on behind the page before")
	return o.withJSON(cmd)
}

func printTasks(w *page, tasks []core.TaskInfo, next string) {
	if len(tasks) == 0 {
		_, _ = w.WriteString("no tasks\n")
		return
	}
	t := newTable(w, "ID", "KIND", "STATUS", "DUE", "RUNS", "ERRORS", "LAST ERROR")
	for i := range tasks {
		info := &tasks[i]
		due := info.NextRun
		if due == 0 {
			due = info.Due
		}
		t.row(info.ID, info.Kind, statusOf(info), clock(due), strconv.FormatInt(info.RunCount, 10),
			strconv.FormatInt(info.ErrorCount, 10), firstOf(info.LastError))
	}
	t.end()
	if next != "" {
		_, _ = w.WriteString("more: --cursor " + strconv.Quote(next) + "\n")
	}
}

// statusOf is the status of a task for people: a parked one waits for a handler, not for its time.
func statusOf(t *core.TaskInfo) string {
	if t.Parked {
		return "parked"
	}
	return string(t.Status)
}

// mostCell is how much of a text fits into a table.
const mostCell = 60

// firstOf is the beginning of a text's first line.
func firstOf(text string) string {
	line, _, more := strings.Cut(text, "\n")
	if len(line) > mostCell {
		line, more = strings.ToValidUTF8(line[:mostCell], ""), true
	}
	if more {
		line += "..."
	}
	return line
}
