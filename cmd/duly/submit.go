package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
)

// submitOptions are the flags of duly submit: a task, or the name of a file with tasks.
type submitOptions struct {
	task    core.NewTask
	payload string
	at      string
	info    string
	file    string
}

func (p *process) submitCommand(o *options) *cobra.Command {
	s := &submitOptions{}
	cmd := command("submit", "Submit a task, or the tasks of a JSON file",
		`  duly submit --agent ada --kind note --payload '{"text":"hi"}' --delay 10m
  duly submit --agent ada --kind digest --id poll --every 10m
  duly submit --agent ada --kind digest --id nightly --cron "0 1 * * *" --zone Europe/Berlin
  duly submit --agent ada --preset memory.rollup_day --unique-key rollup
  duly submit -f tasks.json     # one task, or {"tasks": [...]}; - for standard input`,
		func(cmd *cobra.Command, _ []string) error {
			tasks, err := s.tasks(cmd, p.stdin)
			if err != nil {
				return err
			}
			return o.onStore(cmd.Context(), func(scheduler *core.Scheduler) error {
				placed, err := scheduler.Submit(cmd.Context(), tasks...)
				if err != nil {
					return err
				}
				answer := struct {
					Tasks []core.Submitted `json:"tasks"`
				}{placed}
				return o.print(p.stdout, answer, func(w *page) { printSubmitted(w, placed) })
			})
		})
	s.flags(cmd)
	return o.withJSON(cmd)
}

func (s *submitOptions) flags(cmd *cobra.Command) {
	f, t := cmd.Flags(), &s.task
	f.StringVarP(&s.file, "file", "f", "", "read tasks from this JSON file; - for standard input")
	f.StringVar(&t.Agent, "agent", "", "owner of the task")
	f.StringVar(&t.Kind, "kind", "", "names the handler")
	f.StringVar(&t.ID, "id", "", "unique for the agent; submitting it again changes nothing (default made up)")
	f.StringVar(&s.payload, "payload", "", "JSON for the handler; - for standard input")
	f.StringVar(&s.at, "at", "", "due at this time, such as 2026-01-02T15:04:05Z")
	f.DurationVar(&t.Delay, "delay", 0, "due after this long")
	f.DurationVar(&t.Every, "every", 0, "recurs with this interval")
	f.StringVar((*string)(&t.From), "from", "", "count the interval from completion (default) or start")
	f.StringVar(&t.Cron, "cron", "", "recurs at these times, such as \"0 9 * * MON-FRI\"; see duly next")
	f.StringVar(&t.Zone, "zone", "", "IANA zone of --cron, such as Europe/Berlin (default UTC)")
	f.StringVar((*string)(&t.Gap), "gap", "", "a time of --cron that does not exist: run at the end of the gap (default) or skip")
	f.StringVar((*string)(&t.DayMatch), "day-match", "", "both day fields of --cron restricted: any (default) or all must match")
	s.policyFlags(cmd)
	f.StringVar(&t.Group, "group", "", "ties several tasks together for one status")
	f.IntVar((*int)(&t.Level), "level", 0, "priority, 1 (first) to 3 (default 3)")
	f.IntVar(&t.MaxAttempts, "max-attempts", 0, "attempts before the task is dead (default the handler's)")
	f.DurationVar(&t.Backoff, "backoff", 0, "base of the pauses between attempts (default the handler's)")
	f.DurationVar(&t.Timeout, "timeout", 0, "of one run (default the handler's)")
	f.DurationVar(&t.Lease, "lease", 0, "how long a run may go without a sign of life (default the handler's)")
	f.StringVar(&t.TraceID, "trace-id", "", "shown in events and to the handler")
	f.StringVar(&t.Traceparent, "traceparent", "", "W3C trace context for the handler")
	f.StringVar(&t.SessionID, "session-id", "", "shown to the handler")
	f.StringVar(&t.UserID, "user-id", "", "shown to the handler")
	f.StringVar(&t.MemCubeID, "mem-cube-id", "", "shown to the handler")
	f.StringVar(&t.UserName, "user-name", "", "shown to the handler")
	f.StringVar(&s.info, "info", "", "any JSON of yours, shown to the handler")
	f.StringArrayVar(&t.Tags, "tag", nil, "a tag; can be given several times")
}

// policyFlags say how occurrences follow one another, and which task it is.
func (s *submitOptions) policyFlags(cmd *cobra.Command) {
	f, t := cmd.Flags(), &s.task
	f.DurationVar(&t.Jitter, "jitter", 0, "put each run off by a stable time below this")
	f.StringVar((*string)(&t.Overlap), "overlap", "", "what falls due while it runs: skip (default), queue_one, allow or cancel_running")
	f.StringVar((*string)(&t.Misfire), "misfire", "", "what nobody was there to run: once (default), skip or all")
	f.IntVar(&t.PauseAfter, "pause-after-failures", 0, "pause after so many failed runs in a row; 0 for never (default the handler's)")
	f.DurationVar(&t.MinInterval, "min-interval", 0, "no run starts sooner than this after the last one")
	f.StringVar(&t.SnoozeKey, "snooze-key", "", "tasks that share a key can be paused together")
	f.StringVar(&t.UniqueKey, "unique-key", "", "make the id from this, so that submitting twice makes one task")
	f.StringVar((*string)(&t.OnConflict), "on-conflict", "", "if the id is there: keep it (default), replace it or fail")
	f.StringVar(&t.Preset, "preset", "", "take what is left out from a preset; see duly presets")
	choices(cmd, "from", string(core.FromCompletion), string(core.FromStart))
	choices(cmd, "overlap", string(core.OverlapSkip), string(core.OverlapQueueOne), string(core.OverlapAllow), string(core.OverlapCancelRunning))
	choices(cmd, "misfire", string(core.MisfireOnce), string(core.MisfireSkip), string(core.MisfireAll))
	choices(cmd, "on-conflict", string(core.OnConflictKeep), string(core.OnConflictReplace), string(core.OnConflictFail))
	var presets []string
	for _, preset := range core.Presets() {
		presets = append(presets, preset.Name)
	}
	choices(cmd, "preset", presets...)
}

// choices completes a flag that takes one of some words.
func choices(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag, or it has words already
	}
}

// tasks are the task of the flags or those of the file.
func (s *submitOptions) tasks(cmd *cobra.Command, stdin io.Reader) ([]core.NewTask, error) {
	if s.file != "" {
		if s.payload+s.at+s.info != "" || !reflect.ValueOf(s.task).IsZero() {
			return nil, usage("use the one or the other", "-f excludes the flags that describe a task")
		}
		data, err := readInput(s.file, stdin)
		if err != nil {
			return nil, err
		}
		return core.ParseTasks(data)
	}
	if cmd.Flags().Changed("pause-after-failures") && s.task.PauseAfter <= 0 {
		s.task.PauseAfter = never
	}
	return s.described(stdin)
}

// described is the task of the flags.
func (s *submitOptions) described(stdin io.Reader) ([]core.NewTask, error) {
	t := s.task
	if s.at != "" {
		at, err := time.Parse(time.RFC3339, s.at)
		if err != nil {
			return nil, usage("use one such as 2026-01-02T15:04:05Z", "--at %q is not a time", s.at)
		}
		t.At = at
	}
	if s.payload != "" {
		payload := []byte(s.payload)
		if s.payload == "-" {
			var err error
			if payload, err = readInput("-", stdin); err != nil {
				return nil, err
			}
		}
		if !json.Valid(payload) {
			return nil, usage(`quote it for the shell: --payload '{"text":"hi"}', or '"hi"' for a text`, "--payload is not JSON")
		}
		t.Payload = json.RawMessage(payload)
	}
	if s.info != "" {
		t.Info = json.RawMessage(s.info)
	}
	return []core.NewTask{t}, nil
}

// mostInput is the most that is read of a file or of standard input.
const mostInput = 64 << 20

// readInput reads a file, or standard input if the name is "-".
func readInput(name string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // the user names the file
		if err != nil {
			return nil, usage("name a file that can be read", "%w", err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, mostInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > mostInput {
		return nil, &failure{why: errors.New("the input is longer than 64 MiB"), code: exitUsage}
	}
	return data, nil
}

func printSubmitted(w *page, placed []core.Submitted) {
	t := newTable(w, "AGENT", "ID", "KIND", "DUE", "STATUS", "NEW")
	for i := range placed {
		s := &placed[i]
		isNew := "no"
		switch {
		case s.Created:
			isNew = "yes"
		case s.Replaced:
			isNew = "replaced"
		}
		t.row(s.Agent, s.ID, s.Kind, clock(s.Due), string(s.Status), isNew)
	}
	t.end()
}
