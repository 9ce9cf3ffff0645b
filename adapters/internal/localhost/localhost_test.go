package localhost_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/adapters/internal/localhost"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host         string
		is, loopback bool
	}{
		{"localhost", true, true},
		{"LocalHost:8080", true, true},
		{"127.0.0.1:8080", true, true},
		{"[::1]:8080", true, true},
		{"[::1]", true, true},
		{"10.0.0.7:8080", true, false},
		{"", true, false},
		{"evil.example:8080", false, false},
		{"localhost.evil.example", false, false},
		{"127.0.0.1.evil.example", false, false},
	} {
		assert.Equal(t, c.is, localhost.Is(c.host), c.host)
		assert.Equal(t, c.loopback, localhost.Loopback(c.host), c.host)
	}
}
