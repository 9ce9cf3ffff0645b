package dulyfile_test

// The hooks of the file: what each makes is tried in adapters/hooks.

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// inbound is a file with hooks of all schemes.
const inbound = `
default_agent: ops
handlers: { triage: { log: {} } }
hooks:
  openai:
    standard_webhooks: { secret_env: OPENAI_WEBHOOK_SECRET }
    only: { /type: [response.completed, response.failed] }
    signal: { agent: "{/data/metadata/agent}", key: "response-{/data/id}" }
    agents: [ann, "team-*"]
  issues:
    github: { secret_env: [GITHUB_SECRET, GITHUB_NEXT] }
    submit: { kind: triage, id: "gh-{header:X-GitHub-Delivery}", payload: "{/}", when: tomorrow at 9am in UTC }
  payments:
    stripe: { secret_env: STRIPE_SECRET }
    submit: { agent: ann, kind: triage, unique_key: "{/id}", on_conflict: replace, labels: { type: "{/type}" } }
  other:
    hmac: { secret_env: OTHER_SECRET, header: X-Sum, prefix: "v1=", encoding: base64, id: "{/id}" }
    signal: { key: k, payload: { all: "{/}" } }
`

// The secrets of hooks are read when they are opened, and a variable that is missing is named.
func TestHooksOfTheFile(t *testing.T) {
	t.Setenv("OPENAI_WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	t.Setenv("GITHUB_SECRET", "It's a Secret to Everybody")
	t.Setenv("GITHUB_NEXT", "and another one that is next")
	t.Setenv("STRIPE_SECRET", "whsec_test_secret")
	f, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte(inbound), dulyfile.Defaults{})
	require.NoError(t, err)
	_, err = f.OpenHooks(nil)
	require.EqualError(t, err, "duly.yaml:17: hooks.other: the environment variable OTHER_SECRET, named by secret_env, is not set or empty")
	for value, want := range map[string]string{
		"short":                         "duly.yaml:17: hooks.other: the environment variable OTHER_SECRET, named by secret_env, is too short",
		"whsec_test_secret":             "duly.yaml:17: hooks.other: the environment variable OTHER_SECRET contains the same secret as STRIPE_SECRET: give each its own",
		"the token of another caller":   "duly.yaml:17: hooks.other: the environment variable OTHER_SECRET contains the same secret as CI_TOKEN: give each its own",
		"a secret that no other shares": "",
	} {
		t.Setenv("OTHER_SECRET", value)
		all, err := f.OpenHooks(map[string]string{"the token of another caller": "CI_TOKEN"})
		if want == "" {
			require.NoError(t, err)
			assert.NotNil(t, all)
			continue
		}
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), value+" ", "the secret itself")
	}
	t.Setenv("OPENAI_WEBHOOK_SECRET", "not base64!")
	_, err = f.OpenHooks(nil)
	require.EqualError(t, err, "duly.yaml:6: hooks.openai: the environment variable OPENAI_WEBHOOK_SECRET, named by secret_env, must be whsec_ and base64, as the sender shows it")
	none, err := new(dulyfile.File).OpenHooks(nil)
	require.NoError(t, err)
	assert.Nil(t, none)
}
