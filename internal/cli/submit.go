package cli

// The command submit.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/schedule/phrase"
	"github.com/seed-6f6f2c11/duly/internal/cli/catalogue"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// submitOptions are the flags of duly submit: the fields of a task, or the name of a file with tasks. The reader of JSON tasks
// parses each field, so that a flag means what the field does, and a flag that is given is never taken for one that is omitted.
type submitOptions struct {
	// It is filled as flags are declared, so that a flag and its field cannot drift apart.
	fields map[string]string // the JSON field of each flag that is one
	file   string
	wait   time.Duration // for the end of what was submitted; zero for not at all
}

// submitCommand builds the JSON of a task from its flags and has core read it:
// one reader for HTTP, files and flags.
func submitCommand(o *command.Options) *cobra.Command {
	s := &submitOptions{}
	cmd := command.New("submit", "Submit a task, or the tasks of a JSON file",
		`  duly submit --agent ada --kind note --payload '{"text":"hi"}' --delay 10m
  duly submit --agent ada --kind digest --id poll --every 10m
  duly submit --agent ada --kind digest --id nightly --cron "0 1 * * *" --zone Europe/Berlin
  duly submit --agent ada --kind digest --id standup --when "every weekday at 9am in Europe/Berlin"
  duly submit --agent ada --preset memory.rollup_day --unique-key rollup
  duly submit -f tasks.json     # one task, or {"tasks": [...]}; - for standard input`,
		func(cmd *cobra.Command, _ []string) error {
			tasks, err := s.tasks(cmd, o.Stdin)
			if err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(on command.Scheduler) error {
				ctx, err := inRun(cmd.Context(), on)
				if err != nil {
					return err
				}
				placed, err := on.Submit(ctx, tasks...)
				if err != nil {
					return err
				}
				answer := operation.Submitted{Tasks: placed}
				var said string
				if cmd.Flags().Changed("when") {
					said = readBack(ctx, on, &placed[0], &tasks[0])
				}
				sayNotBooked(o, placed)
				if s.wait > 0 {
					return waitFor(cmd.Context(), o, on, placed, s.wait)
				}
				return o.Print(answer, func(w *table.Page) { printSubmitted(w, placed, said) })
			})
		})
	s.flags(cmd)
	return o.WithJSON(cmd)
}

// sayNotBooked warns of tasks for which no host is going to be called.
func sayNotBooked(o *command.Options, placed []core.Submitted) {
	if slices.ContainsFunc(placed, func(s core.Submitted) bool { return s.NotBooked }) {
		o.Say("warning: hosts are called by alarms here, and none could be booked: what was submitted waits for the next call; pass -c FILE with alarm:, or see duly doctor")
	}
}

// envParent names the run of a handler that has started this program.
const envParent = "DULY_PARENT"

// inRun is the context in which tasks are submitted: in the name of the run that this program belongs to, if it is one of a handler.
func inRun(ctx context.Context, s command.Scheduler) (context.Context, error) {
	parent := os.Getenv(envParent)
	if parent == "" {
		return ctx, nil
	}
	in, err := s.WithParent(ctx, parent)
	if inv, is := errors.AsType[*core.InvalidError](err); is {
		return nil, exit.Misuse("unset it if this is no run of a handler", "%s: %s", envParent, inv.Reason)
	}
	return in, err
}

// flags declares a flag for every field of a task that makes sense on a command line.
func (s *submitOptions) flags(cmd *cobra.Command) {
	s.fields = map[string]string{}
	cmd.Flags().StringVarP(&s.file, "file", "f", "", "read tasks from this JSON file; - for standard input")
	command.DurationVar(cmd.Flags(), &s.wait, "wait", 0, "wait so long for the end, of a task that recurs for its first run, and print that; see duly wait for the exit codes")
	// The order does not matter: pflag sorts them in the help.
	s.texts(cmd, [][2]string{
		{"agent", "owner of the task"},
		{"kind", "names the handler"},
		{"id", "unique for the agent; submitting it again changes nothing (default generated)"},
		{"payload", "JSON for the handler; - for standard input"},
		{"when", "a schedule as people say it, such as \"every weekday at 9am\"; a phrase with two meanings is refused with the question"},
		{"at", "due at this time, such as 2026-01-02T15:04:05Z, or 2026-01-02T15:04 with --zone"},
		{"from", "count the interval from completion (default) or start"},
		{"cron", "recurs at these times, such as \"0 9 * * MON-FRI\"; see duly next"},
		{"zone", "IANA zone of --cron and --when, and of --at without an offset, such as Europe/Berlin, or agent for that of the agent's profile (default the file's zone; without one --cron and --at are in UTC, and --when asks)"},
		{"gap", "a local time that a clock change skips: run at the end of the gap (default) or skip"},
		{"day-match", "if both day fields of --cron are restricted: any (default) or all must match"},
		{"group", "ties several tasks together for one status"},
		{"trace-id", "shown in events and passed to the handler"},
		{"traceparent", "W3C trace context for the handler"},
		{"session-id", "passed to the handler"},
		{"user-id", "passed to the handler"},
		{"info", "any JSON of your own, passed to the handler"},
		{"overlap", "when it becomes due while it runs: skip (default), queue_one, allow or cancel_running"},
		{"misfire", "occurrences missed while no process ran: run once (default), skip or all"},
		{"callback", "https URL that is told how the task has ended, which needs callbacks in the file; or signal:KEY, or signal-group:KEY"},
		{"on-late", "with --expect-success, what is notified once it is late: an https URL, which needs callbacks in the file; signal:KEY; or task:KIND"},
		{"limit-key", "tasks that share a key can be paused together"},
		{"paused-reason", "why it is paused, with --paused"},
		{"unique-key", "make the id from this, so that submitting twice makes one task"},
		{"on-conflict", "what to do when the id already exists: keep the task (default), replace it or fail"},
		{"preset", "fill in missing fields from a preset; see duly presets"},
	})
	s.durations(cmd, [][2]string{
		{"delay", "due after this long"},
		{"every", "recurs with this interval"},
		{"backoff", "base of the pauses between attempts, 0s for none (default: the handler's)"},
		{"timeout", "of one run, 0s for none (default: the handler's)"},
		{"lease", "how long a run may go without a sign of life (default: the handler's)"},
		{"jitter", "delay each run by a stable time below this; 0s overrides a preset"},
		{"expect-success", "within which time a run succeeds, such as 26h for a daily task; if none does the task is late: see duly list --late"},
		{"min-interval", "no run starts sooner than this after the start of the previous one"},
	})
	s.numbers(cmd, [][2]string{
		{"level", "priority, 1 (first) to 3 (default 3)"},
		{"max-attempts", "attempts before the task fails for good (default: the handler's)"},
		{"pause-after-failures", "pause after so many failed runs in a row; 0 for never (default: the handler's)"},
	})
	s.choices(cmd, [][2]string{
		{"manual", "due only when duly run tells it to run, again and again"},
		{"paused", "store it paused; duly resume lets it run"},
		{"urgent", "start in the quiet hours of the agent too, if its profile allows that"},
	})
	// Its name is in the singular, as each use adds one.
	cmd.Flags().StringArray("tag", nil, "a tag; can be given several times")
	s.fields["tag"] = "tags"
	cmd.Flags().StringArray("label", nil, "name=value of your own, passed to the handler; can be given several times")
	s.fields["label"] = "labels"
	s.complete(cmd)
}

// submitGroups are the flags of a task in the help.
var submitGroups = []help.Group{
	{Title: "What", Flags: []string{"agent", "kind", "id", "payload", "preset", "file", "group", "level", "tag", "label", "info", "unique-key", "on-conflict", "callback"}},
	{Title: "When", Flags: []string{"when", "at", "delay", "zone", "gap", "manual", "paused", "paused-reason", "urgent"}},
	{Title: "How often", Flags: []string{"every", "from", "cron", "day-match", "jitter", "min-interval", "overlap", "misfire"}},
	{Title: "Limits", Flags: []string{"limit-key", "timeout", "lease", "max-attempts", "backoff", "pause-after-failures", "expect-success", "on-late"}},
	{Title: "Tracing", Flags: []string{"trace-id", "traceparent", "session-id", "user-id"}},
}

// choices declares flags that are given or not.
func (s *submitOptions) choices(cmd *cobra.Command, flags [][2]string) {
	for _, f := range flags {
		cmd.Flags().Bool(f[0], false, f[1])
		s.field(f[0])
	}
}

// texts declares flags whose values are strings in JSON.
func (s *submitOptions) texts(cmd *cobra.Command, flags [][2]string) {
	for _, f := range flags {
		cmd.Flags().String(f[0], "", f[1])
		s.field(f[0])
	}
}

// durations declares flags whose values are durations, written "90s" in JSON as well.
func (s *submitOptions) durations(cmd *cobra.Command, flags [][2]string) {
	for _, f := range flags {
		command.DurationVar(cmd.Flags(), new(time.Duration), f[0], 0, f[1])
		s.field(f[0])
		command.ZeroMeans(cmd, f[0]) // or the reader of the field refuses it
	}
}

// numbers declares flags whose values are integers.
func (s *submitOptions) numbers(cmd *cobra.Command, flags [][2]string) {
	for _, f := range flags {
		cmd.Flags().Int(f[0], 0, f[1])
		s.field(f[0])
		command.ZeroMeans(cmd, f[0])
	}
}

// field records which JSON field a flag sets: the same name, but for the agent.
func (s *submitOptions) field(flag string) {
	s.fields[flag] = strings.ReplaceAll(flag, "-", "_")
	if flag == "agent" {
		s.fields[flag] = "agent_id"
	}
}

// complete completes the flags that take one of some words, and puts all in groups for the help.
// The words are those of core, so that a new one is completed without a change here.
func (*submitOptions) complete(cmd *cobra.Command) {
	choices(cmd, "from", string(core.FromCompletion), string(core.FromStart))
	choices(cmd, "overlap", string(core.OverlapSkip), string(core.OverlapQueueOne), string(core.OverlapAllow), string(core.OverlapCancelRunning))
	choices(cmd, "misfire", string(core.MisfireOnce), string(core.MisfireSkip), string(core.MisfireAll))
	choices(cmd, "gap", string(schedule.GapRun), string(schedule.GapSkip))
	choices(cmd, "day-match", string(schedule.DayMatchAny), string(schedule.DayMatchAll))
	choices(cmd, "on-conflict", string(core.OnConflictKeep), string(core.OnConflictReplace), string(core.OnConflictFail))
	var presets []string
	for _, preset := range model.Presets() {
		presets = append(presets, preset.Name)
	}
	choices(cmd, "preset", presets...)
	if err := help.InGroups(cmd, submitGroups); err != nil {
		panic(err) // a group names a flag that does not exist
	}
}

// choices completes a flag that takes one of some words.
// File names would otherwise be offered where none makes sense.
func choices(cmd *cobra.Command, flag string, words ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err == nil {
		err = cmd.Flags().SetAnnotation(flag, catalogue.Values, words)
	}
	if err != nil {
		panic(err) // there is no such flag, or it has words already
	}
}

// tasks are the task of the flags or those of the file.
// Only flags that were given become fields: a field that is omitted has a
// default, one that is zero means zero.
func (s *submitOptions) tasks(cmd *cobra.Command, stdin io.Reader) ([]core.NewTask, error) {
	described := map[string]json.RawMessage{}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if name, ok := s.fields[f.Name]; ok && err == nil {
			described[name], err = flagJSON(f, stdin)
		}
	})
	switch {
	case err != nil:
		return nil, err
	// Flags that change the tasks of a file would be ambiguous for several tasks.
	case s.file != "" && len(described) > 0:
		return nil, exit.Misuse("use one or the other", "-f excludes the flags that describe a task")
	case s.file != "":
		data, err := readInput(s.file, stdin)
		if err != nil {
			return nil, err
		}
		// The same reader as for POST /v1/tasks, with the same errors.
		return model.ParseTasks(data)
	}
	data, err := json.Marshal(described)
	if err != nil {
		return nil, err
	}
	return model.ParseTasks(data)
}

// flagJSON is what a flag says, as the field of a task.
// A number becomes a number and everything else a string: only core knows what a string must look like.
func flagJSON(f *pflag.Flag, stdin io.Reader) (json.RawMessage, error) {
	text := f.Value.String()
	switch {
	case f.Name == "payload" || f.Name == "info":
		return rawJSON(f.Name, text, stdin)
	case f.Value.Type() == "int", f.Value.Type() == "bool":
		return json.RawMessage(text), nil
	case !utf8.ValidString(text): // which JSON cannot say
		return nil, exit.Misuse("give it in UTF-8", "--%s is not valid UTF-8", f.Name)
	}
	// A flag that can be repeated is an array, also with a single value; of labels, an object.
	if list, ok := f.Value.(pflag.SliceValue); ok && f.Name == "label" {
		labels, err := labelsOf(list.GetSlice())
		if err != nil {
			return nil, err
		}
		return json.Marshal(labels)
	}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return json.Marshal(list.GetSlice())
	}
	return json.Marshal(text)
}

// rawJSON is a flag that is JSON itself.
// Only a payload or a change can come from standard input, as that can be read once.
func rawJSON(name, text string, stdin io.Reader) (json.RawMessage, error) {
	data := []byte(text)
	if (name == "payload" || name == "set") && text == "-" {
		var err error
		if data, err = readInput("-", stdin); err != nil {
			return nil, err
		}
	}
	// A shell that eats the quotes is the usual reason, so the hint shows how to write them.
	if !json.Valid(data) {
		return nil, exit.Misuse(fmt.Sprintf(`quote it for the shell: --%s '{"text":"hi"}', or '"hi"' for a string`, name), "--%s is not JSON", name)
	}
	return data, nil
}

// mostInput is the most that is read of a file or of standard input.
// A thousand tasks with payloads of 64 KiB: more than one submit may have.
const mostInput = 64 << 20

// readInput reads a file, or standard input if the name is "-".
func readInput(name string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // the user names the file
		if err != nil {
			return nil, exit.Misuse("name a file that can be read", "%w", err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	// One byte more than allowed tells an input that is too long from one that is exactly as long.
	data, err := io.ReadAll(io.LimitReader(from, mostInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > mostInput {
		return nil, &exit.Failure{Why: errors.New("the input is longer than 64 MiB"), Code: exit.Usage}
	}
	return data, nil
}

// readBack is the schedule of the task that a phrase has made, in words and with its next times, so that the submitter sees how it was understood.
// It is read from the store: what counts is what was stored.
func readBack(ctx context.Context, on command.Scheduler, placed *core.Submitted, asked *core.NewTask) string {
	info, err := on.Task(ctx, placed.Agent, placed.ID)
	if err != nil {
		return "" // it is stored
	}
	var zone string
	if info.Zone == core.ZoneOfAgent {
		if p, err := on.Profile(ctx, placed.Agent); err == nil {
			zone = p.Zone
		}
	}
	name := cmp.Or(zone, strings.TrimSuffix(info.Zone, core.ZoneOfAgent), strings.TrimSuffix(asked.Zone, core.ZoneOfAgent), "UTC")
	in, err := schedule.LoadZone(name)
	if err != nil {
		in = time.UTC
	}
	if said, err := phrase.Parse(asked.When, info.Submitted, in); err == nil && !said.At.IsZero() {
		in = said.At.Location() // that of the phrase
	}
	return inspect.ReadBack(&info, zone, in, 5)
}

// printSubmitted says of each task whether it is new, which tells a repeated submit from a first one. said is the schedule that a phrase has become.
func printSubmitted(w *table.Page, placed []core.Submitted, said string) {
	t := table.New(w, "AGENT", "ID", "KIND", "DUE", "STATUS", "NEW")
	for i := range placed {
		s := &placed[i]
		isNew := "no"
		switch {
		case s.Created:
			isNew = "yes"
		case s.Replaced:
			isNew = "replaced"
		}
		t.Row(s.Agent, s.ID, s.Kind, table.Clock(s.Due), string(s.Status), isNew)
	}
	t.End()
	if said != "" {
		fmt.Fprintln(&w.Buffer, said)
	}
}
