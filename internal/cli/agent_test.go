package cli_test

// Profiles from the command line and from the file, and what the file says once for all of its tasks.

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAgentProfiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	assert.Equal(t, "no profiles\n", w.ok(t, "agent", "list"))
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note", "--cron", "0 12 * * *", "--zone", "agent")
	set := w.ok(t, "agent", "set", "ada", "--zone", "Asia/Tokyo", "--quiet", "11:00-13:30", "--quiet", "00:00-24:00 sat-sun,wed", "--urgent", "--label", "tier=gold")
	assert.Regexp(t, `(?m)^quiet +11:00-13:30; 00:00-24:00 sat-sun,wed$`, set)
	shown := w.object(t, "agent", "show", "ada")
	assert.Equal(t, map[string]any{
		"agent_id": "ada", "zone": "Asia/Tokyo", "urgent": true, "labels": map[string]any{"tier": "gold"}, "revision": 1.,
		"quiet": []any{map[string]any{"from": "11:00", "to": "13:30"}, map[string]any{"from": "00:00", "to": "24:00", "days": []any{"sat-sun", "wed"}}},
	}, shown)
	assert.Contains(t, w.object(t, "status", "ada", "1")["next_run"], "T04:30:00", "13:30 in Tokyo")
	assert.Contains(t, w.ok(t, "explain", "ada", "1"), "its agent has quiet hours: quiet until ")
	assert.Contains(t, w.ok(t, "agent", "list"), "ada    Asia/Tokyo  11:00-13:30; 00:00-24:00 sat-sun,wed  true")
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
	assert.Equal(t, "would delete of agent ada: 1 live task, 1 finished task, its profile\n", w.ok(t, "agent", "forget", "ada", "--dry-run"))
	assert.Equal(t, map[string]any{"agent_id": "ada", "live": 1., "finished": 1., "profile": true, "dry_run": false}, w.object(t, "agent", "forget", "ada"))
	assert.Equal(t, "deleted of agent ada: 0 live tasks, 0 finished tasks\n", w.ok(t, "agent", "forget", "ada"))
	assert.Equal(t, 3, w.duly(t, "agent", "show", "ada").code)
	assert.Equal(t, 3, w.duly(t, "status", "ada", "2").code)
	assert.Equal(t, "1", w.object(t, "status", "bob", "1")["id"])
}
