package main

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// dialGuard refuses connections to addresses that are not public. It looks at the address that is dialled, after the
// name was resolved, so that a name that points inside does not help.
type dialGuard struct {
	private  bool // every address is allowed
	loopback bool // this machine is allowed
}

// reserved are the ranges that are global unicast by their form and yet not public.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),  // documentation
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), // NAT64: an IPv4 address in another guise
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4, the same
	netip.MustParsePrefix("fec0::/10"), // site-local
}

// check is nil if the address may be dialled.
func (g dialGuard) check(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("")
	switch {
	case g.private, g.loopback && addr.IsLoopback():
		return nil
	case addr.IsGlobalUnicast() && !addr.IsPrivate() && !within(reserved, addr):
		return nil
	default:
		return fmt.Errorf("%s is not a public address: allow_private: true allows it", addr)
	}
}

func within(prefixes []netip.Prefix, addr netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// transport is an HTTP transport that dials what the guard allows. It uses no proxy, which would dial for it.
func (g dialGuard) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return g.check(to.Addr())
	}}
	return &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
}
