package examples_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/schedule"
)

var duly = sync.OnceValues(func() (string, error) { return compile("duly", "../cmd/duly") })

// serveDuly is `duly serve` or `duly daemon` with a file.
func serveDuly(t *testing.T, verb, file string, env ...string) *service {
	t.Helper()
	program, err := duly()
	require.NoError(t, err)
	return launchAs(t, func(port, redisURL string) *exec.Cmd {
		cmd := exec.Command(program, verb, "-c", file, "--redis", redisURL, "--http", "127.0.0.1:"+port)
		cmd.Env = append(os.Environ(), env...)
		return cmd
	})
}

// config is a file of handlers for the tests.
func config(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "duly.yaml")
	require.NoError(t, os.WriteFile(file, []byte("handlers:\n  note: { log: {} }\n"), 0o600))
	return file
}

// readYAML reads a file of which every member is known.
func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	require.NoError(t, d.Decode(into), file)
}

// The tasks of the quickstart run: the recurring ones again and again, and the one that fails at first succeeds.
func TestTheQuickstart(t *testing.T) {
	t.Parallel()
	s := serveDuly(t, "daemon", "quickstart/duly.yaml")
	info := func(agent, id string) core.TaskInfo {
		task, _ := s.scheduler.Task(t.Context(), agent, id) // the daemon may not have submitted it yet
		return task
	}
	require.Eventually(t, func() bool {
		return info("ada", "heartbeat").RunCount >= 2 && info("ada", "reminder").Status == core.StatusCompleted &&
			info("bob", "digest").RunCount >= 1 && info("cleo", "sync").Status == core.StatusCompleted
	}, 20*time.Second, 20*time.Millisecond)
	assert.Len(t, info("cleo", "sync").Runs, 2)
	assert.JSONEq(t, `"in sync"`, string(info("cleo", "sync").Result))
	digest := info("bob", "digest")
	assert.Zero(t, digest.ErrorCount)
	var result struct{ Digest string }
	require.NoError(t, json.Unmarshal(digest.Result, &result))
	assert.Equal(t, "of bob", result.Digest)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, s.end())
}

// cronJob is what of a CronJob the example uses.
type cronJob struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Schedule                   string
		ConcurrencyPolicy          string `yaml:"concurrencyPolicy"`
		StartingDeadlineSeconds    int    `yaml:"startingDeadlineSeconds"`
		SuccessfulJobsHistoryLimit int    `yaml:"successfulJobsHistoryLimit"`
		FailedJobsHistoryLimit     int    `yaml:"failedJobsHistoryLimit"`
		JobTemplate                struct {
			Spec struct {
				BackoffLimit          int `yaml:"backoffLimit"`
				ActiveDeadlineSeconds int `yaml:"activeDeadlineSeconds"`
				Template              struct{ Spec podSpec }
			}
		} `yaml:"jobTemplate"`
	}
}

type podSpec struct {
	RestartPolicy                 string `yaml:"restartPolicy"`
	TerminationGracePeriodSeconds int    `yaml:"terminationGracePeriodSeconds"`
	AutomountToken                bool   `yaml:"automountServiceAccountToken"`
	SecurityContext               any    `yaml:"securityContext"` // deploy's tests look at both
	Containers                    []struct {
		Name, Image     string
		Args            []string
		SecurityContext any `yaml:"securityContext"`
		Resources       any
		Env             []struct {
			Name      string
			ValueFrom struct {
				SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
			} `yaml:"valueFrom"`
		}
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	Volumes []struct {
		Name      string
		ConfigMap struct{ Name string } `yaml:"configMap"`
	}
}

// What the CronJob's container runs does run what is due and exit with 0, within the time that the job has.
func TestTheCronJob(t *testing.T) {
	t.Parallel()
	var job cronJob
	readYAML(t, "kubernetes-cronjob/cronjob.yaml", &job)
	assert.Equal(t, "batch/v1 CronJob", job.APIVersion+" "+job.Kind)
	spec := job.Spec.JobTemplate.Spec
	pod := spec.Template.Spec
	assert.Contains(t, []string{"Never", "OnFailure"}, pod.RestartPolicy, "a job has no other")
	_, err := schedule.ParseCron(job.Spec.Schedule, "", "", "")
	require.NoError(t, err)
	require.Len(t, pod.Containers, 1)
	c := pod.Containers[0]
	require.Len(t, c.VolumeMounts, 1)
	require.Len(t, pod.Volumes, 1)
	assert.Equal(t, pod.Volumes[0].Name, c.VolumeMounts[0].Name)
	assert.Equal(t, "DULY_REDIS_URL", c.Env[0].Name)
	at := slices.Index(c.Args, "--timeout")
	timeout, err := time.ParseDuration(c.Args[at+1])
	require.NoError(t, err)
	assert.Less(t, timeout, time.Duration(spec.ActiveDeadlineSeconds)*time.Second, "it ends by itself, before it is ended")

	s := serveDuly(t, "serve", config(t), "DULY_TOKEN=right")
	s.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "note"})
	file := config(t)
	args := make([]string, len(c.Args))
	for i, arg := range c.Args {
		args[i] = strings.ReplaceAll(arg, c.VolumeMounts[0].MountPath+"/duly.yaml", file)
	}
	assert.Contains(t, args, file)
	program, err := duly()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), c.Env[0].Name+"="+s.redis.URL)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, core.StatusCompleted, s.task("1").Status)
}

// The workflow's step runs what is due, and fails when it is refused.
func TestTheWorkflow(t *testing.T) {
	t.Parallel()
	var flow struct {
		Name string
		On   struct {
			Schedule         []struct{ Cron string }
			WorkflowDispatch struct{} `yaml:"workflow_dispatch"`
		}
		Concurrency struct{ Group string }
		Jobs        map[string]struct {
			RunsOn  string `yaml:"runs-on"`
			Timeout int    `yaml:"timeout-minutes"`
			Steps   []struct {
				Name, Run string
				Env       map[string]string
			}
		}
	}
	readYAML(t, "github-actions/duly.yml", &flow)
	_, err := schedule.ParseCron(flow.On.Schedule[0].Cron, "", "", "")
	require.NoError(t, err)
	job := flow.Jobs["run-due"]
	require.Len(t, job.Steps, 1)
	step := job.Steps[0]
	assert.Equal(t, map[string]string{"DULY_URL": "${{ secrets.DULY_URL }}", "DULY_TOKEN": "${{ secrets.DULY_TOKEN }}"}, step.Env)
	most := atoi(t, regexp.MustCompile(`--max-time (\d+)`).FindStringSubmatch(step.Run)[1])
	asked := atoi(t, regexp.MustCompile(`"timeout_ms":(\d+)`).FindStringSubmatch(step.Run)[1])
	assert.Less(t, asked, most*1000, "the answer comes before curl goes")
	assert.Less(t, most, job.Timeout*60)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	s := serveDuly(t, "serve", config(t), "DULY_TOKEN=right")
	s.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "note"})
	for _, token := range []string{"wrong", "right"} {
		cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", step.Run)
		cmd.Env = append(os.Environ(), "DULY_URL="+s.url, "DULY_TOKEN="+token)
		out, err := cmd.CombinedOutput()
		assert.Equal(t, token == "right", err == nil, "%s", out)
	}
	assert.Equal(t, core.StatusCompleted, s.task("1").Status)
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// What a host does that surprises people is said where they set it up.
func TestTheHostsPeculiaritiesAreSaid(t *testing.T) {
	t.Parallel()
	for file, words := range map[string][]string{
		"../docs/hosts/http.md":            {"Hobby plan", "once a day", "60 days without activity", "plain HTTP", "TLS"},
		"github-actions/duly.yml":          {"60 days without activity"},
		"../docs/hosts/lambda.md":          {"Lambda's default is 3 seconds"},
		"lambda/main.go":                   {"Lambda's default is 3 s"},
		"../docs/hosts/cloud-functions.md": {"--ack-deadline 60", "--attempt-deadline", "--vpc-egress", "--set-secrets", "roles/run.invoker", "--location"},
	} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, want := range words {
			assert.Contains(t, string(data), want, file)
		}
	}
}
