//go:build !race

package redisstore_test

// raced says that the race detector slows what the test does, and not what it measures.
const raced = false
