package cli

// The command doctor, and its checks.

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// What a check of doctor comes to.
// The values are part of the JSON output, and as stable as it is.
const (
	checkOK      = "ok"
	checkWarning = "warning" // worth knowing, and perhaps meant so
	checkFailed  = "failed"  // something does not run as it should
)

// finding is one thing that doctor looked at.
// Text is a sentence about what is so, Todo what to do about it: empty if nothing needs to be done.
type finding struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Text   string `json:"text"`
	Todo   string `json:"todo,omitempty"`
}

// doctorCommand exits with 1 if a check fails and with 0 for warnings, so
// that a deployment can use it as a gate.
func (p *process) doctorCommand(o *options) *cobra.Command {
	return o.withJSON(command("doctor", "Check Redis, and that everything due will run",
		"  duly doctor -c duly.yaml",
		func(cmd *cobra.Command, _ []string) error {
			checks, err := p.diagnose(cmd.Context(), o)
			if err != nil {
				return err
			}
			answer := struct {
				Checks []finding `json:"checks"`
			}{checks}
			if err := o.print(p.stdout, answer, func(w *table.Page) { printChecks(w, checks) }); err != nil {
				return err
			}
			// Printed first, then counted: the failure refers to the hints above it.
			failed := 0
			for _, c := range checks {
				if c.Status == checkFailed {
					failed++
				}
			}
			if failed > 0 {
				return &failure{why: fmt.Errorf("%s failed", table.Count(failed, "check")), todo: "see the hints above", code: exitFailed}
			}
			return nil
		}))
}

// printChecks puts each hint below its check, behind an arrow.
func printChecks(w *table.Page, checks []finding) {
	t := table.New(w)
	for _, c := range checks {
		t.Row(c.Status, c.Name, c.Text)
		if c.Todo != "" {
			t.Row("", "", "-> "+c.Todo)
		}
	}
	t.End()
}

// diagnose makes all checks. A store that cannot be opened is an error, as there is nothing else to
// check; a question that the store does not answer fails its own check, and the others are still made.
func (p *process) diagnose(ctx context.Context, o *options) ([]finding, error) {
	c, err := loadFile(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := needRedis(c); err != nil {
		return nil, err
	}
	// Opening a store logs what it thinks of the server: caught here, that becomes findings.
	warnings := &warnings{all: new([]warning)}
	st, err := openStore(ctx, c, slog.New(warnings))
	if err != nil {
		return nil, err
	}
	defer st.end()
	s, err := core.New(st, st.with(c.Settings()))
	if err != nil {
		return nil, err
	}
	checks := warnings.checks(st.name)
	// One read answers six checks.
	if stats, err := s.Stats(ctx); err == nil {
		checks = append(checks, checkClock(stats.Now, core.SystemClock{}.Now()), checkWork(&stats), checkHandlers(&stats, c),
			checkPauses(&stats), checkFailures(&stats), checkHistory(&stats))
	} else {
		checks = append(checks, finding{"stats", checkFailed, "cannot be read: " + err.Error(), "check Redis, and that no other program writes duly's keys"})
	}
	// A failure here shows in the other checks as well.
	if processes, err := s.Processes(ctx); err == nil {
		checks = append(checks, checkProcesses(processes))
	}
	report, err := s.Audit(ctx, core.AuditOptions{Progress: p.auditProgress()})
	p.endProgress()
	// A signal stops doctor without a verdict.
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return append(checks, finding{"audit", checkFailed, "did not finish: " + err.Error(), "check Redis, then try again"}), nil
	default:
		return append(checks, checkAudit(&report)), nil
	}
}

// warnings is a slog.Handler that keeps what opening a store logs about its Redis.
type warnings struct {
	all *[]warning
	// at is added by WithAttrs: in a cluster the address of the node that a warning is about.
	at string // the attributes of all of them
}

// warning is one record: its message with its attributes, and what to do.
type warning struct{ text, todo string }

// Enabled is true for what is worth knowing.
func (*warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle keeps a warning.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	// The hint for a warning that has none of its own.
	it := warning{text: r.Message + w.at, todo: "see docs/guarantees.md for the requirements on Redis"}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "todo" {
			it.todo = a.Value.String()
		} else {
			it.text += fmt.Sprintf(" (%s: %v)", a.Key, a.Value)
		}
		return true
	})
	*w.all = append(*w.all, it)
	return nil
}

// WithAttrs puts attributes behind each message.
func (w *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *w
	for _, a := range attrs {
		with.at += fmt.Sprintf(" (%s: %v)", a.Key, a.Value)
	}
	return &with
}

// WithGroup is the same handler: a store logs without groups.
func (w *warnings) WithGroup(string) slog.Handler { return w }

// checks turns what was logged into findings; silence means that everything is as it should be.
func (w *warnings) checks(name string) []finding {
	if len(*w.all) == 0 {
		return []finding{{"redis", checkOK, name + " answers, uses an append-only file, and grants every permission that duly needs", ""}}
	}
	var all []finding
	for _, it := range *w.all {
		all = append(all, finding{"redis", checkWarning, it.text, it.todo})
	}
	return all
}

// muchSkew is how far clocks may be apart before it is worth a word.
// Network delay and the rounding to seconds stay below it.
const muchSkew = 2 * time.Second

// checkClock compares the clocks. duly needs no equal clocks: only times that a
// person types are read by this machine's.
func checkClock(redis, here time.Time) finding {
	skew := here.Sub(redis).Round(time.Second)
	if skew.Abs() < muchSkew {
		return finding{"clock", checkOK, "this machine and Redis agree on the time", ""}
	}
	return finding{
		"clock", checkWarning, fmt.Sprintf("the clocks of this machine and Redis differ by %s: tasks follow the clock of Redis, --at and --until are read as given", skew),
		"synchronise the clocks",
	}
}

// late is how long work may be due before somebody should have taken it.
// A minute is more than any healthy daemon needs, also right after a restart.
const late = time.Minute

// checkWork looks whether due work is left lying. Paused work counts too,
// since from outside the two look alike.
func checkWork(st *core.Stats) finding {
	switch behind := st.Now.Sub(st.NextDue).Round(time.Second); {
	case st.NextDue.IsZero() && st.InProgress == 0:
		return finding{"work", checkOK, "no task is scheduled", ""}
	case st.NextDue.IsZero() || behind < late:
		return finding{"work", checkOK, fmt.Sprintf("%d running, %d waiting, none overdue by more than a minute", st.InProgress, st.Waiting), ""}
	default:
		return finding{
			"work", checkFailed, fmt.Sprintf("work has been due for %s and no process has claimed it, or everything is paused", behind),
			"start duly daemon, or schedule duly run-due; duly explain says why a task has not run",
		}
	}
}

// checkHandlers compares the kinds of live tasks with the handlers of the file, if there is one.
func checkHandlers(st *core.Stats, c *dulyfile.File) finding {
	// Held tasks have a handler and are paused; they belong to checkPauses.
	parked := st.Parked - st.Held
	if len(c.Handlers) == 0 {
		if parked == 0 {
			return finding{"handlers", checkOK, "no task waits for a handler", ""}
		}
		return finding{
			"handlers", checkWarning, table.Count(parked, "task") + " waiting for a process with the handler",
			"pass the file with -c to see which kinds it lacks",
		}
	}
	var missing []string
	for i := range st.Kinds {
		k := &st.Kinds[i]
		if k.Live > 0 && !c.Handles(k.Kind) {
			missing = append(missing, fmt.Sprintf("%s (%d)", k.Kind, k.Live))
		}
	}
	// Warning and not failure: another process may have the handler, which
	// doctor cannot see from the file.
	if len(missing) == 0 {
		return finding{"handlers", checkOK, "the file has a handler for every task", ""}
	}
	return finding{
		"handlers", checkWarning, "the file has no handler for these kinds of live tasks: " + strings.Join(missing, ", "),
		"another process must have the handler; otherwise add it to the file",
	}
}

// checkPauses warns, as a pause that was forgotten looks like a scheduler that has stopped.
func checkPauses(st *core.Stats) finding {
	if st.Held == 0 {
		return finding{"pauses", checkOK, "no due task is paused", ""}
	}
	return finding{
		"pauses", checkWarning, table.Count(st.Held, "due task") + " paused", "duly pauses lists them; duly resume resumes them",
	}
}

// checkFailures looks at tasks that have given up, which need a person, and
// at records that could not be read.
func checkFailures(st *core.Stats) finding {
	switch {
	// The rarer and graver of the two comes first, with the number of the other.
	case st.Malformed > 0:
		return finding{
			"failures", checkWarning, fmt.Sprintf("%s skipped, %s failed for good", table.Count(st.Malformed, "damaged record"), table.Count(st.Failed, "task")),
			"see duly audit, and duly queue",
		}
	case st.Failed > 0:
		return finding{
			"failures", checkWarning, table.Count(st.Failed, "task") + " failed for good",
			"see duly queue KIND, or duly list --agent AGENT --status failed; duly replay runs one again",
		}
	default:
		return finding{"failures", checkOK, "no task has failed for good", ""}
	}
}

// recent is how long ago records may have been dropped for it to be worth a word.
// It is as long as the default retention: an older loss would be over by now in any case.
const recent = 7 * 24 * time.Hour

// checkHistory looks whether agents have more finished tasks than the store keeps.
func checkHistory(st *core.Stats) finding {
	if st.LastTrimmed.IsZero() || st.Now.Sub(st.LastTrimmed) > recent {
		return finding{"history", checkOK, "finished tasks are kept for the whole retention time", ""}
	}
	return finding{
		"history", checkWarning, fmt.Sprintf("%s dropped before the retention time ended, the last at %s: their agents finished more tasks than kept allows",
			table.Count(st.Trimmed, "finished task"), clock(st.LastTrimmed)),
		"raise kept in the file of every process, or lower retention; the ids are remembered for a day",
	}
}

// checkAudit is a failure for every fault: a task that nothing would run
// is what duly promises not to have.
func checkAudit(r *core.AuditReport) finding {
	if r.Found == 0 {
		return finding{"audit", checkOK, fmt.Sprintf("every live task (%d) waits, runs or is parked", r.Tasks), ""}
	}
	found := finding{"audit", checkFailed, table.Count(r.Found, "fault") + ": some tasks would never run", "duly audit --repair"}
	switch unreadable := r.Found - r.Repairable; {
	case unreadable == r.Found:
		found.Text = table.Count(unreadable, "record") + " unreadable and beyond repair"
		found.Todo = "duly audit names them; " + unreadableTodo
	case unreadable > 0:
		found.Todo += "; duly audit lists the faults that it cannot repair"
	}
	return found
}
