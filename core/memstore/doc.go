// Package memstore is the [store.Store] in memory: the embedded default, and the reference for the behaviour of a store.
//
// It keeps to the same rules as redisstore, partition by partition, so that both give the same answers to the same
// calls; a fuzz target holds them together. State lives as long as the process.
package memstore
