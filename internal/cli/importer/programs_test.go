package importer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/cli/importer"
)

// beat is what manage.py dumpdata django_celery_beat prints.
const beat = `[
{"model":"django_celery_beat.periodictask","pk":1,"fields":{"name":"Nightly digest","task":"proj.tasks.digest","interval":null,"crontab":7,"solar":null,"clocked":null,"args":"[\"engines\"]","kwargs":"{\"n\": 2}","queue":"low","exchange":null,"routing_key":null,"headers":"{}","priority":null,"expires":null,"expire_seconds":60,"one_off":false,"start_time":null,"enabled":true}},
{"model":"django_celery_beat.crontabschedule","pk":7,"fields":{"minute":"0, 30","hour":"4","day_of_week":"1-5","day_of_month":"1","month_of_year":"*","timezone":"Europe/Berlin"}},
{"model":"django_celery_beat.intervalschedule","pk":1,"fields":{"every":10,"period":"seconds"}},
{"model":"django_celery_beat.periodictask","pk":2,"fields":{"name":"poll","task":"proj.tasks.poll","interval":1,"args":"[]","kwargs":"{}","headers":"{\"a\":1}","start_time":"2030-01-01T00:00:00Z","enabled":false}},
{"model":"django_celery_beat.clockedschedule","pk":1,"fields":{"clocked_time":"2030-01-01T00:00:00Z"}},
{"model":"django_celery_beat.periodictask","pk":3,"fields":{"name":"once","task":"proj.tasks.once","clocked":1,"args":"","kwargs":"","one_off":true,"enabled":true}},
{"model":"django_celery_beat.solarschedule","pk":1,"fields":{"event":"sunset"}},
{"model":"django_celery_beat.periodictask","pk":4,"fields":{"name":"dusk","task":"proj.tasks.dusk","solar":1,"enabled":true}}]`

// Periodic tasks of Celery are tasks that call it.
func TestCelery(t *testing.T) {
	t.Parallel()
	found := read(t, "celery", beat)
	assert.Equal(t, []importer.Task{
		{Agent: "ops", ID: "Nightly digest", Kind: "Nightly_digest", Cron: "0,30 4 1 * 1-5", Zone: "Europe/Berlin", Days: "all"},
		{Agent: "ops", ID: "poll", Kind: "poll", Every: "10s", From: "start", Paused: true},
		{Agent: "ops", ID: "once", Kind: "once", At: "2030-01-01T00:00:00Z"},
	}, found.Tasks)
	call := []string{"sh", "-c", `exec celery call "$0" "$@"`}
	assert.Equal(t, append(call, "proj.tasks.digest", `--args=["engines"]`, `--kwargs={"n": 2}`, "--queue=low", "--expires=60"), found.Kinds["Nightly_digest"].Exec)
	assert.Equal(t, append(call, "proj.tasks.poll"), found.Kinds["poll"].Exec)
	require.Len(t, found.Left, 4)
	assert.ElementsMatch(t, []string{"task poll: headers: celery call sends none", "task poll: start_time: it is due from now on"}, found.Left[:2])
	assert.Contains(t, found.Left[2], "task dusk: left out: duly knows no schedule by the sun")
	assert.Contains(t, found.Left[3], "set APP, or BROKER_URL")
}

// aps is what the script of the guide prints.
const aps = `[
{"id":"digest","func":"jobs:digest","args":["engines"],"kwargs":{"n":2},"trigger":"CronTrigger","fields":{"year":"*","month":"*","day":"*","week":"*","day_of_week":"0-4","hour":"7","minute":"30","second":"0"},"timezone":"Europe/Berlin","paused":false,"max_instances":1,"misfire_grace_time":60},
{"id":"poll","func":"jobs:poll","args":[],"kwargs":{},"trigger":"IntervalTrigger","seconds":90.0,"paused":true,"max_instances":3,"jitter":5,"misfire_grace_time":null},
{"id":"once","func":"jobs:poll","args":[],"kwargs":{},"trigger":"DateTrigger","run_date":"2030-01-01T01:00:00+01:00","misfire_grace_time":30},
{"id":"month","func":"jobs:digest","trigger":"CronTrigger","fields":{"day":"last fri","day_of_week":"*","hour":"1","minute":"0","second":"10"},"timezone":"UTC"},
{"id":"end","func":"jobs:digest","trigger":"CronTrigger","fields":{"day":"last","day_of_week":"sat,sun","hour":"1","minute":"0"},"timezone":"UTC"},
{"id":"weeks","func":"jobs:digest","trigger":"CronTrigger","fields":{"week":"*/2","hour":"1"},"timezone":"UTC"},
{"id":"days","func":"jobs:digest","trigger":"CronTrigger","fields":{"day_of_week":"*/2","hour":"1"},"timezone":"UTC"},
{"id":"and","func":"jobs:digest","trigger":"AndTrigger"},{"id":"lambda","func":null}]`

// Jobs of APScheduler are tasks of workers; its weeks begin on Monday, and all of its fields have to match.
func TestAPScheduler(t *testing.T) {
	t.Parallel()
	found := read(t, "apscheduler", aps)
	none := map[string]any{"args": []any{}, "kwargs": map[string]any{}}
	task := func(id, kind, cron, zone, days string) importer.Task {
		return importer.Task{Agent: "ops", ID: id, Kind: kind, Cron: cron, Zone: zone, Days: days, Payload: map[string]any{"args": []any{}, "kwargs": map[string]any(nil)}}
	}
	digest := task("digest", "jobs:digest", "30 7 * * 1,2,3,4,5", "Europe/Berlin", "")
	digest.Payload = map[string]any{"args": []any{"engines"}, "kwargs": map[string]any{"n": 2.0}}
	assert.Equal(t, []importer.Task{
		digest,
		{Agent: "ops", ID: "poll", Kind: "jobs:poll", Every: "1m30s", From: "start", Paused: true, Overlap: "allow", Jitter: "5s", Payload: none},
		{Agent: "ops", ID: "once", Kind: "jobs:poll", At: "2030-01-01T00:00:00Z", Payload: none},
		task("month", "jobs:digest", "10 0 1 * * 5L", "UTC", ""), task("end", "jobs:digest", "0 1 L * 6,0", "UTC", "all"),
	}, found.Tasks)
	assert.Equal(t, map[string]importer.Handler{"jobs:digest": {Worker: &struct{}{}, Grace: "1m0s"}, "jobs:poll": {Worker: &struct{}{}, Grace: "30s"}}, found.Kinds)
	require.Len(t, found.Left, 7)
	for i, want := range []string{"job poll: max_instances 3", "job poll: jitter: duly starts it up to 5s later", "job weeks: left out: duly knows no field week", "job days: left out: duly cannot say the days *, */2", "job and: left out: duly knows no trigger", "job lambda: left out: it names no function", "handlers: workers run"} {
		assert.Contains(t, found.Left[i], want)
	}
}

// described is what temporal schedule describe -o json prints, and listed what list does.
const described = `{"schedule":{"spec":{"structuredCalendar":[{"second":[{}],"minute":[{"start":30}],"hour":[{"start":9,"end":17,"step":2}],"dayOfMonth":[{"start":1,"end":31,"step":1}],"month":[{"start":1,"end":12,"step":1}],"dayOfWeek":[{"start":1,"end":5,"step":1}]},{"year":[{"start":2030}]}],
 "interval":[{"interval":"3600s","phase":"300s"},{"interval":"0.5s"}],"timezoneName":"Europe/Berlin","jitter":"60s"},
 "action":{"startWorkflow":{"workflowId":"report","workflowType":{"name":"Report"},"taskQueue":{"name":"reports","kind":"TASK_QUEUE_KIND_NORMAL"},"input":{"payloads":[{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"eyJhIjoxfQ=="},{"metadata":{"encoding":"YmluYXJ5L251bGw="}}]},"memo":{"fields":{}}}},
 "policies":{"overlapPolicy":"SCHEDULE_OVERLAP_POLICY_BUFFER_ONE","catchupWindow":"31536000s"},"state":{"paused":true,"limitedActions":true,"remainingActions":"3"}},"info":{"actionCount":"1"},"conflictToken":"AAAA"}`

const listed = `[{"scheduleId":"daily-report","info":{"spec":{"structuredCalendar":[{"hour":[{"start":9}]}]},"workflowType":{"name":"Report"},"paused":true}},
 {"scheduleId":"cleanup","info":{"spec":{"interval":[{"interval":"3600s"}]}}},{"scheduleId":"never","info":{"spec":{"excludeStructuredCalendar":[{}]}}},{"scheduleId":"none","info":{}}]`

// Schedules of Temporal are tasks that start what they start, or that trigger them where a list does not say what that is.
func TestTemporal(t *testing.T) {
	t.Parallel()
	found := read(t, "temporal", described+"\n"+listed)
	assert.Equal(t, []importer.Task{
		{Agent: "ops", ID: "report", Kind: "report", Cron: "30 9-17/2 * * 1-5", Zone: "Europe/Berlin", Paused: true, Jitter: "1m0s"},
		{Agent: "ops", ID: "report-2", Kind: "report", Every: "1h0m0s", From: "start", Paused: true, Jitter: "1m0s"},
		{Agent: "ops", ID: "daily-report", Kind: "daily-report", Cron: "0 9 * * *", Paused: true},
		{Agent: "ops", ID: "cleanup", Kind: "cleanup", Every: "1h0m0s", From: "start"},
	}, found.Tasks)
	assert.Equal(t, []string{"sh", "-c", `exec temporal workflow start --workflow-id "$DULY_TASK_ID-$DULY_OCCURRENCE" "$@"`, "temporal", "--type", "Report", "--task-queue", "reports", "--input", `{"a":1}`}, found.Kinds["report"].Exec)
	assert.Equal(t, []string{"sh", "-c", `exec temporal schedule trigger --schedule-id "$0"`, "cleanup"}, found.Kinds["cleanup"].Exec)
	require.Len(t, found.Left, 11)
	for i, want := range []string{
		"overlap buffer_one", "it ends after 3 more runs", "its memo", "jitter", "knows no years", "phase 300s", "an interval is 1s at least", "an input of binary/null", "schedule never: left out: it excludes", "schedule none: left out", "schedule toggle --pause",
	} {
		assert.Contains(t, found.Left[i], want)
	}
}

// hermes is a jobs.json.
const hermes = `{"jobs":[
 {"id":"a1","name":"Briefing","prompt":"Summarise","schedule":{"kind":"cron","expr":"0 9 * * *"},"repeat":{"times":null,"completed":42},"enabled":true,"state":"scheduled"},
 {"id":"a2","name":"Poll","prompt":"Poll","schedule":{"kind":"interval","minutes":30},"repeat":{"times":5,"completed":2},"enabled":true,"state":"paused"},
 {"id":"a3","prompt":"Once","schedule":{"kind":"once","run_at":"2030-01-01T00:00:00+00:00"},"repeat":{"times":1,"completed":0},"enabled":true},
 {"id":"a4","schedule":{"kind":"once","run_at":"2030-01-01T00:00:00"}},{"id":"a5","state":"completed"},{"id":"a6","schedule":{"kind":"moon"}},{"prompt":"x"}],"updated_at":"2026-01-01T00:00:00"}`

// Jobs of Hermes are tasks, and Hermes runs each.
func TestHermes(t *testing.T) {
	t.Parallel()
	found := read(t, "hermes", hermes)
	task := func(id, name, prompt string) importer.Task {
		return importer.Task{Agent: "ops", ID: id, Kind: "hermes", Payload: map[string]any{"name": name, "message": prompt}}
	}
	briefing, poll, once := task("a1", "Briefing", "Summarise"), task("a2", "Poll", "Poll"), task("a3", "", "Once")
	briefing.Cron, poll.Every, poll.Paused, once.At = "0 9 * * *", "30m0s", true, "2030-01-01T00:00:00Z"
	assert.Equal(t, []importer.Task{briefing, poll, once}, found.Tasks)
	require.Len(t, found.Left, 7)
	for i, want := range []string{"job a1 (Briefing): its schedule has no zone", "a2 (Poll): it ends after 5 runs, of which it has made 2", "a4 (): left out: \"2030-01-01T00:00:00\" is no time with a zone", "a5 (): left out: it has ended", "a6 (): left out: duly knows no", "no id", "each runs twice"} {
		assert.Contains(t, found.Left[i], want)
	}
}
