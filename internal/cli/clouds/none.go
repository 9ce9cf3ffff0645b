//go:build quickstart

package clouds

import "github.com/seed-6f6f2c11/duly/internal/contract"

// Targets are none.
func Targets() []contract.Target { return nil }
