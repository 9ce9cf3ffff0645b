//go:build duly_mcp

package main_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A model reaches the function by its URL, for the agent that the address names: it schedules, and finds what it has scheduled in another environment.
func TestModelsReachTheFunction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call := func(tool, arguments string, signed bool) map[string]any {
		authorizer := `null`
		if signed {
			authorizer = `{"iam":{"userArn":"arn:aws:iam::111122223333:user/ada"}}`
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-06-18"}}}`, tool, arguments)
		return w.answer(w.environment(20*time.Second), fmt.Sprintf(`{"version":"2.0","rawPath":"/mcp","rawQueryString":"agent=ada",
			"headers":{"content-type":"application/json","accept":"application/json, text/event-stream","mcp-protocol-version":"2025-06-18"},"body":%q,
			"requestContext":{"domainName":"x.lambda-url.eu-north-1.on.aws","authorizer":%s,"http":{"method":"POST","path":"/mcp"}}}`, body, authorizer))
	}
	assert.EqualValues(t, 401, call("schedule", `{"kind":"note","id":"standup","when":"in 2 hours"}`, false)["statusCode"])
	assert.Contains(t, call("schedule", `{"kind":"note","id":"standup","when":"in 2 hours"}`, true)["body"], "is scheduled")
	assert.Contains(t, call("explain", `{"id":"standup"}`, true)["body"], "it is not due until")
}
