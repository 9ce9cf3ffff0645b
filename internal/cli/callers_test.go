package cli_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// duly serve and duly daemon take the tokens of the file, which programs do not get; without one that is set they do not start.
func TestTokensOfTheFile(t *testing.T) {
	t.Parallel()
	w := inMemory()
	config := file(t, `
handlers: { note: { exec: [sh, -c, 'echo "<$CI_TOKEN>"'] } }
tokens: [ { name: ci, env: CI_TOKEN, scopes: [read, trigger, write], agents: ["team-*"] } ]
`)
	for _, command := range []string{"serve", "daemon"} {
		oneLine(t, w.duly(t, command, "-c", config, "--http", "127.0.0.1:0"), 2, "duly.yaml:3: tokens[0]: the environment variable CI_TOKEN, named by env, is not set or empty")
	}
	w.env = append(w.env, "CI_TOKEN=s3cret")
	d := w.start(t, "serve", "-c", config, "--http", "127.0.0.1:0")
	d.line(t, "try", "Bearer $CI_TOKEN", "team-me")
	url := d.url(t)
	for agent, want := range map[string]int{"team-1": 201, "bob": 403} {
		status, body := call(t, "POST", url+"/v1/tasks", "s3cret", `{"agent_id":"`+agent+`","id":"1","kind":"note"}`)
		assert.Equal(t, want, status, body)
	}
	status, _ := call(t, "POST", url+"/v1/run-due", "s3cret", `{"agent_ids":["team-1"]}`)
	assert.Equal(t, 200, status)
	_, body := call(t, "GET", url+"/v1/agents/team-1/tasks/1", "s3cret", "")
	assert.Contains(t, body, `"result":"\u003c\u003e"`)
	code, _ := d.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code)
	assert.NotContains(t, d.log(), "s3cret")
}
