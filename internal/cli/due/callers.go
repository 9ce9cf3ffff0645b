package due

// Who may call the API of a process: the tokens of the environment, and the callers of the file.

import (
	"cmp"
	"os"
	"slices"
	"strings"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/oidc"
	"github.com/seed-6f6f2c11/duly/adapters/http/qstash"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// callers are all who are let in, and for what.
type callers struct {
	tokens    []string // for everything
	scoped    []httpadapter.Token
	signed    []httpadapter.Signed
	crons     []httpadapter.Token
	verifiers []httpadapter.Verifier
	hooks     httpadapter.Hooks // nil without hooks
	cron      string            // the secret of GET /v1/cron that needs no file
	example   example           // of a call that a token may make
}

// example is a token that may submit a task of an agent.
type example struct {
	variable string // that contains it; empty if there is no such token
	agent    string
}

// exampleAgent is an agent that a grant covers.
func exampleAgent(g *httpadapter.Grant) string {
	switch {
	case len(g.Agents) > 0:
		return g.Agents[0]
	case len(g.Patterns) > 0:
		return strings.TrimSuffix(g.Patterns[0], "*") + "me"
	default:
		return "me"
	}
}

// none reports whether the API needs no credential. The secret of GET /v1/cron opens that path alone.
func (k *callers) none() bool {
	return len(k.tokens)+len(k.scoped)+len(k.signed)+len(k.verifiers) == 0
}

// readCallers gathers them, and reads their secrets. A setting that would admit another caller, or grant other rights than the file says,
// is an error.
func readCallers(c *dulyfile.File) (*callers, error) {
	k := &callers{}
	var err error
	if k.tokens, err = tokens(c); err != nil {
		return nil, err
	}
	seen := map[string]string{}
	for _, token := range k.tokens {
		seen[token], k.example = tokenVariable(c), example{tokenVariable(c), "me"}
	}
	for i := range c.Tokens {
		if err := k.addToken(&c.Tokens[i], seen); err != nil {
			return nil, err
		}
	}
	for i := range c.Senders {
		if err := k.addSender(&c.Senders[i], seen); err != nil {
			return nil, err
		}
	}
	// What the file says of the secret counts, and it may be less than everything.
	if !slices.ContainsFunc(c.Senders, func(s dulyfile.Sender) bool { return slices.Contains(s.Envs, cronSecretEnv) }) {
		if k.cron, err = cronSecret(); err != nil {
			return nil, err
		}
	}
	inbound, err := c.OpenHooks(seen)
	if inbound != nil {
		k.hooks = inbound
	}
	return k, err
}

// addToken adds the tokens of one variable. seen are the variables of all secrets so far: which rights the same secret has would be a
// guess.
func (k *callers) addToken(t *dulyfile.Credential, seen map[string]string) error {
	all, err := secrets(t, seen)
	if err != nil {
		return err
	}
	g := grant(&t.Rights)
	for _, secret := range all {
		k.scoped = append(k.scoped, httpadapter.Token{Token: secret, Grant: g})
	}
	if k.example.variable == "" && slices.Contains(g.Scopes, httpadapter.ScopeWrite) {
		k.example = example{t.Envs[0], exampleAgent(&g)}
	}
	return nil
}

// secrets are those of a credential, none of which another caller has.
func secrets(c *dulyfile.Credential, seen map[string]string) ([]string, error) {
	all, err := c.Secrets()
	if err != nil {
		return nil, err
	}
	values := make([]string, len(all))
	for i, s := range all {
		if other := seen[s.Value]; other != "" {
			return nil, c.Fail("the environment variable %s contains the same secret as %s: give each caller its own", s.Env, other)
		}
		seen[s.Value], values[i] = s.Env, s.Value
	}
	return values, nil
}

// addSender adds a sender by what its type is.
func (k *callers) addSender(s *dulyfile.Sender, seen map[string]string) error {
	all, err := secrets(&s.Credential, seen)
	if err != nil {
		return err
	}
	g := grant(&s.Rights)
	var v httpadapter.Verifier
	switch s.Type {
	case dulyfile.SenderWebhooks:
		signed := httpadapter.Signed{Secrets: all, Grant: g}
		if err := signed.Check(); err != nil {
			return s.Fail("the environment variable %s, named by env, %w", strings.Join(s.Envs, ", "), err)
		}
		k.signed = append(k.signed, signed)
		return nil
	case dulyfile.SenderVercel:
		for _, secret := range all {
			k.crons = append(k.crons, httpadapter.Token{Token: secret, Grant: g})
		}
		return nil
	case dulyfile.SenderQStash:
		v, err = qstash.New(qstash.Config{Keys: all, URL: s.URL, Grant: g})
	default:
		c := oidc.Config{Issuer: s.Issuer, Keys: s.Keys, Audience: s.Audience, Emails: s.Emails, Claims: s.Claims, Grant: g}
		if s.Type == dulyfile.SenderGitHub {
			c.Issuer, c.Keys = oidc.GitHubIssuer, oidc.GitHubKeys
		}
		v, err = oidc.New(c)
	}
	if err != nil {
		return s.Fail("%w", err)
	}
	k.verifiers = append(k.verifiers, v)
	return nil
}

// grant is what the adapter calls the rights of a caller.
func grant(r *dulyfile.Rights) httpadapter.Grant {
	g := httpadapter.Grant{Name: r.Name, Agents: r.Agents, Patterns: r.Patterns, Kinds: r.Kinds}
	for _, scope := range r.Scopes {
		g.Scopes = append(g.Scopes, httpadapter.Scope(scope))
	}
	return g
}

// tokens are the tokens that the environment holds.
// A variable that is set and empty is an error: the operator who set it
// wanted a token, and would get an open API.
func tokens(c *dulyfile.File) ([]string, error) {
	name := tokenVariable(c)
	value, set := os.LookupEnv(name)
	var tokens []string
	// Templates leave spaces and empty entries; they are never tokens.
	for token := range strings.SplitSeq(value, ",") {
		if token = strings.TrimSpace(token); token != "" {
			tokens = append(tokens, token)
		}
	}
	if len(tokens) == 0 && (set || c.TokenEnv != "") {
		return nil, exit.Misuse("set it, or unset it to serve on 127.0.0.1 without a token", "the environment variable %s contains no token", name)
	}
	return tokens, nil
}

// cronSecret is the secret of GET /v1/cron, if there is one. What a file or a form left around it is no part of it.
func cronSecret() (string, error) {
	value, set := os.LookupEnv(cronSecretEnv)
	secret := strings.TrimSpace(value)
	if set && secret == "" {
		return "", exit.Misuse("set it, or unset it to disable GET /v1/cron", "the environment variable %s contains no secret", cronSecretEnv)
	}
	return secret, nil
}

// tokenVariable is the environment variable that holds the tokens.
// The file may name another variable, as several programs on one machine each want tokens of their own.
func tokenVariable(c *dulyfile.File) string { return cmp.Or(c.TokenEnv, command.TokenEnv) }

// secretVariables are the variables of the environment that hold a secret of this process, those that the file names aside: what
// opens its store and its API.
// Programs that handlers start get none of them.
func secretVariables(c *dulyfile.File) []string {
	return append([]string{redisstore.EnvURL, command.TokenEnv, tokenVariable(c), cronSecretEnv}, otelSecrets...)
}
