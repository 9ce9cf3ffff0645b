package dulyfile

// Senders: services that call the API and prove who they are in ways of their own.

import (
	"maps"
	"slices"
	"strings"
)

// The types of senders.
const (
	SenderWebhooks = "standard-webhooks" // signs as Standard Webhooks say
	SenderQStash   = "qstash"            // Upstash's QStash: signs by a JWT
	SenderGoogle   = "google"            // accounts of Google, by OIDC: Cloud Scheduler, Pub/Sub, Cloud Run
	SenderGitHub   = "github"            // jobs of GitHub Actions, by OIDC
	SenderOIDC     = "oidc"              // accounts of another issuer
	SenderVercel   = "vercel"            // sends GET /v1/cron with a secret
)

// Sender is a service that may call the API. Fields that its type does not have are empty.
type Sender struct {
	Credential // of those that share a secret with duly; Envs is empty for others

	Type                   string
	URL                    string // of this service, as the sender knows it
	Issuer, Keys, Audience string
	Emails                 []string
	Claims                 map[string][]string // what each may be
}

// senderKeys are the keys of each type, beside those of all callers.
var senderKeys = map[string][]string{
	SenderWebhooks: {"env"},
	SenderQStash:   {"env", "url"},
	SenderGoogle:   {"audience", "emails"},
	SenderGitHub:   {"audience", "repositories", "refs"},
	SenderOIDC:     {"issuer", "keys", "audience", "emails", "claims"},
	SenderVercel:   {"env"},
}

// readSender reads one sender. Its type says which keys it has.
func (f *File) readSender(p place) (Rights, error) {
	s := Sender{}
	names, err := s.readType(p)
	if err != nil {
		return s.Rights, err
	}
	var repositories, refs []string
	all := map[string]reader{
		"env": variables(&s.Envs), "url": link(&s.URL), "issuer": link(&s.Issuer), "keys": link(&s.Keys), "audience": text(&s.Audience),
		"emails": texts(&s.Emails), "claims": claims(&s.Claims), "repositories": texts(&repositories), "refs": texts(&refs),
	}
	mine := map[string]reader{"type": text(&s.Type)}
	for _, name := range names {
		mine[name] = all[name]
	}
	if err := s.read(p, mine); err != nil {
		return s.Rights, err
	}
	if s.Type == SenderGitHub {
		s.Claims = map[string][]string{"repository": repositories}
		if len(refs) > 0 {
			s.Claims["ref"] = refs
		}
	}
	if err := s.check(p, len(repositories)); err != nil {
		return s.Rights, err
	}
	f.secrets = append(f.secrets, s.Envs...)
	f.Senders = append(f.Senders, s)
	return s.Rights, nil
}

// readType reads the type of a sender before all else, and returns the keys that it has.
func (s *Sender) readType(p place) ([]string, error) {
	entries, err := p.entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.key == "type" {
			if err := text(&s.Type)(e.value); err != nil {
				return nil, err
			}
		}
	}
	names, ok := senderKeys[s.Type]
	switch {
	case s.Type == "":
		return nil, p.fail("must have a type: one of %s", strings.Join(senderTypes(), ", "))
	case !ok && (s.Type == "bearer" || s.Type == "cloudflare"):
		return nil, p.of("type").fail("unknown type %q; what sends a bearer token belongs into tokens, and a Worker that signs is of the type %s", s.Type, SenderWebhooks)
	case !ok:
		return nil, p.of("type").fail("unknown type %q; expected %s", s.Type, strings.Join(senderTypes(), ", "))
	}
	return names, nil
}

// senderTypes are all types, in order.
func senderTypes() []string {
	return slices.Sorted(maps.Keys(senderKeys))
}

// check refuses a sender that any client could pose as, and gives it a name.
func (s *Sender) check(p place, repositories int) error {
	byOIDC := s.Type == SenderGoogle || s.Type == SenderGitHub || s.Type == SenderOIDC
	switch {
	case !byOIDC && len(s.Envs) == 0:
		return p.fail("must name the environment variable that contains the secret, such as env: HOOK_SECRET")
	case s.Type == SenderQStash && s.URL == "":
		return p.fail("must have the url of this service as QStash calls it, such as url: https://duly.example")
	case s.Type == SenderGoogle && (s.Audience == "" || len(s.Emails) == 0):
		return p.fail("must have an audience and emails: each alone would let others in")
	case s.Type == SenderGitHub && (s.Audience == "" || repositories == 0):
		return p.fail("must have an audience and repositories: each alone would let others in")
	case s.Type == SenderOIDC && (s.Issuer == "" || s.Keys == "" || s.Audience == "" || len(s.Emails)+len(s.Claims) == 0):
		return p.fail("must have an issuer, its keys, an audience, and emails or claims: without one of them others would be let in")
	case s.Type == SenderVercel && (len(s.Scopes) != 1 || s.Scopes[0] != "trigger"):
		return p.of("scopes").fail("must be [trigger]: GET /v1/cron does nothing else")
	case s.Type == SenderVercel && s.Patterns != nil:
		return p.of("agents").fail("must name agents, without *: GET /v1/cron runs what is due for these")
	case s.Name != "":
	case byOIDC:
		s.Name = s.Audience
	default:
		s.Name = s.Envs[0]
	}
	return nil
}

// variables reads the name of a variable, or several.
func variables(into *[]string) reader {
	return func(p place) error {
		if _, err := p.list(); err == nil {
			return each(p, func(_ place, name string) error { *into = append(*into, name); return nil })
		}
		var name string
		if err := text(&name)(p); err != nil || name == "" {
			return err
		}
		*into = []string{name}
		return nil
	}
}

// claims reads what claims of a token may be: a string each, or several.
func claims(into *map[string][]string) reader {
	return func(p place) error {
		*into = map[string][]string{}
		entries, err := p.entries()
		for _, e := range entries {
			var values []string
			if err == nil {
				err = variables(&values)(e.value)
			}
			if err == nil && len(values) == 0 {
				err = e.value.fail("must be a string or an array of strings")
			}
			(*into)[e.key] = values
		}
		return err
	}
}
