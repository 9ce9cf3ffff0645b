package dulyfile_test

// The callers of the file: what they may do, and mistakes in their rights.

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

func TestCallersOfTheFile(t *testing.T) {
	t.Setenv("CI_TOKEN", " old, new ")
	f, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte(`
tokens:
  - { env: ADMIN_TOKEN, scopes: [read, trigger, write], agents: ["*", a] }
  - { name: ci, env: CI_TOKEN, scopes: [read], agents: [a, "team-*", 007] }
senders:
  - { type: standard-webhooks, env: HOOK_SECRET, scopes: [write] }
  - { type: qstash, env: [QSTASH_CURRENT, QSTASH_NEXT], url: https://duly.example, scopes: [trigger] }
  - { type: google, audience: https://duly.example, emails: [cron@project.example], scopes: [trigger] }
  - { name: gh, type: github, audience: duly, repositories: [acme/app], refs: [refs/heads/main], scopes: [write] }
  - { name: own, type: oidc, issuer: https://issuer.example, keys: "http://127.0.0.1:1/keys", audience: a, claims: { tier: [x, y], org: z }, scopes: [trigger] }
  - { type: vercel, env: VERCEL_SECRET, scopes: [trigger], agents: [a] }
`), dulyfile.Defaults{})
	require.NoError(t, err)
	assert.Equal(t, []string{"ADMIN_TOKEN", "ci"}, []string{f.Tokens[0].Name, f.Tokens[1].Name})
	var names []string
	for i := range f.Senders {
		names = append(names, f.Senders[i].Name)
	}
	assert.Equal(t, []string{"HOOK_SECRET", "QSTASH_CURRENT", "https://duly.example", "gh", "own", "VERCEL_SECRET"}, names)
	assert.Equal(t, []string{"QSTASH_CURRENT", "QSTASH_NEXT"}, f.Senders[1].Envs)
	assert.Equal(t, map[string][]string{"repository": {"acme/app"}, "ref": {"refs/heads/main"}}, f.Senders[3].Claims)
	assert.Equal(t, map[string][]string{"tier": {"x", "y"}, "org": {"z"}}, f.Senders[4].Claims)
	assert.Nil(t, f.Tokens[0].Agents, "a star alone is everybody")
	assert.Nil(t, f.Tokens[0].Patterns)
	assert.Equal(t, []string{"a", "007"}, f.Tokens[1].Agents)
	assert.Equal(t, []string{"team-*"}, f.Tokens[1].Patterns)
	got, err := f.Tokens[1].Secrets()
	require.NoError(t, err)
	assert.Equal(t, []dulyfile.Secret{{Env: "CI_TOKEN", Value: "old"}, {Env: "CI_TOKEN", Value: "new"}}, got)
	_, err = f.Tokens[0].Secrets()
	require.EqualError(t, err, "duly.yaml:3: tokens[0]: the environment variable ADMIN_TOKEN, named by env, is not set or empty")
}

func TestMistakesInCallers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tokens: { env: A }":                                                  "duly.yaml:1: tokens: must be an array",
		"tokens: [ { scopes: [read] } ]":                                      "duly.yaml:1: tokens[0]: must name the environment variable that contains the secret",
		"tokens: [ { env: A } ]":                                              "duly.yaml:1: tokens[0]: must have scopes: some of read, trigger, write, work, approve",
		"tokens: [ { env: A, scopes: [] } ]":                                  "duly.yaml:1: tokens[0].scopes: must not be empty",
		"tokens: [ { env: A, scopes: read } ]":                                "duly.yaml:1: tokens[0].scopes: must be an array",
		"tokens: [ { env: A, scopes: [reads] } ]":                             `duly.yaml:1: tokens[0].scopes[0]: unknown scope "reads"; expected read, trigger, write, work, approve`,
		"tokens: [ { env: A, scopes: [read], agents: [] } ]":                  "duly.yaml:1: tokens[0].agents: must not be empty",
		"tokens: [ { env: A, scopes: [read], agents: [''] } ]":                "duly.yaml:1: tokens[0].agents[0]: must not be empty",
		"tokens: [ { env: A, scopes: [read], agents: [ ~ ] } ]":               "duly.yaml:1: tokens[0].agents[0]: must be a string",
		"tokens: [ { env: A, scopes: [read], agents: ['*-team'] } ]":          `duly.yaml:1: tokens[0].agents[0]: "*-team" must not have a * before its end`,
		"tokens: [ { token: secret, scopes: [read] } ]":                       "duly.yaml:1: tokens[0].token: unknown key; expected one of agents, env, kinds, name, scopes",
		"tokens:\n- { env: A, scopes: [read] }\n- { env: A, scopes: [read] }": `duly.yaml:3: tokens[1]: another caller has the name "A"`,
		"tokens: [ { env: A, scopes: [read] } ]\nsenders: [ { type: vercel, name: A, env: B, scopes: [trigger] } ]": `duly.yaml:2: senders[0].name: another caller has the name "A"`,
		"senders: [ { env: A, scopes: [read] } ]":                                                                          "duly.yaml:1: senders[0]: must have a type: one of github, google, oidc, qstash, standard-webhooks, vercel",
		"senders: [ { type: aws, env: A, scopes: [read] } ]":                                                               `duly.yaml:1: senders[0].type: unknown type "aws"; expected github, google, oidc, qstash, standard-webhooks, vercel`,
		"senders: [ { type: bearer, env: A, scopes: [read] } ]":                                                            `duly.yaml:1: senders[0].type: unknown type "bearer"; what sends a bearer token belongs into tokens`,
		"senders: [ { type: qstash, env: A, scopes: [read] } ]":                                                            "duly.yaml:1: senders[0]: must have the url of this service as QStash calls it",
		"senders: [ { type: qstash, url: https://d.example, scopes: [read] } ]":                                            "duly.yaml:1: senders[0]: must name the environment variable that contains the secret",
		"senders: [ { type: qstash, env: [], url: https://d.example, scopes: [read] } ]":                                   "duly.yaml:1: senders[0].env: must not be empty",
		"senders: [ { type: standard-webhooks, env: A, url: https://d.example, scopes: [read] } ]":                         "duly.yaml:1: senders[0].url: unknown key; expected one of agents, env, name, scopes, type",
		"senders: [ { type: google, audience: a, scopes: [read] } ]":                                                       "duly.yaml:1: senders[0]: must have an audience and emails",
		"senders: [ { type: github, audience: a, refs: [b], scopes: [read] } ]":                                            "duly.yaml:1: senders[0]: must have an audience and repositories",
		"senders: [ { type: oidc, issuer: 'https://i.example', audience: a, emails: [b], scopes: [read] } ]":               "duly.yaml:1: senders[0]: must have an issuer, its keys, an audience, and emails or claims",
		"senders: [ { type: oidc, issuer: 'https://i.example', keys: 'https://i.example', audience: a, scopes: [read] } ]": "duly.yaml:1: senders[0]: must have an issuer, its keys, an audience, and emails or claims",
		"senders: [ { type: oidc, claims: { tier: }, scopes: [read] } ]":                                                   "duly.yaml:1: senders[0].claims.tier: must be a string or an array of strings",
		"senders: [ { type: oidc, keys: 'http://i.example', audience: a, emails: [b], scopes: [read] } ]":                  "duly.yaml:1: senders[0].keys: must be https, not http",
		"senders: [ { type: oidc, keys: nowhere, audience: a, emails: [b], scopes: [read] } ]":                             "duly.yaml:1: senders[0].keys: must be a URL",
		"senders: [ { type: vercel, env: A, scopes: [read] } ]":                                                            "duly.yaml:1: senders[0].scopes: must be [trigger]",
		"senders: [ { type: vercel, env: A, scopes: [trigger], agents: ['a*'] } ]":                                         "duly.yaml:1: senders[0].agents: must name agents, without *",
	} {
		_, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte(text), dulyfile.Defaults{})
		assert.ErrorContains(t, err, want, text)
	}
}
