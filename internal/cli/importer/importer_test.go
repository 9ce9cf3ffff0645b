package importer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/importer"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

const crontab = `# m h dom mon dow command
0 4 * * * first
PATH=/usr/local/bin:/usr/bin
MAILTO=ops@example.com
CRON_TZ="Europe/Berlin"
0 9 * * 1-5  /usr/local/bin/backup --all > /dev/null
@daily backup it's
@reboot start-me
*/5 * * * * mail -s hi bob%hello%there
0 1 * * * date +\%F
61 * * * * never
0 2 * * *
`

const manifest = `apiVersion: batch/v1
kind: CronJob
metadata: { name: digest, namespace: ada }
spec:
  schedule: "0 7 * * *"
  timeZone: Europe/Berlin
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 200
  suspend: true
  jobTemplate: { spec: { activeDeadlineSeconds: 90, template: { spec: { containers: [
    { name: a, image: "digests:1", command: [echo], args: ["--all"], env: [{ name: A, value: b }] }, { name: b, image: c } ] } } } }
---
kind: ConfigMap
metadata: { name: other }
---
{"kind":"List","items":[{"kind":"CronJob","metadata":{"name":"plain"},"spec":{"schedule":"@hourly","concurrencyPolicy":"Replace","jobTemplate":{"spec":{"template":{"spec":{"containers":[{"image":"busybox"}]}}}}}},
 {"kind":"CronJob","metadata":{"name":"wrong"},"spec":{"schedule":"often"}},{"kind":"CronJob","metadata":{"name":"empty"},"spec":{"schedule":"@daily"}}]}
`

const jobs = `{"version":1,"jobs":[
 {"id":"j1","agentId":"main","name":"Morning","enabled":true,"schedule":{"kind":"cron","expr":"0 7 * * *","tz":"America/Los_Angeles"},"payload":{"kind":"agentTurn","message":"Summarise"}},
 {"id":"j2","name":"Poll","enabled":false,"schedule":{"kind":"every","everyMs":1800000},"payload":{"kind":"systemEvent","text":"poll"}},
 {"id":"j3","schedule":{"kind":"at","atMs":1893456000000},"payload":{}},
 {"id":"j4","schedule":{"kind":"at","at":"2030-01-01T00:00:00Z"}},
 {"id":"j5","schedule":{"kind":"cron","expr":"0 8 * * *"}},
 {"id":"j6","schedule":{"kind":"every","everyMs":10}},{"id":"j7","schedule":{"kind":"at","at":"20m"}},{"id":"j8","schedule":{"kind":"moon"}},{"schedule":{"kind":"every","everyMs":5000}},
 {"id":"j9","schedule":{"kind":"cron","expr":"x"}}]}`

// read reads a file, and has duly read what was made of it.
func read(t *testing.T, format, text string) *importer.Found {
	t.Helper()
	found, err := importer.Read(format, []byte(text), "ops")
	require.NoError(t, err)
	file, err := found.File()
	require.NoError(t, err)
	_, err = dulyfile.Parse(t.Context(), "duly.yaml", file, dulyfile.Defaults{})
	require.NoError(t, err, string(file))
	return found
}

// The lines of a crontab are tasks, with the settings in front of them; what cannot be kept is named with its line.
func TestCrontab(t *testing.T) {
	t.Parallel()
	found := read(t, "crontab", crontab)
	path := "export PATH='/usr/local/bin:/usr/bin'; "
	assert.Equal(t, []importer.Task{
		{Agent: "ops", ID: "first", Kind: "first", Cron: "0 4 * * *"},
		{Agent: "ops", ID: "backup", Kind: "backup", Cron: "0 9 * * 1-5", Zone: "Europe/Berlin"},
		{Agent: "ops", ID: "backup-2", Kind: "backup-2", Cron: "@daily", Zone: "Europe/Berlin"},
		{Agent: "ops", ID: "mail", Kind: "mail", Cron: "*/5 * * * *", Zone: "Europe/Berlin"},
		{Agent: "ops", ID: "date", Kind: "date", Cron: "0 1 * * *", Zone: "Europe/Berlin"},
	}, found.Tasks)
	assert.Equal(t, map[string]importer.Handler{
		"first": {Exec: []string{"sh", "-c", "first"}}, "backup": {Exec: []string{"sh", "-c", path + "/usr/local/bin/backup --all > /dev/null"}},
		"backup-2": {Exec: []string{"sh", "-c", path + "backup it's"}}, "mail": {Exec: []string{"sh", "-c", path + "mail -s hi bob"}},
		"date": {Exec: []string{"sh", "-c", path + "date +%F"}},
	}, found.Kinds)
	require.Len(t, found.Left, 5)
	for i, want := range []string{"line 4: MAILTO", "line 8: left out: @reboot", "line 9: what follows %", `line 11: left out: cron "61 * * * *"`, "line 12: left out: it has no command"} {
		assert.Contains(t, found.Left[i], want)
	}
	system := read(t, "system-crontab", "17 * * * * root cd / && run-parts /etc/cron.hourly\n@weekly news /usr/bin/sweep\n")
	assert.Equal(t, []string{"cd", "sweep"}, []string{system.Tasks[0].ID, system.Tasks[1].ID})
	assert.Equal(t, []string{"sh", "-c", "cd / && run-parts /etc/cron.hourly"}, system.Kinds["cd"].Exec)
	assert.Contains(t, system.Left[0], "line 1: the user root")
}

// CronJobs of manifests and of lists are tasks of their namespaces.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	found := read(t, "kubernetes", manifest)
	assert.Equal(t, []importer.Task{
		{Agent: "ada", ID: "digest", Kind: "digest", Cron: "0 7 * * *", Zone: "Europe/Berlin", Overlap: "skip", Paused: true},
		{Agent: "ops", ID: "plain", Kind: "plain", Cron: "@hourly", Overlap: "cancel_running"},
	}, found.Tasks)
	assert.Equal(t, importer.Handler{Exec: []string{"echo", "--all"}, Timeout: "1m30s", Grace: "3m20s"}, found.Kinds["digest"])
	assert.Equal(t, []string{
		"digest: of 2 containers the first was taken", "digest: the image digests:1: the program has to be where the daemon runs", "digest: its variables: set them for the daemon",
		"plain: it runs what the image busybox starts by itself: write that into exec",
	}, found.Left[:4])
	assert.Contains(t, found.Left[4], "wrong: left out: ")
	assert.Equal(t, "empty: left out: it has no container", found.Left[5])
}

// Jobs of OpenClaw are tasks of its agents, and OpenClaw runs each.
func TestOpenClaw(t *testing.T) {
	t.Parallel()
	found := read(t, "openclaw", jobs)
	task := func(id string) importer.Task {
		return importer.Task{Agent: "ops", ID: id, Kind: "openclaw", Payload: map[string]any{"name": ""}}
	}
	first, poll, once, at, daily := task("j1"), task("j2"), task("j3"), task("j4"), task("j5")
	first.Agent, first.Cron, first.Zone, first.Payload = "main", "0 7 * * *", "America/Los_Angeles", map[string]any{"name": "Morning", "message": "Summarise"}
	poll.Every, poll.Paused, poll.Payload = "30m0s", true, map[string]any{"name": "Poll", "message": "poll"}
	once.At, at.At, daily.Cron = "2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z", "0 8 * * *"
	assert.Equal(t, []importer.Task{first, poll, once, at, daily}, found.Tasks)
	require.Len(t, found.Left, 7)
	for i, want := range []string{"job j5 (): its schedule has no zone", "j6 (): left out: it recurs", `j7 (): left out: "20m" is no time`, `j8 (): left out: duly knows no`, "no id", "j9", "each runs twice"} {
		assert.Contains(t, found.Left[i], want)
	}
}

// What is no such file is refused with what it should be.
func TestWhatIsNoSchedule(t *testing.T) {
	t.Parallel()
	for format, text := range map[string]string{"crontab": "# nothing\n", "kubernetes": "a: [", "openclaw": "[]", "hermes": "[]", "celery": "{}", "apscheduler": "{}", "temporal": "[", "moon": "x"} {
		_, err := importer.Read(format, []byte(text), "ops")
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err), format)
	}
	_, err := importer.Read("moon", nil, "ops")
	assert.EqualError(t, err, `format must be apscheduler, asynq, bullmq, celery, crontab, hermes, kubernetes, openclaw, system-crontab, temporal, not "moon"`)
}

// No file makes a program fail, and what is made of one is always YAML.
func FuzzRead(f *testing.F) {
	for _, text := range []string{crontab, manifest, jobs, beat, aps, described, listed, hermes, "17 * * * * root a\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range importer.Names() {
			found, err := importer.Read(format, []byte(text), "ops")
			if err != nil {
				continue
			}
			file, err := found.File()
			require.NoError(t, err)
			var read map[string]any
			require.NoError(t, yaml.Unmarshal(file, &read), string(file))
		}
	})
}
