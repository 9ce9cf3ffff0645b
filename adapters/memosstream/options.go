package memosstream

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/seed-6f6f2c11/duly/core"
)

// The connection: a URL, files for TLS, and what the intake depends on.

// wrongURL never shows the URL, as it may have a password.
const wrongURL = "must be that of a single server, such as redis://127.0.0.1:6379/0, rediss:// or unix://"

// options are those of both clients. A command is never sent twice by the client itself: what the first one did would be lost.
func (c *Config) options() (*redis.Options, error) {
	var o redis.Options
	switch {
	case c.Options != nil:
		o = *c.Options
	case c.URL == "":
		return nil, &core.ConfigError{Field: "URL", Reason: "is required"}
	default:
		parsed, err := redis.ParseURL(c.URL)
		if err != nil {
			return nil, &core.ConfigError{Field: "URL", Reason: wrongURL}
		}
		o = *parsed
		if o.TLSConfig != nil {
			if err := c.secure(o.TLSConfig); err != nil {
				return nil, err
			}
		}
	}
	o.MaxRetries, o.ContextTimeoutEnabled, o.DisableIdentity, o.DialerRetries = -1, true, true, 1
	// It is for a service that duly does not know of, and costs each connection a command.
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o, nil
}

// secure adds the files to the settings of TLS.
func (c *Config) secure(into *tls.Config) error {
	if c.CAFile != "" {
		data, err := os.ReadFile(c.CAFile)
		if err != nil {
			return &core.ConfigError{Field: "CAFile", Reason: "cannot be read: " + err.Error()}
		}
		into.RootCAs = x509.NewCertPool()
		if !into.RootCAs.AppendCertsFromPEM(data) {
			return &core.ConfigError{Field: "CAFile", Reason: "has no certificate in PEM"}
		}
	}
	if c.CertFile != "" || c.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return &core.ConfigError{Field: "CertFile", Reason: "cannot be used with KeyFile: " + err.Error()}
		}
		into.Certificates = []tls.Certificate{pair}
	}
	return nil
}
