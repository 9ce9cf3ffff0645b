package redisstore

// The certificates of a connection with TLS.

import (
	"crypto/tls"
	"crypto/x509"
	"os"
)

// secure adds the certificates of a configuration to connections with TLS.
// Files are read once, when a store is opened: a certificate that is renewed needs a restart.
func (c Config) secure(t *target) error {
	if c.CAFile == "" && c.CertFile == "" && c.KeyFile == "" {
		return nil
	}
	// Naming a certificate and then connecting without TLS is a mistake
	// that would otherwise go unnoticed.
	if !t.tls {
		return c.withoutTLS()
	}
	switch {
	case c.CertFile != "" && c.KeyFile == "":
		return misconfigured("KeyFile", nil, "is required beside a certificate: name both")
	case c.CertFile == "" && c.KeyFile != "":
		return misconfigured("CertFile", nil, "is required beside a key: name both")
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return misconfigured("CAFile", c.CAFile, "cannot be read: %v", err)
		}
		// Only this authority, not the machine's as well: a private
		// authority is meant to be the only one.
		t.options.TLSConfig.RootCAs = x509.NewCertPool()
		if !t.options.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
			return misconfigured("CAFile", c.CAFile, "%s contains no certificate in PEM", c.CAFile)
		}
	}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return misconfigured("CertFile", c.CertFile, "%s cannot be used with the key %s: %v", c.CertFile, c.KeyFile, err)
		}
		t.options.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// withoutTLS is the error of the first of the files that are named although nothing is encrypted.
// The order is that of the fields, so that the same mistakes give the same error.
func (c Config) withoutTLS() error {
	for _, f := range [][2]string{{"CAFile", c.CAFile}, {"CertFile", c.CertFile}, {"KeyFile", c.KeyFile}} {
		if f[1] != "" {
			return misconfigured(f[0], f[1], "is for TLS: use rediss:// in the URL")
		}
	}
	return nil
}
