package cli_test

// duly commands: what an agent reads in place of the help.

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/cli"
	"github.com/seed-6f6f2c11/duly/internal/cli/catalogue"
)

// catalogued are the commands that duly commands --json describes, by name.
func catalogued(t *testing.T, args ...string) (catalogue.Catalogue, map[string]catalogue.Command) {
	t.Helper()
	all := parse[catalogue.Catalogue](t, noRedis().ok(t, append([]string{"commands", "--json"}, args...)...))
	byName := map[string]catalogue.Command{}
	for _, c := range all.Commands {
		byName[c.Name] = c
	}
	return all, byName
}

// flagOf is a flag of a command by its name.
func flagOf(t *testing.T, flags []catalogue.Flag, name string) catalogue.Flag {
	t.Helper()
	for _, f := range flags {
		if f.Name == name {
			return f
		}
	}
	require.Fail(t, "no flag is called so", name)
	return catalogue.Flag{}
}

// Every command is described, with what it takes and how it ends.
func TestCommandsAreDescribedForPrograms(t *testing.T) {
	t.Parallel()
	all, byName := catalogued(t)
	assert.NotEmpty(t, all.Version)
	require.Len(t, all.Exits, 8)
	for i, e := range all.Exits {
		assert.Equal(t, i, e.Code)
		assert.NotEmpty(t, e.Text)
		assert.Equal(t, i == 5, e.Again, "what may be repeated is what is away")
	}
	assert.Equal(t, "string", flagOf(t, all.Flags, "server").Type)
	assert.Equal(t, "duly:", flagOf(t, all.Flags, "prefix").Default)
	for name := range byName {
		if name == "help" || strings.HasPrefix(name, "completion") { // which are added when a command line is run
			continue
		}
		cmd, _, err := cli.Commands().Find(strings.Fields(name))
		require.NoError(t, err)
		assert.Equal(t, "duly "+name, cmd.CommandPath(), "a name is what is typed")
	}
	for _, c := range cli.Commands().Commands() {
		assert.Contains(t, byName, c.Name())
		for _, sub := range c.Commands() {
			assert.Contains(t, byName, c.Name()+" "+sub.Name())
		}
	}
	for _, c := range all.Commands {
		assert.NotEmpty(t, c.Summary, c.Name)
		for _, f := range c.Flags {
			assert.NotEmpty(t, f.Text, "%s --%s", c.Name, f.Name)
			assert.Contains(t, []string{"string", "boolean", "integer", "number", "duration"}, f.Type, "%s --%s", c.Name, f.Name)
			assert.NotContains(t, f.Default, "(", "%s --%s", c.Name, f.Name)
		}
	}
}

// What a program needs of a flag and an argument is a member, not a part of a sentence.
func TestFlagsHaveTypesDefaultsAndWords(t *testing.T) {
	t.Parallel()
	_, byName := catalogued(t)
	submit := byName["submit"]
	assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, submit.Exits)
	assert.True(t, submit.Server)
	assert.Equal(t, "Submit", submit.Group)
	for name, want := range map[string]catalogue.Flag{
		"level":       {Type: "integer", Default: "3"},
		"every":       {Type: "duration"},
		"tag":         {Type: "string", Repeated: true},
		"urgent":      {Type: "boolean"},
		"overlap":     {Type: "string", Default: "skip", Values: []string{"skip", "queue_one", "allow", "cancel_running"}},
		"on-conflict": {Type: "string", Default: "keep", Values: []string{"keep", "replace", "fail"}},
		"from":        {Type: "string", Default: "completion", Values: []string{"completion", "start"}},
		"lease":       {Type: "duration", Default: "the handler's"},
		"file":        {Type: "string", Short: "f"},
		"gap":         {Type: "string", Default: "run", Values: []string{"run", "skip"}},
	} {
		got := flagOf(t, submit.Flags, name)
		got.Name, got.Text, got.Group = "", "", ""
		assert.Equal(t, want, got, name)
	}
	assert.Equal(t, "100", flagOf(t, byName["list"].Flags, "limit").Default)
	assert.Equal(t, []catalogue.Argument{{Name: "AGENT", Optional: true}, {Name: "ID"}}, byName["status"].Arguments)
	assert.Equal(t, []catalogue.Argument{{Name: "AGENT", Optional: true}, {Name: "ID", Repeated: true}}, byName["wait"].Arguments)
	assert.Equal(t, []catalogue.Argument{{Name: "AGENT", Optional: true}, {Name: "ID", Optional: true}}, byName["pause"].Arguments)
	assert.Equal(t, []string{"replay", "cancel", "delete", "run", "pause", "resume"}, byName["bulk"].Arguments[0].Values)
	assert.Equal(t, []catalogue.Argument{{Name: "PROGRAM"}, {Name: "ARGUMENT", Optional: true, Repeated: true}}, byName["work"].Arguments)
	assert.Equal(t, []catalogue.Argument{{Name: "CRON|PHRASE", Optional: true}}, byName["next"].Arguments)
	assert.Contains(t, byName["limit"].Below, "limit set")
	assert.False(t, byName["daemon"].Server)
	assert.NotEmpty(t, byName["daemon"].NoServer)
	assert.Equal(t, []int{0, 1, 2}, byName["version"].Exits)
}

// Some commands can be named, as they are typed; people get a table.
func TestSomeCommandsAreDescribed(t *testing.T) {
	t.Parallel()
	_, byName := catalogued(t, "limit", "set")
	assert.Len(t, byName, 1)
	_, byName = catalogued(t, "limit", "submit")
	assert.Contains(t, byName, "limit list")
	assert.Contains(t, byName, "submit")
	w := noRedis()
	assert.Regexp(t, `(?m)^COMMAND +WHAT IT DOES\n(.*\n)*limit set +Set`, w.ok(t, "commands"))
	assert.Regexp(t, `(?m)^--overlap +string +skip +when it becomes due while it runs`, w.ok(t, "commands", "submit"))
	oneLine(t, w.duly(t, "commands", "submti"), 3, `no command is called "submti"`, "did you mean submit?")
	assert.Contains(t, w.ok(t, "__complete", "commands", "lim"), "limit set\n")
}
