//go:build !race

// Package race tells tests whether the race detector watches: it makes them several times as long, and shuffles goroutines on purpose. What
// is tried without it too, by .ci/run, can be tried by fewer cases with it.
package race

// Enabled says that the race detector watches.
const Enabled = false
