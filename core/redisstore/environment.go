package redisstore

// The environment variables that name a Redis.

import (
	"cmp"
	"strings"
)

// The variables of the environment that name a Redis. An empty one counts as one that is not set, as templates set them all.
// These variables take precedence over the configuration: the environment
// is where a platform keeps secrets.
const (
	EnvURL    = "DULY_REDIS_URL"
	EnvPrefix = "DULY_PREFIX"
	EnvCA     = "DULY_REDIS_CA"
	EnvCert   = "DULY_REDIS_CERT"
	EnvKey    = "DULY_REDIS_KEY"
)

// With returns the configuration with the variables of the environment in place of its own fields,
// where they are set. get is [os.Getenv], except in tests.
func (c Config) With(get func(string) string) Config {
	for name, field := range map[string]*string{
		EnvURL: &c.URL, EnvPrefix: &c.Prefix, EnvCA: &c.CAFile, EnvCert: &c.CertFile, EnvKey: &c.KeyFile,
	} {
		*field = cmp.Or(strings.TrimSpace(get(name)), *field)
	}
	return c
}
