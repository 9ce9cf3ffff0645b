package core

// The fences that this process has seen, by which a store never hands out an older one.

import (
	"sync/atomic"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// fences are the largest fences that this process was given, by partition. Claims tell the store: a master that was promoted
// may lack the last writes of the one before, and with them its last fences, and its clock may be behind.
type fences []atomic.Int64

// seen notes the fence of a claim.
func (f fences) seen(partition int, fence store.Fence) {
	for {
		last := f[partition].Load()
		if int64(fence) <= last || f[partition].CompareAndSwap(last, int64(fence)) {
			return
		}
	}
}

// last is the largest fence of a partition, 0 if none was given.
func (f fences) last(partition int) store.Fence { return store.Fence(f[partition].Load()) }
