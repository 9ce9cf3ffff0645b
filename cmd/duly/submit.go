package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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
  duly submit -f tasks.json     # one task, or {"tasks": [...]}; - for standard input`,
		func(cmd *cobra.Command, _ []string) error {
			tasks, err := s.tasks(cmd, p.stdin)
			if err != nil {
				return err
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
			placed, err := scheduler.Submit(cmd.Context(), tasks...)
			if err != nil {
				return err
			}
			answer := struct {
				Tasks []core.Submitted `json:"tasks"`
			}{placed}
			return o.print(p.stdout, answer, func(w *page) { printSubmitted(w, placed) })
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

// tasks are the task of the flags or those of the file.
func (s *submitOptions) tasks(cmd *cobra.Command, stdin io.Reader) ([]core.NewTask, error) {
	if s.file != "" {
		if cmd.Flags().Changed("agent") || cmd.Flags().Changed("kind") {
			return nil, usage("use the one or the other", "-f excludes the flags that describe a task")
		}
		data, err := readInput(s.file, stdin)
		if err != nil {
			return nil, err
		}
		return core.ParseTasks(data)
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
		if s.Created {
			isNew = "yes"
		}
		t.row(s.Agent, s.ID, s.Kind, clock(s.Due), string(s.Status), isNew)
	}
	t.end()
}
