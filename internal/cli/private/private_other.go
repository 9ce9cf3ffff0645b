//go:build !linux

package private

// Hide does nothing where the kernel has no such means: see docs/handlers.md.
func Hide() error { return nil }
