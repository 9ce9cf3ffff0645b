package webhook

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Nothing of IANA's special-purpose registries is public, in whichever form it is written; its neighbours are.
func TestGuard(t *testing.T) {
	t.Parallel()
	for addr, public := range map[string]bool{
		// the internet, next to what is not
		"93.184.216.34": true, "1.0.0.0": true, "9.255.255.255": true, "11.0.0.0": true, "100.63.255.255": true, "100.128.0.0": true,
		"126.255.255.255": true, "128.0.0.0": true, "169.253.255.255": true, "169.255.0.0": true, "172.15.0.1": true, "172.32.0.1": true,
		"168.63.129.15": true, "168.63.129.17": true, "191.255.255.255": true, "192.0.1.0": true, "192.0.3.0": true, "192.88.98.255": true,
		"192.88.100.0": true, "192.167.255.255": true, "192.169.0.0": true, "198.17.255.255": true, "198.20.0.0": true, "198.51.99.255": true,
		"203.0.112.255": true, "203.0.114.0": true, "223.255.255.255": true,
		"2606:2800:220:1::1": true, "2001:200::1": true, "2001:4860:4860::8888": true, "2001:db7::": true, "2001:db9::": true,
		"2003::1": true, "2620:4f:7fff::": true, "2a00:1450:4001::1": true, "3ffe:ffff::": true, "3fff:1000::": true,
		// this machine and network
		"0.0.0.0": false, "0.1.2.3": false, "127.0.0.1": false, "127.255.255.254": false, "10.0.0.1": false, "172.16.0.1": false,
		"172.31.255.255": false, "192.168.1.1": false, "100.64.0.1": false, "100.100.100.200": false, "100.127.255.255": false,
		"169.254.169.254": false, "168.63.129.16": false, "::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false,
		"febf::1": false, "fec0::1": false, "feff::1": false, "fc00::1": false, "fd00::1": false, "fd00:ec2::254": false,
		// reserved, documentation, benchmarks, anycast
		"192.0.0.1": false, "192.0.0.9": false, "192.0.0.170": false, "192.0.0.192": false, "192.0.2.1": false, "192.31.196.1": false,
		"192.52.193.1": false, "192.88.99.1": false, "192.175.48.1": false, "198.18.0.1": false, "198.19.255.255": false,
		"198.51.100.1": false, "203.0.113.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"100::1": false, "100:0:0:1::1": false, "2001:db8::1": false, "2001:2::1": false, "2001:3::1": false, "2001:4:112::1": false,
		"2001:10::1": false, "2001:20::1": false, "2001:2f:ffff::": false, "2001:30::1": false, "2001:1::1": false, "2001:1ff::1": false,
		"2620:4f:8000::1": false, "3fff::1": false, "3fff:fff::1": false, "5f00::1": false, "4000::1": false, "8000::1": false,
		// multicast
		"224.0.0.1": false, "239.255.255.255": false, "ff02::1": false, "ff0e::1": false,
		// IPv4 in the guise of IPv6
		"::ffff:10.0.0.1": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:93.184.216.34": true,
		"::ffff:0:10.0.0.1": false, "::10.0.0.1": false, "::93.184.216.34": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b::5db8:d822": false,
		"64:ff9b:1::a00:1": false, "2002:a00:1::": false, "2002:5db8:d822::": false, "2001::1": false, "2001:0:ffff::1": false,
		"fe80::5efe:10.0.0.1": false,
	} {
		a := netip.MustParseAddr(addr)
		assert.Equal(t, public, guard{}.check(a) == nil, addr)
		assert.NoError(t, guard{private: true}.check(a), addr)
		assert.Equal(t, public || a.Unmap().IsLoopback(), guard{loopback: true}.check(a) == nil, addr)
	}
	assert.Error(t, guard{private: true}.control("tcp", "nonsense", nil))
	assert.Error(t, guard{}.control("tcp", "[64:ff9b::a9fe:a9fe]:443", nil))
	assert.NoError(t, guard{}.control("tcp", "[2606:4700::1]:443", nil))
}
