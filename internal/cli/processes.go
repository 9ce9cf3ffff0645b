package cli

// The command processes, and its check of doctor.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// processesCommand shows what processes have said of themselves within the last minute: nothing depends
// on it, and one that died is gone from it a minute later.
func processesCommand(o *command.Options) *cobra.Command {
	cmd := command.New("processes", "List the processes that run tasks: slots, kinds and hanging handlers", "  duly processes",
		func(cmd *cobra.Command, _ []string) error {
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				processes, err := s.Processes(cmd.Context())
				if err != nil {
					return err
				}
				if processes == nil {
					processes = []model.Process{}
				}
				answer := operation.Processes{Processes: processes}
				return o.Print(answer, func(w *table.Page) { printProcesses(w, processes) })
			})
		})
	return o.WithJSON(cmd)
}

// printProcesses writes one line for each process; kinds whose slots are all in use are in FULL.
func printProcesses(w *table.Page, processes []model.Process) {
	if len(processes) == 0 {
		w.Line("no process has reported in the last minute")
		return
	}
	t := table.New(w, "PROCESS", "IN USE", "KINDS", "FULL", "ABANDONED", "OLDEST RUN", "REPORTED AT")
	for i := range processes {
		p := &processes[i]
		inUse := "-" // of a worker outside
		if p.Slots > 0 {
			inUse = fmt.Sprintf("%d of %d", p.InUse, p.Slots)
		}
		t.Row(table.First(p.Name), inUse, table.First(strings.Join(p.Kinds, " ")), table.First(strings.Join(p.Full, " ")),
			strconv.Itoa(p.Abandoned), oldest(p), table.Clock(p.At))
	}
	t.End()
}

// oldest is the run of a process that began first: the one that may hang.
func oldest(p *model.Process) string {
	if len(p.Running) == 0 {
		return "-"
	}
	r := &p.Running[0]
	return table.First(r.Agent + "/" + r.ID + " (" + r.Kind + ") since " + table.Clock(r.Since))
}
