package redisstore

// The environment variables that name a Redis.

import (
	"cmp"
	"strings"
)

// The variables of the environment that name a Redis. An empty one counts as one that is not set, as templates set them all.
const (
	EnvURL    = "DULY_REDIS_URL"
	EnvPrefix = "DULY_PREFIX"
	EnvCA     = "DULY_REDIS_CA"
	EnvCert   = "DULY_REDIS_CERT"
	EnvKey    = "DULY_REDIS_KEY"
)

// With is the configuration with what the environment says in its place; get is [os.Getenv] but in tests.
func (c Config) With(get func(string) string) Config {
	for name, field := range map[string]*string{
		EnvURL: &c.URL, EnvPrefix: &c.Prefix, EnvCA: &c.CAFile, EnvCert: &c.CertFile, EnvKey: &c.KeyFile,
	} {
		*field = cmp.Or(strings.TrimSpace(get(name)), *field)
	}
	return c
}
