package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// secure adds the certificates of a configuration to what is spoken with TLS.
func (c Config) secure(t *target) error {
	if c.CAFile == "" && c.CertFile == "" && c.KeyFile == "" {
		return nil
	}
	if !t.tls {
		return errors.New("CAFile, CertFile and KeyFile are for TLS: use rediss:// in the URL")
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("CertFile and KeyFile belong together: name both")
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return fmt.Errorf("CAFile: %w", err)
		}
		t.options.TLSConfig.RootCAs = x509.NewCertPool()
		if !t.options.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("CAFile %s has no certificate in PEM", c.CAFile)
		}
	}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return fmt.Errorf("CertFile %s and KeyFile %s: %w", c.CertFile, c.KeyFile, err)
		}
		t.options.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	return nil
}
