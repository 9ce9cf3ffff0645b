package webhook

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// guard refuses connections to addresses that are not public. It looks at the address that is dialled, after the name was
// resolved, so that a name that points inside does not help.
// Without it a task could make duly read a cloud's credentials, or call a service inside the network.
type guard struct {
	private  bool // every address is allowed
	loopback bool // this machine is allowed
}

// The addresses that are not public, by IANA's registries of special-purpose addresses for IPv4 and IPv6 (RFC 6890), in
// order. Of IPv6 nothing outside 2000::/3 is public: what contains an IPv4 address in another guise (::/96, 64:ff9b::/96),
// discard-only, segment routing, unique local, link-local, site-local and multicast addresses all are elsewhere.
// A new entry in one of the registries is a new line here.
var (
	reserved = prefixes(
		"0.0.0.0/8",         // this network
		"10.0.0.0/8",        // private
		"100.64.0.0/10",     // carrier-grade NAT
		"127.0.0.0/8",       // this machine
		"168.63.129.16/32",  // in no registry: what a machine in Azure asks about itself
		"169.254.0.0/16",    // link-local: where clouds tell a machine its credentials
		"172.16.0.0/12",     // private
		"192.0.0.0/24",      // IETF protocol assignments
		"192.0.2.0/24",      // documentation
		"192.31.196.0/24",   // AS112
		"192.52.193.0/24",   // AMT
		"192.88.99.0/24",    // 6to4 relays
		"192.168.0.0/16",    // private
		"192.175.48.0/24",   // AS112
		"198.18.0.0/15",     // benchmarks
		"198.51.100.0/24",   // documentation
		"203.0.113.0/24",    // documentation
		"224.0.0.0/4",       // multicast
		"240.0.0.0/4",       // reserved, and broadcast
		"2001::/23",         // IETF protocol assignments: Teredo, benchmarks, ORCHID, AMT, AS112
		"2001:db8::/32",     // documentation
		"2002::/16",         // 6to4: an IPv4 address in another guise
		"2620:4f:8000::/48", // AS112
		"3fff::/20",         // documentation
	)
	public6 = netip.MustParsePrefix("2000::/3")
)

// prefixes panics on a text that is none, at the start of the program.
func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// check is nil if the address may be dialled.
// An address in the form of IPv6 counts as the one of IPv4 that it contains.
func (g guard) check(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("")
	// guard: address
	if g.private || g.loopback && addr.IsLoopback() || public(addr) {
		return nil
	}
	return fmt.Errorf("%s is not a public address: set allow_private if it may be called", addr)
}

// public reports whether an address, which is none of IPv4 mapped to IPv6, is one of the internet.
func public(addr netip.Addr) bool {
	if !addr.Is4() && !public6.Contains(addr) {
		return false
	}
	for _, p := range reserved {
		if p.Contains(addr) {
			return false
		}
	}
	return true
}

// control is asked before each connection is made.
// The address is the one that is dialled, after every redirect of names.
func (g guard) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return g.check(to.Addr())
}

// transport is an HTTP transport that dials what the guard allows. It uses no proxy, which would dial for it.
// Connections are reused, to the same receiver only.
func (g guard) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: g.control}
	return &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 128 << 10,
	}
}
