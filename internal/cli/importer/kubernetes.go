package importer

// CronJobs of Kubernetes: a job is a task, and the command of its first container a handler.

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-6f6f2c11/duly/core"
)

// cronJob is what of a CronJob, or of a list of them, says when it runs and what.
type cronJob struct {
	Kind     string
	Items    []cronJob
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Schedule                string
		TimeZone                string `yaml:"timeZone"`
		Suspend                 bool
		ConcurrencyPolicy       string `yaml:"concurrencyPolicy"`
		StartingDeadlineSeconds int64  `yaml:"startingDeadlineSeconds"`
		JobTemplate             struct {
			Spec struct {
				ActiveDeadlineSeconds int64 `yaml:"activeDeadlineSeconds"`
				Template              struct {
					Spec struct {
						Containers []struct {
							Image         string
							Command, Args []string
							Env, EnvFrom  []any
						}
					}
				}
			}
		} `yaml:"jobTemplate"`
	}
}

// overlaps are the policies of concurrency, in duly's words.
var overlaps = map[string]string{"": "allow", "Allow": "allow", "Forbid": "skip", "Replace": "cancel_running"}

// kubernetes reads all documents of a file. JSON is YAML, too.
func (f *Found) kubernetes(data []byte, agent string) error {
	for d := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var job cronJob
		err := d.Decode(&job)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &core.InvalidError{Field: "file", Reason: "is no YAML of Kubernetes: " + err.Error()}
		}
		for _, j := range append(job.Items, job) {
			if j.Kind == "CronJob" {
				f.cronJob(&j, agent)
			}
		}
	}
}

// cronJob reads one.
func (f *Found) cronJob(j *cronJob, agent string) {
	name, spec := j.Metadata.Name, &j.Spec
	if name == "" || !f.cron(name, spec.Schedule, spec.TimeZone) {
		return
	}
	containers := spec.JobTemplate.Spec.Template.Spec.Containers
	if len(containers) == 0 {
		f.left(name, "left out: it has no container")
		return
	}
	if len(containers) > 1 {
		f.left(name, "of %d containers the first was taken", len(containers))
	}
	c := &containers[0]
	argv := append(append([]string{}, c.Command...), c.Args...)
	if len(argv) == 0 {
		argv = []string{"false"}
		f.left(name, "it runs what the image %s starts by itself: write that into exec", c.Image)
	} else {
		f.left(name, "the image %s: the program has to be where the daemon runs", c.Image)
	}
	if len(c.Env)+len(c.EnvFrom) > 0 {
		f.left(name, "its variables: set them for the daemon")
	}
	h := Handler{Exec: argv, Timeout: seconds(spec.JobTemplate.Spec.ActiveDeadlineSeconds), Grace: seconds(spec.StartingDeadlineSeconds)}
	f.Kinds[name] = h
	f.Tasks = append(f.Tasks, Task{
		Agent: cmp.Or(j.Metadata.Namespace, agent), ID: name, Kind: name, Cron: spec.Schedule, Zone: spec.TimeZone,
		Overlap: overlaps[spec.ConcurrencyPolicy], Paused: spec.Suspend,
	})
}

// seconds is a duration of some seconds; empty for none.
func seconds(n int64) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(time.Duration(n) * time.Second)
}
