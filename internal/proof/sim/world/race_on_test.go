//go:build race

package world_test

// shuffled says that the order of goroutines is not only the seed's: the race detector shuffles them on purpose.
const shuffled = true
