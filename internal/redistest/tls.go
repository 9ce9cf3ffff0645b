package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Certificates are files in PEM: an authority, and what it has signed for a server on loopback and for a client.
// They are made for one test, and valid for an hour.
type Certificates struct {
	CA, ServerCert, ServerKey, ClientCert, ClientKey string

	client *tls.Config
}

// StartTLS is StartTCP on a port that speaks TLS only. It asks clients for a certificate if args say so, as with
// "--tls-auth-clients", "yes".
func StartTLS(tb testing.TB, args ...string) (*Server, *Certificates) {
	tb.Helper()
	c := newCertificates(tb)
	addr := FreeAddr(tb)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(tb, err)
	s := &Server{URL: "rediss://" + addr + "/0", Addr: addr, binary: Binary(tb), tls: c.client}
	s.args = append([]string{
		"--port", "0", "--tls-port", port, "--bind", "127.0.0.1", "--save", "", "--dir", tb.TempDir(), "--tls-cert-file", c.ServerCert,
		"--tls-key-file", c.ServerKey, "--tls-ca-cert-file", c.CA, "--tls-auth-clients", "no",
	}, args...)
	s.launch(tb)
	tb.Cleanup(s.Kill)
	return s, c
}

// newCertificates makes an authority, and signs a certificate for each side.
// The authority is new for each test, so that no other certificate of this machine is trusted.
func newCertificates(tb testing.TB) *Certificates {
	tb.Helper()
	dir := tb.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	c := &Certificates{
		CA: at("ca.pem"), ServerCert: at("server.pem"), ServerKey: at("server.key"), ClientCert: at("client.pem"), ClientKey: at("client.key"),
	}
	root, rootKey := sign(tb, "duly test authority", nil, nil, c.CA, at("ca.key"))
	sign(tb, "server", root, rootKey, c.ServerCert, c.ServerKey)
	sign(tb, "client", root, rootKey, c.ClientCert, c.ClientKey)
	pair, err := tls.LoadX509KeyPair(c.ClientCert, c.ClientKey)
	require.NoError(tb, err)
	pool := x509.NewCertPool()
	pool.AddCert(root)
	c.client = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return c
}

// sign makes a certificate for loopback with a key of its own, signed by an authority, or by itself if there is none.
// The certificate begins an hour ago, so that a clock that has just been set back does not refuse it.
func sign(tb testing.TB, name string, by *x509.Certificate, byKey *ecdsa.PrivateKey, certFile, keyFile string) (*x509.Certificate, *ecdsa.PrivateKey) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(tb, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: by == nil, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if by == nil {
		by, byKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, &key.PublicKey, byKey)
	require.NoError(tb, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(tb, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(tb, err)
	require.NoError(tb, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(tb, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return cert, key
}

// StartSentinel starts a sentinel that watches a server under the name "mymaster", and returns once it knows it.
// One sentinel is enough to name a master; a failover would need a majority.
func StartSentinel(tb testing.TB, master *Server, lines ...string) *Server {
	tb.Helper()
	addr := FreeAddr(tb)
	host, port, err := net.SplitHostPort(addr)
	require.NoError(tb, err)
	masterHost, masterPort, err := net.SplitHostPort(master.Addr)
	require.NoError(tb, err)
	dir := tb.TempDir()
	config := filepath.Join(dir, "sentinel.conf")
	text := append([]string{
		"port " + port, "bind " + host, "dir " + dir, "sentinel monitor mymaster " + masterHost + " " + masterPort + " 1",
		"sentinel down-after-milliseconds mymaster 1000", "sentinel failover-timeout mymaster 5000",
	}, lines...)
	require.NoError(tb, os.WriteFile(config, []byte(strings.Join(text, "\n")+"\n"), 0o600))
	s := &Server{URL: "redis://" + addr, Addr: addr, binary: Binary(tb), args: []string{config, "--sentinel"}}
	s.launch(tb)
	tb.Cleanup(s.Kill)
	return s
}
