package cli

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
const (
	checkOK      = "ok"
	checkWarning = "warning" // worth knowing, and perhaps meant so
	checkFailed  = "failed"  // something does not run as it should
)

// finding is one thing that doctor looked at.
type finding struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Text   string `json:"text"`
	Todo   string `json:"todo,omitempty"`
}

func (p *process) doctorCommand(o *options) *cobra.Command {
	return o.withJSON(command("doctor", "Check Redis, and whether everything that is due will run",
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
			failed := 0
			for _, c := range checks {
				if c.Status == checkFailed {
					failed++
				}
			}
			if failed > 0 {
				return &failure{why: fmt.Errorf("%d check(s) failed", failed), todo: "do what stands beside them", code: exitFailed}
			}
			return nil
		}))
}

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

// diagnose makes all checks. A store that cannot be opened fails the first, and there are no others; one that fails in part
// fails the check that asked it, and the others are made.
func (p *process) diagnose(ctx context.Context, o *options) ([]finding, error) {
	c, err := loadFile(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := needRedis(c); err != nil {
		return nil, err
	}
	warnings := &warnings{all: new([]warning)}
	store, err := openStore(ctx, c, slog.New(warnings))
	if err != nil {
		return nil, err
	}
	defer store.end()
	s, err := core.New(store, store.with(c.Settings()))
	if err != nil {
		return nil, err
	}
	checks := warnings.checks(store.name)
	if stats, err := s.Stats(ctx); err == nil {
		checks = append(checks, checkClock(stats.Now.Time(), core.SystemClock{}.Now()), checkWork(&stats), checkHandlers(&stats, c),
			checkPauses(&stats), checkFailures(&stats), checkHistory(&stats))
	} else {
		checks = append(checks, finding{"stats", checkFailed, "cannot be read: " + err.Error(), "see that Redis is well, and that nobody else writes duly's keys"})
	}
	if processes, err := s.Processes(ctx); err == nil {
		checks = append(checks, checkProcesses(processes))
	}
	report, err := s.Audit(ctx, core.AuditOptions{Progress: p.auditProgress()})
	p.endProgress()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return append(checks, finding{"audit", checkFailed, "came to no end: " + err.Error(), "see that Redis is well, then try again"}), nil
	default:
		return append(checks, checkAudit(&report)), nil
	}
}

// warnings are what opening a store told about the Redis.
type warnings struct {
	all *[]warning
	at  string // the attributes of all of them
}

type warning struct{ text, todo string }

// Enabled is true for what is worth knowing.
func (*warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle keeps a warning.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	it := warning{text: r.Message + w.at, todo: "see docs/guarantees.md for what Redis has to be"}
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

func (w *warnings) checks(name string) []finding {
	if len(*w.all) == 0 {
		return []finding{{"redis", checkOK, name + " answers, writes what it is given to its append-only file, and lets duly do what it needs", ""}}
	}
	var all []finding
	for _, it := range *w.all {
		all = append(all, finding{"redis", checkWarning, it.text, it.todo})
	}
	return all
}

// muchSkew is how far clocks may be apart before it is worth a word.
const muchSkew = 2 * time.Second

func checkClock(redis, here time.Time) finding {
	skew := here.Sub(redis).Round(time.Second)
	if skew.Abs() < muchSkew {
		return finding{"clock", checkOK, "this machine and Redis agree on the time", ""}
	}
	return finding{
		"clock", checkWarning, fmt.Sprintf("this machine is %s off Redis: tasks go by Redis, times that you give go by yours", skew),
		"synchronise the clocks",
	}
}

// late is how long work may be due before somebody should have taken it.
const late = time.Minute

func checkWork(st *core.Stats) finding {
	switch behind := st.Now.Sub(st.NextDue).Round(time.Second); {
	case st.NextDue == 0 && st.InProgress == 0:
		return finding{"work", checkOK, "nothing is due, now or later", ""}
	case st.NextDue == 0 || behind < late:
		return finding{"work", checkOK, fmt.Sprintf("%d running, %d waiting, none overdue by a minute", st.InProgress, st.Waiting), ""}
	default:
		return finding{
			"work", checkFailed, fmt.Sprintf("work has been due for %s and nobody takes it, or it is paused as a whole", behind),
			"start duly daemon, or a trigger for duly run-due; see duly explain for one task",
		}
	}
}

// checkHandlers compares the kinds of live tasks with the handlers of the file, if there is one.
func checkHandlers(st *core.Stats, c *dulyfile.File) finding {
	parked := st.Parked - st.Held
	if len(c.Handlers) == 0 {
		if parked == 0 {
			return finding{"handlers", checkOK, "no task waits for a handler", ""}
		}
		return finding{
			"handlers", checkWarning, fmt.Sprintf("%d task(s) wait for a process with their handler", parked),
			"name the file with -c to see which kinds it lacks",
		}
	}
	var missing []string
	for i := range st.Kinds {
		k := &st.Kinds[i]
		if k.Live > 0 && !c.Handles(k.Kind) {
			missing = append(missing, fmt.Sprintf("%s (%d)", k.Kind, k.Live))
		}
	}
	if len(missing) == 0 {
		return finding{"handlers", checkOK, "the file has a handler for every task", ""}
	}
	return finding{
		"handlers", checkWarning, "the file has no handler for tasks of the kind " + strings.Join(missing, ", "),
		"they run where another process has one; else add it",
	}
}

func checkPauses(st *core.Stats) finding {
	if st.Held == 0 {
		return finding{"pauses", checkOK, "no due task is paused", ""}
	}
	return finding{
		"pauses", checkWarning, fmt.Sprintf("%d due task(s) are paused", st.Held), "duly pauses says which, and by whom; duly resume goes on",
	}
}

func checkFailures(st *core.Stats) finding {
	switch {
	case st.Malformed > 0:
		return finding{
			"failures", checkWarning, fmt.Sprintf("%d damaged record(s) were passed over, %d task(s) have failed for good", st.Malformed, st.Failed),
			"see duly audit, and duly queue",
		}
	case st.Failed > 0:
		return finding{
			"failures", checkWarning, fmt.Sprintf("%d task(s) have failed for good", st.Failed),
			"see duly queue KIND, or duly list --agent AGENT --status failed; duly replay runs one again",
		}
	default:
		return finding{"failures", checkOK, "no task has failed for good", ""}
	}
}

// recent is how long ago records may have been dropped for it to be worth a word.
const recent = 7 * 24 * time.Hour

// checkHistory looks whether agents have more finished tasks than the store keeps.
func checkHistory(st *core.Stats) finding {
	if st.LastTrimmed == 0 || st.Now.Sub(st.LastTrimmed) > recent {
		return finding{"history", checkOK, "every finished task has been kept for as long as it should", ""}
	}
	return finding{
		"history", checkWarning, fmt.Sprintf("%d finished record(s) were dropped before their time, the last at %s, as their agents have finished more tasks than are kept",
			st.Trimmed, clock(st.LastTrimmed)),
		"raise kept in the file of every process, or lower retention; the ids stay known for a day",
	}
}

func checkAudit(r *core.AuditReport) finding {
	if r.Found == 0 {
		return finding{"audit", checkOK, fmt.Sprintf("each of %d live task(s) waits, runs or is parked", r.Tasks), ""}
	}
	found := finding{"audit", checkFailed, fmt.Sprintf("%d fault(s): something would never run", r.Found), "duly audit --repair"}
	switch unreadable := r.Found - r.Repairable; {
	case unreadable == r.Found:
		found.Text = fmt.Sprintf("%d record(s) cannot be read, and cannot be repaired", unreadable)
		found.Todo = "duly audit names them; " + unreadableTodo
	case unreadable > 0:
		found.Todo += "; of what it cannot repair, duly audit says what it is"
	}
	return found
}
