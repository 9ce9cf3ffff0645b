package cli_test

// Profiles from the command line and from the file, and what the file says once for all of its tasks.

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAgentProfiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	assert.Equal(t, "no profiles\n", w.ok(t, "agent", "list"))
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note", "--cron", "0 12 * * *", "--zone", "agent")
	day := func(ahead int) string { // none on which the next noon is
		return strings.ToLower(time.Now().AddDate(0, 0, ahead).Weekday().String()[:3])
	}
	days := day(3) + "," + day(5)
	set := w.ok(t, "agent", "set", "ada", "--zone", "Asia/Tokyo", "--quiet", "11:00-13:30", "--quiet", "00:00-24:00 "+days, "--urgent", "--label", "tier=gold")
	assert.Regexp(t, `(?m)^quiet +11:00-13:30; 00:00-24:00 `+days+`$`, set)
	shown := w.object(t, "agent", "show", "ada")
	assert.Equal(t, map[string]any{
		"agent_id": "ada", "zone": "Asia/Tokyo", "urgent": true, "labels": map[string]any{"tier": "gold"}, "revision": 1.,
		"quiet": []any{map[string]any{"from": "11:00", "to": "13:30"}, map[string]any{"from": "00:00", "to": "24:00", "days": []any{day(3), day(5)}}},
	}, shown)
	assert.Contains(t, w.object(t, "status", "ada", "1")["next_run"], "T04:30:00", "13:30 in Tokyo")
	assert.Contains(t, w.ok(t, "explain", "ada", "1"), "its agent has quiet hours: quiet until ")
	assert.Contains(t, w.ok(t, "agent", "list"), "ada    Asia/Tokyo  11:00-13:30; 00:00-24:00 "+days+"  true")
	assert.Len(t, w.objects(t, "profiles", "agent", "list"), 1)
	assert.Equal(t, "deleted: profile of agent ada\n", w.ok(t, "agent", "unset", "ada"))
	assert.Contains(t, w.object(t, "status", "ada", "1")["next_run"], "T12:00:00")
	oneLine(t, w.duly(t, "agent", "unset", "ada"), 3, `agent "ada" has no profile; duly agent list shows all profiles`)
	for args, want := range map[string]string{
		"set":                       "expected one AGENT, not 0 arguments; name one agent",
		"set a b":                   "expected one AGENT, not 2 arguments",
		"set a --quiet 22:00":       `--quiet "22:00" is not a stretch of time`,
		"set a --quiet 22:00-25:00": `--quiet must be a time of day from 00:00 to 24:00, such as 07:00, not "25:00"`,
		"set a --quiet 00:00-24:00": `leaves no time at which tasks may start`,
		"set a --zone Mars":         `zone "Mars" is not known`,
		"set a --label x":           `--label "x" has no value; use name=value`,
		"show":                      "expected one AGENT",
		"forgive a":                 `unknown command "forgive"; use set, show, list, unset, export, import or forget`,
	} {
		oneLine(t, w.duly(t, append([]string{"agent"}, strings.Fields(args)...)...), 2, want)
	}
}

const agentsFile = `
zone: Asia/Tokyo
default_agent: platform
agents:
  - { agent: 007, quiet: [{ from: "09:00", to: "17:00", days: [mon-fri] }], urgent: true, labels: { tier: gold } }
  - agent: ada
    zone: Europe/Berlin
handlers:
  note: { log: {} }
tasks:
  - { id: nightly, kind: note, cron: "0 12 * * *" }
  - { id: own, agent: "007", kind: note, cron: "0 12 * * *", zone: UTC, urgent: true }
`

// The file has profiles, a zone, and an agent for tasks that name none; the environment and a flag count before it.
func TestAgentsOfTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, agentsFile)
	for range 2 { // a second time it changes nothing
		w.ok(t, "apply", "-f", config)
		shown := w.object(t, "agent", "show", "007")
		assert.Equal(t, []any{"Asia/Tokyo", true, 1.}, []any{shown["zone"], shown["urgent"], shown["revision"]})
	}
	assert.Equal(t, "Europe/Berlin", w.object(t, "agent", "show", "ada")["zone"])
	assert.Equal(t, "Asia/Tokyo", w.object(t, "status", "platform", "nightly")["zone"])
	assert.Equal(t, true, w.object(t, "status", "007", "own")["urgent"])

	w.ok(t, "apply", "-f", config, "--default-agent", "flag")
	assert.Equal(t, "nightly", w.object(t, "status", "flag", "nightly")["id"])
	w.env = append(w.env, "DULY_DEFAULT_AGENT=env", "DULY_ZONE=America/New_York")
	w.ok(t, "apply", "-f", config)
	assert.Equal(t, "America/New_York", w.object(t, "status", "env", "nightly")["zone"])
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note", "--cron", "0 12 * * *", "--urgent")
	assert.Equal(t, []any{"America/New_York", true}, []any{w.object(t, "status", "ada", "1")["zone"], w.object(t, "status", "ada", "1")["urgent"]})
	w.env = append(w.env, "DULY_ZONE=Mars")
	oneLine(t, w.duly(t, "apply", "-f", config), 2, `zone: "Mars" is not known`)
	assert.Equal(t, 2, w.duly(t, "agent", "list").code)
}

func TestAgentForget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note", "--delay", "1h")
	w.ok(t, "submit", "--agent", "ada", "--id", "2", "--kind", "note", "--delay", "1h")
	w.ok(t, "cancel", "ada", "2")
	w.ok(t, "submit", "--agent", "bob", "--id", "1", "--kind", "note", "--delay", "1h")
	w.ok(t, "agent", "set", "ada", "--zone", "UTC")
	for _, args := range [][]string{{}, {"--dry-run"}, {"--dry-run", "--yes"}} {
		assert.Equal(t, "would delete of agent ada: 1 live task, 1 finished task, its profile; add --yes to do it\n", w.ok(t, append([]string{"agent", "forget", "ada"}, args...)...))
	}
	assert.Equal(t, map[string]any{"agent_id": "ada", "live": 1., "finished": 1., "profile": true, "dry_run": false}, w.object(t, "agent", "forget", "ada", "--yes"))
	assert.Equal(t, "deleted of agent ada: 0 live tasks, 0 finished tasks\n", w.ok(t, "agent", "forget", "ada", "--yes"))
	assert.Equal(t, 3, w.duly(t, "agent", "show", "ada").code)
	assert.Equal(t, 3, w.duly(t, "status", "ada", "2").code)
	assert.Equal(t, "1", w.object(t, "status", "bob", "1")["id"])
}

// What bounds an agent is set with its profile, from the command line and from the file.
func TestBoundsOfAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := w.ok(t, "agent", "set", "ada", "--limit", "kind=note, concurrency=1", "--limit", "limit_key=openai:*,rate=60/1m", "--limit", "kind=mail,adaptive",
		"--budget", "unit=tokens,amount=0.5,per=day,then=pause")
	assert.Regexp(t, `(?m)^limit +kind "note" of agent "ada": 1 at once\nlimit +limit key "openai:\*" of agent "ada": 60/1m, burst 1\nlimit +kind "mail" of agent "ada": what is served\n`+
		`budget +0.5 tokens a day of agent "ada", then pause \(UTC\)$`, set)
	assert.Equal(t, []any{
		map[string]any{"kind": "note", "concurrency": 1.}, map[string]any{"limit_key": "openai:*", "rate": "60/1m", "burst": 1.}, map[string]any{"kind": "mail", "adaptive": true},
	}, w.object(t, "agent", "show", "ada")["limits"])
	config := filepath.Join(t.TempDir(), "duly.yaml")
	require.NoError(t, os.WriteFile(config, []byte("handlers:\n  note: { log: {} }\nagents:\n  - agent: filed\n    limits: [{ concurrency: 3 }]\n    budgets: [{ unit: usd, amount: 2, per: month }]\n"), 0o600))
	w.ok(t, "apply", "-c", config)
	assert.Contains(t, w.ok(t, "agent", "show", "filed"), `3 at once`)
	for args, want := range map[string]string{
		"set a --limit kind=k":                    `limits[0].concurrency or rate is required`,
		"set a --limit concurrency=many":          `cannot be read; concurrency, burst and amount are numbers`,
		"set a --limit concurrency=1,speed=1":     `speed is not a field of a limit`,
		"set a --limit kind=k,kind=l":             `has kind twice; give it once`,
		"set a --limit each=agent,concurrency=1":  `limits[0].each does not belong to a profile`,
		"set a --budget unit=usd,per=day":         `amount must be between`,
		"set a --budget unit=,amount=1,per=day":   `unit must not be empty`,
		"set a --budget unit=runs,amount=1,per=x": `budgets[0].per must be hour, day or month`,
	} {
		oneLine(t, w.duly(t, append([]string{"agent"}, strings.Fields(args)...)...), 2, want)
	}
}

// A quota is set by a flag and shown with what is used; it binds what a run submits, and doctor names who is at it.
func TestQuotaOfAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note", "--every", "1h")
	w.ok(t, "submit", "--agent", "ada", "--id", "2", "--kind", "note", "--delay", "1h")
	set := w.ok(t, "agent", "set", "ada", "--quota", "live=2,recurring=5,interval=5m,horizon=30d,kinds=note+report-*,submits=60")
	assert.Regexp(t, `(?m)^quota live +2$`, set)
	shown := w.ok(t, "agent", "show", "ada")
	for _, line := range []string{`quota live +2 of 2 used`, `quota recurring +1 of 5 used`, `quota submits a minute +0 of 60 used`, `quota interval +5m`, `quota horizon +720h`, `quota kinds +note, report-\*`} {
		assert.Regexp(t, `(?m)^`+line+`$`, shown)
	}
	assert.Equal(t, map[string]any{"live": 2., "recurring": 1., "bytes": 0., "submits": 0.}, w.object(t, "agent", "show", "ada")["quota_used"])
	in := *w
	in.env = append(slices.Clone(w.env), "DULY_PARENT=ada/1")
	oneLine(t, in.duly(t, "submit", "--agent", "ada", "--kind", "note"), 5, `the quota live of agent "ada": 2 of 2 live tasks are there`)
	oneLine(t, in.duly(t, "submit", "--agent", "ada", "--kind", "note", "--every", "1m"), 6, `the quota interval of agent "ada": every may run again after 1m`)
	oneLine(t, in.duly(t, "submit", "--agent", "ada", "--kind", "other"), 6, `the quota kinds of agent "ada": kind "other" is not allowed: submit one of note, report-*`)
	w.ok(t, "submit", "--agent", "ada", "--kind", "other", "--delay", "1h") // an operator
	assert.Contains(t, w.duly(t, "doctor").stdout, `nearly used up: live of agent "ada" (3 of 2)`)
	for flag, want := range map[string]string{
		"live=many": "quota.live must be a whole number", "life=1": "quota.life is not a field of a quota", "live=1,live=2": "has live twice",
		"interval=soon": "quota.interval must be a duration such as 5m or 30d", "kinds=*": "quota.kinds[0] must be a kind", "live=-1": "quota.live must be between 1 and",
	} {
		oneLine(t, w.duly(t, "agent", "set", "ada", "--quota", flag), 2, want)
	}
	w.ok(t, "agent", "set", "ada", "--zone", "Asia/Tokyo", "--limit", "kind=note,concurrency=2")
	kept := w.ok(t, "agent", "set", "ada", "--urgent")
	for _, line := range []string{`zone +Asia/Tokyo`, `urgent passes +true`, `quota live +2`, `limit .+2.*`} {
		assert.Regexp(t, `(?m)^`+line+`$`, kept, "what is not given stays")
	}
	assert.NotContains(t, w.ok(t, "agent", "set", "ada", "--quota", "none", "--limit", "none"), "quota")
	assert.Regexp(t, `(?m)^zone +Asia/Tokyo$`, w.ok(t, "agent", "show", "ada"))
}

// Agents are sorted by how many live tasks they have, and by how long the next of them has been due.
func TestAgentsAreSorted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for agent, n := range map[string]int{"few": 1, "many": 3, "some": 2} {
		for i := range n {
			w.ok(t, "submit", "--agent", agent, "--id", strconv.Itoa(i), "--kind", "note", "--at", map[string]string{"few": "2036-01-03T00:00:00Z", "many": "2036-01-02T00:00:00Z", "some": "2036-01-01T00:00:00Z"}[agent])
		}
	}
	w.ok(t, "submit", "--agent", "never", "--id", "1", "--kind", "note", "--manual")
	for _, sorted := range []struct {
		want []string
		args []string
	}{
		{[]string{"many", "some", "few", "never"}, []string{"--sort", "waiting"}},
		{[]string{"some", "many", "few", "never"}, []string{"--sort", "overdue"}},
		{[]string{"some", "many"}, []string{"--sort", "overdue", "--limit", "2"}},
	} {
		var got []string
		for _, a := range w.objects(t, "agents", append([]string{"agents"}, sorted.args...)...) {
			got = append(got, a["agent_id"].(string))
		}
		assert.Equal(t, sorted.want, got, "%q", sorted.args)
	}
	oneLine(t, w.duly(t, "agents", "--sort", "name"), 2, `--sort "name" is unknown; use waiting or overdue`)
	oneLine(t, w.duly(t, "agents", "--sort", "waiting", "--cursor", "x"), 2, "has no --cursor")
}
