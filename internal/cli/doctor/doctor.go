// Package doctor finds what is wrong with a store and with what is to run its tasks: the commands doctor and audit.
package doctor

// The command doctor, and its checks.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/storage"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// finding is one thing that doctor looked at: in the words of GET /v1/doctor, as many of them are the same.
type finding = inspect.Finding

// The results of a check of doctor.
const (
	checkOK      = inspect.SeverityOK
	checkWarning = inspect.SeverityWarning
	checkFailed  = inspect.SeverityFailed
)

// found is the finding of a check: a message about the state, and a hint about what to do, empty if nothing needs to be done.
func found(check string, severity inspect.Severity, message, hint string) finding {
	return finding{Check: check, Severity: severity, Message: message, Hint: hint}
}

// Command exits with 1 if a check fails and with 0 for warnings, so
// that a deployment can use it as a gate.
func Command(o *command.Options) *cobra.Command {
	name := ""
	cmd := o.WithJSON(command.New("doctor", "Check Redis, and that everything due will run",
		"  duly doctor -c duly.yaml\n  duly doctor --host elasticache",
		func(cmd *cobra.Command, _ []string) error {
			var h *host
			if cmd.Flags().Changed("host") {
				var err error
				if h, err = hostOf(name); err != nil {
					return err
				}
			}
			at, err := o.Place(cmd.Context())
			if err != nil {
				return err
			}
			if at.Server.URL != "" {
				return diagnoseServer(cmd.Context(), o, &at, h)
			}
			checks, figures, err := diagnose(cmd.Context(), o, h)
			if err != nil {
				return err
			}
			answer := struct {
				Checks []finding    `json:"checks"`
				Host   *hostFigures `json:"host,omitempty"`
			}{checks, figures}
			if err := o.Print(answer, func(w *table.Page) { printChecks(w, checks) }); err != nil {
				return err
			}
			return verdict(checks)
		}))
	cmd.Flags().StringVar(&name, "host", "", "also check what this host needs, and what it costs: "+hostNames())
	return cmd
}

// diagnoseServer prints what a server finds wrong with its store and with itself.
func diagnoseServer(ctx context.Context, o *command.Options, at *command.Place, h *host) error {
	if h != nil {
		return exit.Misuse("run it where Redis can be reached, with --redis", "--host looks at Redis itself, which %s does not show", at.By)
	}
	return command.OnServer(at, func(c *remote.Client) error {
		checks, err := c.Diagnose(ctx)
		if err != nil {
			return err
		}
		report, err := c.Audit(ctx, inspect.AuditOptions{Progress: auditProgress(o)})
		o.EndProgress()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		checks = append(checks, audited(&report, err))
		answer := struct {
			Checks []finding `json:"checks"`
		}{checks}
		return errors.Join(o.Print(answer, func(w *table.Page) { printChecks(w, checks) }), verdict(checks))
	})
}

// verdict is a failure if a check has failed. It comes after they are printed, as it refers to the hints.
func verdict(checks []finding) error {
	failed := 0
	for _, c := range checks {
		if c.Severity == checkFailed {
			failed++
		}
	}
	if failed == 0 {
		return nil
	}
	return &exit.Failure{Why: fmt.Errorf("%s failed", table.Count(failed, "check")), Todo: "see the hints above", Code: exit.Failed}
}

// printChecks puts each hint below its check, after an arrow.
func printChecks(w *table.Page, checks []finding) {
	t := table.New(w)
	for _, c := range checks {
		t.Row(string(c.Severity), c.Check, c.Message)
		if c.Hint != "" {
			t.Row("", "", "-> "+c.Hint)
		}
	}
	t.End()
}

// diagnose makes all checks. A store that cannot be opened is an error, as there is nothing else to
// check; a question that the store does not answer fails its own check, and the others are still made.
// The figures are those of the host, if there is one.
func diagnose(ctx context.Context, o *command.Options, h *host) ([]finding, *hostFigures, error) {
	c, err := command.LoadFile(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	need := storage.NeedStore
	if h != nil {
		need = storage.NeedRedis
	}
	if err := need(c); err != nil {
		return nil, nil, err
	}
	c.Redis.AllowEviction = c.Redis.AllowEviction || h != nil // which is a finding then
	// Opening a store logs what it thinks of the server: caught here, that becomes findings.
	warnings := &warnings{all: new(warned)}
	st, err := storage.Open(ctx, c, slog.New(warnings))
	if err != nil {
		return nil, nil, h.remedy(err)
	}
	defer st.End(ctx)
	s, err := core.New(st, st.With(storage.ReaderSettings(c)))
	if err != nil {
		return nil, nil, err
	}
	checks := warnings.checks(st)
	var figures *hostFigures
	if h != nil {
		warnings.all.list = withoutHost(warnings.all.list)
		checks, figures = checkHost(ctx, st, c, h)
		if len(warnings.all.list) > 0 {
			checks = append(warnings.checks(st), checks...)
		}
	}
	checks = append(append(checks, examine(ctx, s, st, c, h)...), checkFile(ctx, s, o, c)...)
	report, err := s.Audit(ctx, inspect.AuditOptions{Progress: auditProgress(o)})
	o.EndProgress()
	// A signal stops doctor without a verdict.
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	return append(checks, audited(&report, err)), figures, nil
}

// audited is what an audit has found, or that it did not come to its end.
func audited(report *inspect.AuditReport, err error) finding {
	switch {
	case err == nil:
		return checkAudit(report)
	case exit.Of(err) == exit.Forbidden:
		return found("audit", checkWarning, "not made: "+err.Error(), "use a credential that may audit, or run duly doctor on the store itself")
	default:
		return found("audit", checkFailed, "did not finish: "+err.Error(), "check Redis, then try again")
	}
}

// examine makes the checks of what is stored, but for the audit: those that a server makes, and those of this machine, of the file and of how Redis is divided.
// For a host its own checks of Redis take the place of the general ones.
func examine(ctx context.Context, s *core.Scheduler, st *storage.Store, c *dulyfile.File, at *host) []finding {
	var checks []finding
	asked := core.SystemClock{}.Now()
	stats, err := s.Stats(ctx)
	if err != nil {
		checks = append(checks, found("stats", checkFailed, "cannot be read: "+err.Error(), "check Redis, and that no other program writes duly's keys"))
	} else {
		checks = append(checks, checkClock(stats.Now, asked, core.SystemClock{}.Now()))
		if st.Masters != nil {
			if masters, err := st.Masters(ctx); err == nil {
				checks = append(checks, checkPartitions(stats.Partitions, masters))
			}
		}
	}
	for _, check := range s.Diagnose(ctx) {
		switch {
		case check.Check == "process": // this one runs nothing
			continue
		case at != nil && slices.Contains([]string{"eviction", "persistence", "memory"}, check.Check): // the checks of the host say what to do there
			continue
		case check.Check == "handlers" && len(c.Handlers) > 0:
			h := inspect.Health{Stats: stats}
			if h.Processes, err = s.Processes(ctx); err == nil {
				check = checkHandlers(&h, c)
			}
		}
		checks = append(checks, check)
	}
	return append(checks, checkAlarm(ctx, s, st, c)...)
}

// warnings is a slog.Handler that keeps what opening a store logs about its Redis.
type warnings struct {
	all *warned
	// at is added by WithAttrs: in a cluster the address of the node that a warning is about.
	at string // the attributes of all of them
}

// warned is what was logged. The nodes of a cluster are checked concurrently, and each logs once it is checked.
type warned struct {
	mu   sync.Mutex
	list []warning
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
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.all.list = append(w.all.list, it)
	return nil
}

// WithAttrs appends attributes to each message.
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
func (w *warnings) checks(st *storage.Store) []finding {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	check, fine := "redis", " answers, uses an append-only file, and grants every permission that duly needs"
	if st.Redis == nil {
		check, fine = "store", " could be read whole, and can be written"
	}
	if len(w.all.list) == 0 {
		return []finding{found(check, checkOK, st.Name+fine, "")}
	}
	var all []finding
	for _, it := range w.all.list {
		all = append(all, found(check, checkWarning, it.text, it.todo))
	}
	return all
}

// muchSkew is how far clocks may be apart before it is worth a word.
const muchSkew = 500 * time.Millisecond

// checkClock compares the clocks, by what Redis said between two readings of this machine's. duly needs no equal clocks: only times that a
// person types are read by this machine's, and alarms are set by the clock of the process.
func checkClock(redis, asked, answered time.Time) finding {
	skew := min(answered.Sub(redis), max(asked.Sub(redis), 0)).Round(100 * time.Millisecond)
	if skew.Abs() <= muchSkew {
		return found("clock", checkOK, "this machine and Redis agree on the time", "")
	}
	return found(
		"clock", checkWarning, fmt.Sprintf("the clocks of this machine and Redis differ by %s: tasks follow the clock of Redis, --at and --until are read as given", skew),
		"synchronise the clocks",
	)
}

// checkHandlers compares the kinds of live tasks with the handlers of the file, and with the workers outside that pull them.
func checkHandlers(h *inspect.Health, c *dulyfile.File) finding {
	st := &h.Stats
	var missing []string
	for i := range st.Kinds {
		k := &st.Kinds[i]
		if k.Live > 0 && !c.Handles(k.Kind) {
			missing = append(missing, fmt.Sprintf("%s (%d)", k.Kind, k.Live))
		}
	}
	if unasked := unasked(h, c); len(missing) == 0 && len(unasked) > 0 {
		return found("handlers", checkWarning, "tasks are due, and no worker asks for these kinds of live tasks: "+strings.Join(unasked, ", "),
			fmt.Sprintf("start one, such as duly work --kind %s -- PROGRAM; duly explain says when the last one was seen", unasked[0]))
	}
	// Warning and not failure: another process may have the handler, which
	// doctor cannot see from the file.
	if len(missing) == 0 {
		return found("handlers", checkOK, "the file has a handler for every task", "")
	}
	return found(
		"handlers", checkWarning, "the file has no handler for these kinds of live tasks: "+strings.Join(missing, ", "),
		"another process must have the handler; otherwise add it to the file",
	)
}

// unasked are the kinds of live tasks that workers outside are to pull and that none asks for, while some tasks are due and wait for a handler.
func unasked(h *inspect.Health, c *dulyfile.File) []string {
	if h.Stats.Parked == h.Stats.Held {
		return nil
	}
	var kinds []string
	for i := range h.Stats.Kinds {
		k := &h.Stats.Kinds[i]
		pulled := slices.ContainsFunc(c.Handlers, func(of dulyfile.Handler) bool { return of.Worker && of.Kind == k.Kind })
		if pulled && k.Live > 0 && !slices.ContainsFunc(h.Processes, func(p model.Process) bool { return p.Handles(k.Kind) }) {
			kinds = append(kinds, k.Kind)
		}
	}
	return kinds
}

// checkPartitions compares the number of partitions with the servers that have them; masters is zero for a single one.
// More partitions than masters do no harm in a cluster: they are what it can grow into.
func checkPartitions(n, masters int) finding {
	const todo = "stop every process, then duly repartition --to %d --yes"
	switch {
	case masters == 0 && n > 1:
		return found(
			"partitions", checkWarning, fmt.Sprintf("%d partitions on a single server, which does no more with them: each batch becomes up to %d script calls", n, n),
			fmt.Sprintf(todo, 1),
		)
	case n < masters:
		to := redisstore.DefaultPartitions
		for to < masters {
			to *= 2
		}
		return found(
			"partitions", checkWarning, fmt.Sprintf("%s on a cluster of %d masters: %s no task", table.Count(n, "partition"), masters, idle(masters-n)),
			fmt.Sprintf(todo, to),
		)
	case masters == 0:
		return found("partitions", checkOK, "one partition, which is best on a single server", "")
	default:
		return found("partitions", checkOK, fmt.Sprintf("%d partitions on a cluster of %s", n, table.Count(masters, "master")), "")
	}
}

// idle are the masters that no partition is on: at least so many.
func idle(n int) string {
	if n == 1 {
		return "at least one of them has"
	}
	return fmt.Sprintf("at least %d of them have", n)
}

// checkAudit is a failure for every fault: a task that nothing would run
// is what duly promises not to have.
func checkAudit(r *inspect.AuditReport) finding {
	if r.Found == 0 {
		return found("audit", checkOK, fmt.Sprintf("every live task (%d) waits, runs or is parked", r.Tasks), "")
	}
	fault := found("audit", checkFailed, table.Count(r.Found, "fault")+": some tasks would never run", "duly audit --repair")
	switch unreadable := r.Found - r.Repairable; {
	case unreadable == r.Found:
		fault.Message = table.Count(unreadable, "record") + " unreadable and beyond repair"
		fault.Hint = "duly audit names them; " + unreadableTodo
	case unreadable > 0:
		fault.Hint += "; duly audit lists the faults that it cannot repair"
	}
	return fault
}
