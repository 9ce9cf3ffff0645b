package redisstore

// Remedies for a Redis that refuses a connection, by its answer.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
)

// remedies are what to do about a Redis that refuses, by what its answer contains. They are tried from
// top to bottom, and the first that fits is used: the more specific ones come first.
var remedies = []struct{ answer, remedy string }{
	{"WRONGPASS", "it rejects the user or the password: check both in the URL, as in redis://USER:PASSWORD@host:6379/0"},
	{"NOAUTH", "it requires a password: add it to the URL, as in redis://:PASSWORD@host:6379/0"},
	{"DB index is out of range", "the database does not exist: use a lower number at the end of the URL, such as /0"},
	{"SELECT is not allowed in cluster mode", "it is a node of a cluster, which has no numbered databases: use redis+cluster:// without a number"},
	{"MOVED ", nodeOfACluster},
	{"CROSSSLOT", nodeOfACluster},
	{"cluster support disabled", "it is not a cluster: use redis:// or rediss://"},
	{"all sentinels specified", "no sentinel answered with the address of that master: check the addresses, the name of the master and sentinel_password"},
	{"certificate required", "it requires a client certificate: set CertFile and KeyFile (--redis-cert, --redis-key)"},
	{"bad certificate", "it rejects the client certificate: set CertFile and KeyFile to another one (--redis-cert, --redis-key)"},
}

// nodeOfACluster is what to do about a cluster that is taken for one server.
// A cluster refuses a key of another node and a script across slots in different
// words; both lead here, as does the preflight.
const nodeOfACluster = "it is a node of a cluster: use redis+cluster:// or rediss+cluster://"

// remedy is the advice for an error of a Redis that could not be used; empty if nothing better is known than the error.
func remedy(err error, secure bool) string {
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	var verification *tls.CertificateVerificationError
	// From the most specific error to the least: each of the first two is
	// also a CertificateVerificationError.
	switch {
	case errors.As(err, &unknown):
		return "its certificate is signed by an unknown authority: set CAFile (--redis-ca) to the authority's certificate"
	case errors.As(err, &other):
		return "its certificate is for another host: use that name in the URL"
	case errors.As(err, &verification):
		return "its certificate is not valid: renew it, or check the clock of this machine"
	}
	for _, r := range remedies {
		if strings.Contains(err.Error(), r.answer) {
			return r.remedy
		}
	}
	// A server without TLS waits for the end of a line, and a client with TLS for the
	// server's hello: both wait until time is up.
	var network net.Error
	if secure && (errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()) {
		return "it does not answer: is it reachable from here, and does it speak TLS at this port? If not, use redis://" // it waits for a line to end
	}
	// The other way round the server reads a command as a broken hello, and closes.
	if !secure && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) {
		return "it closed the connection at once: if it speaks TLS, use rediss://"
	}
	// A server that wants a certificate says so only after the handshake, and closes: what is written meanwhile may hide its words.
	if secure && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
		return "it closed the connection at once: perhaps it requires a client certificate: set CertFile and KeyFile (--redis-cert, --redis-key)"
	}
	return ""
}

// reaching is the error of a Redis that cannot be used, with what to do if that is known.
func (s *Store) reaching(err error) error {
	if todo := remedy(err, s.secure); todo != "" {
		return fmt.Errorf("cannot use Redis at %s: %s (%w)", s.name, todo, err)
	}
	return &UnreachableError{Name: s.name, Err: err}
}
