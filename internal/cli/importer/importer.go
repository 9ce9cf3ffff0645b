// Package importer turns the schedules of other programs into a duly.yaml: what it has, and what cannot be kept.
package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// pattern is a regular expression that is compiled when it is first used: commands that import nothing do not wait for it.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// Found is what a file of another program has.
type Found struct {
	Tasks []Task
	// Kinds are the programs that run them, by their kinds.
	Kinds map[string]Handler
	// Left is what cannot be kept as it is, each with its place in the file.
	Left []string
}

// Task is a task as duly.yaml has it.
type Task struct {
	Agent   string         `yaml:"agent"`
	ID      string         `yaml:"id"`
	Kind    string         `yaml:"kind"`
	Cron    string         `yaml:"cron,omitempty"`
	Zone    string         `yaml:"zone,omitempty"`
	Every   string         `yaml:"every,omitempty"`
	From    string         `yaml:"from,omitempty"` // what every counts from
	Days    string         `yaml:"day_match,omitempty"`
	At      string         `yaml:"at,omitempty"`
	Jitter  string         `yaml:"jitter,omitempty"`
	Overlap string         `yaml:"overlap,omitempty"`
	Paused  bool           `yaml:"paused,omitempty"`
	Payload map[string]any `yaml:"payload,omitempty"`
}

// Handler is what runs tasks of a kind: a program, or a worker of the user's.
type Handler struct {
	Exec     []string  `yaml:"exec,flow,omitempty"`
	Worker   *struct{} `yaml:"worker,flow,omitempty"`
	Attempts int       `yaml:"max_attempts,omitempty"`
	Timeout  string    `yaml:"timeout,omitempty"`
	Grace    string    `yaml:"grace,omitempty"`
}

// Formats are what can be read, by their names on the command line, each with what its file is.
var Formats = map[string]string{
	"crontab":        "a crontab of a user, as crontab -l prints it",
	"system-crontab": "a crontab with a field for the user, such as /etc/crontab",
	"kubernetes":     "CronJobs, as kubectl get cronjobs -o yaml or -o json prints them, or a manifest",
	"openclaw":       "jobs.json of OpenClaw, in ~/.openclaw/cron",
	"hermes":         "jobs.json of Hermes, in ~/.hermes/cron",
	"celery":         "periodic tasks of Celery, as manage.py dumpdata django_celery_beat prints them, or the script of the guide",
	"apscheduler":    "jobs of APScheduler, as the script of the guide prints them",
	"temporal":       "schedules of Temporal, as temporal schedule list -o json or describe -o json prints them",
	"asynq":          "the Redis of an asynq scheduler that runs, as a URL in place of the file",
	"bullmq":         "the Redis of BullMQ, as a URL in place of the file: its job schedulers and repeatable jobs",
}

// Read reads a file in one of the formats. Tasks that say no agent belong to the agent that is given.
func Read(format string, data []byte, agent string) (*Found, error) {
	f := &Found{Kinds: map[string]Handler{}}
	if !utf8.Valid(data) {
		return nil, &core.InvalidError{Field: "file", Reason: "must be text in UTF-8"}
	}
	read := map[string]func(data []byte, agent string) error{
		"crontab":        func([]byte, string) error { f.crontab(string(data), agent, false); return nil },
		"system-crontab": func([]byte, string) error { f.crontab(string(data), agent, true); return nil },
		"kubernetes":     f.kubernetes, "openclaw": f.openclaw, "hermes": f.hermes, "celery": f.celery, "apscheduler": f.apscheduler, "temporal": f.temporal,
	}[format]
	if read == nil {
		reason := fmt.Sprintf("must be %s, not %q", strings.Join(Names(), ", "), format)
		if IsRedis(format) {
			reason = format + " is read from Redis: give its URL in place of the file"
		}
		return nil, &core.InvalidError{Field: "format", Reason: reason}
	}
	if err := read(data, agent); err != nil {
		return nil, err
	}
	return f.some(format)
}

// some is what was found, and an error for nothing.
func (f *Found) some(format string) (*Found, error) {
	if len(f.Tasks) == 0 && len(f.Left) == 0 {
		return nil, &core.InvalidError{Field: "file", Reason: "has no schedules: it should be " + Formats[format]}
	}
	return f, nil
}

// Names are the formats in order.
func Names() []string { return slices.Sorted(maps.Keys(Formats)) }

// left notes what cannot be kept.
func (f *Found) left(where, what string, args ...any) {
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, where+": "+fmt.Sprintf(what, args...))
	f.Left = append(f.Left, strings.Join(strings.Fields(text), " "))
}

// foreign are characters that no kind has.
var foreign = pattern(`[^A-Za-z0-9_.:/-]+`)

// mostName is how long the name of a kind or a task of another program may be; what is more is cut.
const mostName = 60

// named is a name of another program as a kind may have it.
func named(name string) string {
	name = foreign().ReplaceAllString(name, "_")
	return cmp.Or(name[:min(len(name), mostName)], "task")
}

// add adds a task. Of two with the same id the second gets another.
func (f *Found) add(t Task) {
	t.ID = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, t.ID)
	id := cmp.Or(t.ID, t.Kind)
	for len(id) > 4*mostName {
		_, size := utf8.DecodeLastRuneInString(id)
		id = id[:len(id)-size]
	}
	t.ID = id
	for i := 2; slices.ContainsFunc(f.Tasks, func(o Task) bool { return o.Agent == t.Agent && o.ID == t.ID }); i++ {
		t.ID = fmt.Sprintf("%s-%d", id, i)
	}
	f.Tasks = append(f.Tasks, t)
}

// work makes a kind one of workers. It returns the handler as it is.
func (f *Found) work(kind string) Handler {
	h := f.Kinds[kind]
	h.Worker = &struct{}{}
	f.Kinds[kind] = h
	return h
}

// every sets an interval, and reports whether duly has such a one.
func (f *Found) every(where string, t *Task, d time.Duration) bool {
	if d < time.Second || d > longest {
		f.left(where, "left out: an interval is 1s at least and ten years at most, not %s", d)
		return false
	}
	if rest := d % time.Millisecond; rest != 0 {
		f.left(where, "its interval %s was cut to milliseconds", d)
		d -= rest
	}
	t.Every = d.String()
	return true
}

// jitter sets by how much starts are spread.
func (f *Found) jitter(where string, t *Task, d time.Duration) {
	if d = d.Truncate(time.Millisecond); d > 0 && d < longest && t.At == "" {
		t.Jitter = d.String()
		f.left(where, "jitter: duly starts it up to %s later than its time, and never sooner", t.Jitter)
	}
}

// longest is the longest interval.
const longest = 10 * 365 * 24 * time.Hour

// days has both day fields match where both are restricted, as for programs whose fields all have to.
func (t *Task) days(day, weekday string) {
	if day != "*" && weekday != "*" && day != "?" && weekday != "?" {
		t.Days = "all"
	}
}

// cron reports whether duly reads an expression in a zone unchanged, and notes it otherwise.
func (f *Found) cron(where, expr, zone string) bool {
	_, err := schedule.ParseCron(expr, zone, "", "")
	if err != nil {
		f.left(where, "left out: %v", err)
	}
	return err == nil
}

// File is a duly.yaml of what was found, with comments that say what was not kept.
func (f *Found) File() ([]byte, error) {
	var out bytes.Buffer
	for _, l := range f.Left {
		fmt.Fprintf(&out, "# %s\n", l)
	}
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	err := e.Encode(struct {
		Handlers map[string]Handler `yaml:"handlers,omitempty"`
		Tasks    []Task             `yaml:"tasks,omitempty"`
	}{f.Kinds, f.Tasks})
	if err != nil {
		return nil, fmt.Errorf("write the file: %w", err)
	}
	return out.Bytes(), nil
}
