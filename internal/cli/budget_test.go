package cli_test

// Budgets from the command line and from the file, and what programs report.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Budgets are set, listed, changed and lifted by the same flags.
func TestBudgetsAreSetListedAndUnset(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	assert.Equal(t, "no budgets\n", w.ok(t, "budget", "list"))
	for about, said := range map[string]string{
		"--all --unit usd --per month --amount 2.5 --then notify":                   "^budget of 2.5 usd a month of everything in UTC: then notify; 0 used until ",
		"--each agent --unit tokens --per day --amount 100000 --zone Europe/Berlin": "^budget of 100000 tokens a day of each agent in Europe/Berlin: then hold; 0 used until ",
		"--each task --kind digest --unit runs --per hour --amount 60 --then pause": `^budget of 60 runs an hour of each task of kind "digest" in UTC: then pause`,
		"--each key --key openai:* --unit tokens --per hour --amount 0.000001":      `^budget of 0.000001 tokens an hour of each limit key "openai:\*"`,
	} {
		assert.Regexp(t, said, w.ok(t, strings.Fields("budget set "+about)...))
	}
	set := w.object(t, strings.Fields("budget set --each agent --unit tokens --per day --amount 150000 --zone Africa/Cairo")...)
	assert.Equal(t, []any{150000., "Africa/Cairo", "hold", 0.}, []any{set["amount"], set["zone"], set["then"], set["used"]})
	list := w.ok(t, "budget", "list")
	assert.Regexp(t, `(?m)^tokens a day of each agent +150000 +0 +0 +0 +hold +\S+ +- +duly budget unset --each agent --unit tokens --per day$`, list)
	assert.Len(t, w.objects(t, "budgets", "budget", "list"), 4)
	assert.Equal(t, "lifted: budget of usd a month of everything\n", w.ok(t, strings.Fields("budget unset --all --unit usd --per month")...))
	oneLine(t, w.duly(t, strings.Fields("budget unset --all --unit usd --per month")...), 3,
		`duly: budget unset: no budget of usd a month of everything exists; duly budget list shows all budgets and how to unset each`)
}

// What makes no sense is refused by the name of its flag, and nothing is set.
func TestBudgetsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for args, want := range map[string]string{
		"set --unit tokens --per day --amount 5":                                    "expected what the budget is about",
		"set --all --per day --amount 5":                                            "--unit is required",
		"set --all --unit tokens --amount 5":                                        "--per must be hour, day or month",
		"set --all --unit tokens --per week --amount 5":                             `--per must be hour, day or month, not "week"`,
		"set --all --unit tokens --per day":                                         "--amount must be between 0.000001 and 9000000000, not 0",
		"set --all --unit tokens --per day --amount NaN":                            "--amount must be between",
		"set --all --unit tokens --per day --amount x":                              "--amount",
		"set --all --unit tokens --per day --amount 0":                              "--amount must not be 0; give a larger one",
		"set --all --unit runs --per day --amount 1.5":                              "--amount of runs must be whole, not 1.5",
		"set --all --unit tokens --per day --amount 5 --zone Mars":                  `--zone "Mars" is not known`,
		"set --all --unit tokens --per day --amount 5 --then stop":                  `--then must be hold, pause or notify, not "stop"`,
		"set --kind a --each agent --unit tokens --per day --amount 5 --then pause": "nothing less can be paused",
		"set --kind a --each process --unit tokens --per day --amount 5":            `--each must be agent, key or task, not "process"`,
		"unset --all": "--unit is required",
	} {
		said := w.duly(t, append([]string{"budget"}, strings.Fields(args)...)...)
		assert.NotZero(t, said.code, args)
		assert.Contains(t, said.stderr, want, args)
	}
	assert.Equal(t, "no budgets\n", w.ok(t, "budget", "list"))
}

// The budgets of a file hold back what has used them up by what its program reports: explain, doctor and the history say so.
func TestAProgramUsesItsBudgetUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := filepath.Join(t.TempDir(), "duly.yaml")
	require.NoError(t, os.WriteFile(config, []byte(`
budgets:
  - { each: agent, unit: tokens, per: month, amount: 2000 }
handlers:
  say: { exec: ["sh", "-c", "echo 'duly-usage: {\"tokens\": 1500}' >&3"] }
  print: { exec: ["sh", "-c", "echo '{\"text\": \"x\", \"duly_usage\": {\"tokens\": 600}}'"] }
`), 0o600))
	for _, task := range []string{"1 say", "2 print", "3 say"} {
		id, kind, _ := strings.Cut(task, " ")
		w.ok(t, "submit", "--agent", "ada", "--id", id, "--kind", kind)
		w.ok(t, "run-due", "--all", "-c", config)
	}
	said := w.duly(t, "explain", "ada", "3")
	assert.Contains(t, said.stdout, `the budget of 2000 tokens a month of agent "ada" is used up (2100 used); runs again at `)
	assert.Equal(t, map[string]any{"tokens": 600.}, w.objects(t, "runs", "runs", "ada", "2")[0]["used"])
	assert.Regexp(t, `^warning: 1 budget, used up 1 time; 1 task in line until `, w.checks(t)["budgets"])
	w.ok(t, strings.Fields("budget set --each agent --unit tokens --per month --amount 10000")...)
	assert.Equal(t, "ok: 1 budget, none used up", w.checks(t)["budgets"])
}
