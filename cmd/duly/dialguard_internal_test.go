package main

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDialGuard(t *testing.T) {
	t.Parallel()
	for addr, public := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true, "172.15.0.1": true, "172.32.0.1": true, "100.63.255.255": true,
		"127.0.0.1": false, "127.255.255.254": false, "::1": false, "0.0.0.0": false, "::": false, "0.1.2.3": false,
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "100.64.0.1": false,
		"169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, "fd00::1": false, "fc00::1": false, "fec0::1": false,
		"224.0.0.1": false, "ff02::1": false, "255.255.255.255": false, "240.0.0.1": false, "192.0.0.170": false,
		"198.18.0.1": false, "203.0.113.1": false, "2001:db8::1": false,
		"::ffff:10.0.0.1": false, "::ffff:127.0.0.1": false, "::ffff:93.184.216.34": true,
		"64:ff9b::a00:1": false, "2002:a00:1::": false,
	} {
		a := netip.MustParseAddr(addr)
		assert.Equal(t, public, dialGuard{}.check(a) == nil, addr)
		assert.NoError(t, dialGuard{private: true}.check(a), addr)
		assert.Equal(t, public || a.Unmap().IsLoopback(), dialGuard{loopback: true}.check(a) == nil, addr)
	}
}
