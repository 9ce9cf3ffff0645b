// Package localhost says which names of a host no name server outside can make point at this machine.
package localhost

import (
	"net"
	"net/netip"
	"strings"
)

// Is reports whether a request's host, with or without its port, is one that no name server outside can make point here.
// A page in a browser can make any name point at this machine, but neither localhost nor an address.
func Is(host string) bool {
	host = name(host)
	if host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// Loopback reports whether a request's host is this machine itself, so that nothing of the request crosses a network.
func Loopback(host string) bool {
	host = name(host)
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// name is a host without its port, and an address of IPv6 without its brackets.
func name(host string) string {
	if only, _, err := net.SplitHostPort(host); err == nil {
		host = only
	}
	return strings.Trim(host, "[]")
}
